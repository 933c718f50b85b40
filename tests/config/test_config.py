"""What config.toml may say, and what is meant where it says nothing."""

from __future__ import annotations

import ast
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware import config
from middleware.config import Config, ConfigError, Mistake
from middleware.config.keys import SECTIONS
from middleware.config.kind_keys import ability_keys, option_keys
from tests.config.reading import KEY, ONE
from tests.support.paths import ROOT

WHOLE = """
[server]
host = "127.0.0.1"
port = 8110
keys = ["K", "env:OUR_KEY"]

[defaults.timeouts]
connect = 5
first_event = 6

[upstreams.claude]
kind = "claude"
base_url = "http://127.0.0.1:21401/"
api_key = "k"

[upstreams.open]
kind = "compatible"
base_url = "http://127.0.0.1:21401/v1"
api_key = "env:OPEN_KEY"
timeouts = { idle = 7, plain = 90 }

[upstreams.home]
kind = "ollama"

[models."claude-*"]
upstream = "claude"
name = "*"

[models.small]
upstream = "open"
name = "small-1"
vision = true
abilities = { vision = false, thinking = false, tools = true }
max_tokens = 100
defaults = { reasoning_effort = "medium" }
drop = ["user"]

[models.own]
upstream = "home"
num_ctx = 16384

[models.deepclaude]
pipeline = "reason-then-answer"
reasoner = "small"
answerer = "own"

[models.guarded]
upstream = "home"
fallback = ["small"]
server_tools = ["clock"]

[tools.clock]
kind = "python"
module = "clock.py"
"""


def whole() -> Config:
    return config.parse(WHOLE, environment={"OUR_KEY": "ours", "OPEN_KEY": KEY})


def test_a_server_without_a_section_has_safe_defaults() -> None:
    server = config.parse(ONE, environment={}).server
    assert (server.host, server.port, server.keys) == ("127.0.0.1", 8000, ())
    assert (server.heartbeat, server.max_body, server.max_concurrent) == (15, 8 << 20, 1024)
    assert not server.strict
    assert not server.history_repair


def test_everything_is_frozen() -> None:
    found = whole()
    for part in (found, found.server, found.models["own"], found.upstreams["home"]):
        with pytest.raises(FrozenInstanceError):
            setattr(part, fields(part)[0].name, "x")


def test_secrets_come_from_the_environment() -> None:
    assert [key.value for key in whole().server.keys] == ["K", "ours"]
    key = whole().upstreams["open"].api_key
    assert key is not None
    assert (key.value, key.variable) == (KEY, "OPEN_KEY")


def test_the_line_break_of_a_secret_file_is_not_part_of_the_key() -> None:
    found = config.parse(WHOLE, environment={"OUR_KEY": "ours\n", "OPEN_KEY": f" {KEY}\r\n"})
    assert found.server.keys[1].value == "ours"
    assert found.upstreams["open"].secrets()[0].value == KEY


def test_a_missing_upstream_secret_is_named_and_no_mistake() -> None:
    found = config.parse(WHOLE, environment={"OUR_KEY": "ours"})
    assert found.upstreams["open"].missing() == ("OPEN_KEY",)
    assert found.upstreams["claude"].missing() == ()


def test_no_text_of_a_config_shows_a_secret() -> None:
    found = whole()
    for part in (found, found.upstreams["open"], found.upstreams["open"].api_key):
        assert KEY not in f"{part} {part!r}"


def test_usual_addresses_and_ways_to_send_a_key_follow_the_kind() -> None:
    upstreams = whole().upstreams
    assert upstreams["home"].base_url == "http://127.0.0.1:11434"
    assert upstreams["claude"].base_url == "http://127.0.0.1:21401"
    assert (upstreams["claude"].auth, upstreams["claude"].api_version) == (
        "x-api-key",
        "2023-06-01",
    )
    assert (upstreams["open"].auth, upstreams["open"].api_version) == ("bearer", None)


def test_configured_timeouts_win_and_bound_what_is_not_configured() -> None:
    upstreams = whole().upstreams
    assert upstreams["open"].timeouts == {
        "connect": 5, "first_event": 6, "idle": 7, "idle_open": 7, "plain": 90,
    }  # fmt: skip
    assert upstreams["home"].timeouts == {"connect": 5, "first_event": 6, "idle": 300, "plain": 6}


@pytest.mark.parametrize(
    ("kind", "timeouts"),
    [
        ("claude", {}),
        ("deepseek", {"first_event": 600}),
        ("ollama", {"first_event": 600, "idle": 300}),
    ],
)
def test_kinds_that_load_in_silence_get_longer(kind: str, timeouts: dict[str, int]) -> None:
    text = f'[models.one]\nupstream = "up"\n[upstreams.up]\nkind = "{kind}"\n'
    assert config.parse(text, environment={}).upstreams["up"].timeouts == timeouts


@pytest.mark.parametrize("kind", ["ollama", "deepseek"])
@pytest.mark.parametrize(("said", "read"), [("true", "always"), ("false", "off")])
def test_whether_a_model_thinks_is_a_flag_where_it_makes_no_difference_how(
    kind: str, said: str, read: str
) -> None:
    text = f'[models.one]\nupstream = "up"\nabilities = {{ thinking = {said} }}\n'
    found = config.parse(f'{text}[upstreams.up]\nkind = "{kind}"\n', environment={})
    assert found.models["one"].abilities == {"thinking": read}


def test_flat_abilities_outrank_the_table_and_options_go_to_the_leaf() -> None:
    small = whole().models["small"]
    assert small.abilities == {"vision": True, "thinking": "off", "tools": True}
    assert small.options == {"max_tokens": 100}
    assert whole().models["own"].options == {"num_ctx": 16384}


def test_a_model_without_a_name_has_its_public_one() -> None:
    assert whole().models["own"].name == "own"
    assert whole().models["small"].name == "small-1"


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(ONE, encoding="utf-8-sig")
    assert list(config.load(path, environment={}).models) == ["one"]


def test_the_command_line_outranks_the_file_and_is_checked_with_it() -> None:
    assert config.parse(ONE, server={"port": 9}, environment={}).server.port == 9
    with pytest.raises(ConfigError, match="other machines"):
        config.parse(ONE, server={"host": "0.0.0.0"}, environment={})


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]"])
def test_this_machine_needs_no_keys(host: str) -> None:
    assert config.parse(ONE, server={"host": host}, environment={}).server.host == host


TOML = st.recursive(
    st.booleans() | st.integers(-2, 70000) | st.text("ab*.:/$", max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else repr(value)


@given(st.data())
def test_any_value_of_any_key_is_read_or_named(data: st.DataObject) -> None:
    section = data.draw(st.sampled_from(sorted(SECTIONS)))
    more = {**ability_keys(""), **option_keys("")} if section == "models.NAME" else {}
    key = data.draw(st.sampled_from(sorted({**SECTIONS[section], **more})))
    text = f"[{section.replace('NAME', 'up')}]\n{key} = {toml(data.draw(TOML))}\n"
    named: tuple[Mistake, ...] = ()
    try:
        config.parse(text, environment={})
    except ConfigError as error:
        named = error.mistakes
    assert all(one.text.endswith(".") for one in named)


def test_every_key_is_explained_and_every_default_is_allowed() -> None:
    every = {**SECTIONS, "options": option_keys(""), "abilities": ability_keys("")}
    for section, keys in every.items():
        for name, key in keys.items():
            assert key.text, f"{section}.{name}"
            assert not key.text.endswith("."), f"{section}.{name}"


def test_every_upstream_kind_that_is_there_is_known() -> None:
    """A leaf is a module of `adapters` with a `connect`."""
    paths = [*ROOT.glob("adapters/*.py"), *ROOT.glob("adapters/*/__init__.py")]
    leaves = [
        path.parent.name if path.stem == "__init__" else path.stem
        for path in paths
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "connect"
    ]
    for kind in leaves:
        address = "base_url = 'http://127.0.0.1'\n" if kind == "compatible" else ""
        text = f"[upstreams.up]\nkind = '{kind}'\n{address}[models.one]\nupstream = 'up'\n"
        assert config.parse(text, environment={}).upstreams["up"].kind == kind


def test_memories_are_kept_in_a_file_for_a_week_unless_said_otherwise() -> None:
    recall = whole().recall
    assert (recall.store, recall.path, recall.max_age) == ("state", None, 604_800)
    text = ONE + '[recall]\nstore = "memory"\nmax_bytes = 100000\n'
    assert config.parse(text, environment={}).recall.max_bytes == 100_000
    for kind, kept in (("claude", True), ("compatible", False)):
        text = (
            f"[models.a]\nupstream = 'up'\n[upstreams.up]\nkind = '{kind}'\nbase_url = 'http://a'"
        )
        assert config.parse(text, environment={}).models["a"].recall is kept
