"""What config.toml may say, and how every mistake in it is named."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware import config
from middleware.config import Config, ConfigError, Mistake
from middleware.config.keys import KINDS, MODEL, SECTIONS
from tests.support.paths import ROOT

KEY = "sk-secret-of-ours-0123456789"

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
"""
ONE = '[models.one]\nupstream = "up"\n[upstreams.up]\nkind = "ollama"\n'


def whole() -> Config:
    return config.parse(WHOLE, environment={"OUR_KEY": "ours", "OPEN_KEY": KEY})


def mistakes(text: str, **environment: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        config.parse(text, environment=environment)
    return {one.key: one.text for one in caught.value.mistakes}


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


def test_flat_abilities_outrank_the_table_and_options_go_to_the_leaf() -> None:
    small = whole().models["small"]
    assert small.abilities == {"vision": True, "thinking": "off", "tools": True}
    assert small.options == {"max_tokens": 100}
    assert whole().models["own"].options == {"num_ctx": 16384}


def test_a_model_without_a_name_has_its_public_one() -> None:
    assert whole().models["own"].name == "own"
    assert whole().models["small"].name == "small-1"


@pytest.mark.parametrize(
    ("model", "coming"),
    [
        ("deepclaude", ()),
        ("guarded", ("fallback",)),
        ("small", ()),
    ],
)
def test_what_is_still_to_come_is_no_mistake(model: str, coming: tuple[str, ...]) -> None:
    assert whole().models[model].coming == coming


A = "[upstreams.a]\nkind = 'claude'\n"
M = "[models.a]\nupstream = 'up'\n"
MISTAKES = [
    ("[sever]\nport = 1", "sever", "Did you mean 'server'?"),
    ("[server]\nprot = 1", "server.prot", "Did you mean 'port'?"),
    ("[server]\nport = '80'", "server.port", "is '80', but must be a whole number from 1 to 65535"),
    ("[server]\nport = true", "server.port", "is true, but must be"),
    ("[server]\nstrict = 1", "server.strict", "is 1, but must be true or false"),
    ("[server]\nlog_level = 'loud'", "server.log_level", '"debug", "info", "warning", "error"'),
    ("[server]\ncors_origins = '*'", "server.cors_origins", "write it in brackets"),
    ("server = 1", "server", "must be a table: write [server]"),
    ("[server]\nkeys = ['']", "server.keys", "it is empty"),
    ("[server]\nkeys = ['env:GONE']", "server.keys", "variable GONE is not set"),
    ("[server]\nhost = '0.0.0.0'", "server.keys", "can be reached from other machines"),
    ("[server]\nhost = '::'\nkeys = []", "server.keys", "can be reached from other machines"),
    ("[defaults.timeouts]\nidel = 1", "defaults.timeouts.idel", "Did you mean 'idle'?"),
    ("[defaults]\ntimeouts = 3", "defaults.timeouts", "is 3, but must be a table"),
    ("[upstreams.a]", "upstreams.a.kind", "is missing: write one of claude, deepseek"),
    ("[upstreams.a]\nkind = 'cluade'", "upstreams.a.kind", "Did you mean 'claude'?"),
    ("[upstreams.a]\nkind = 'compatible'", "upstreams.a.base_url", "is missing"),
    ("[upstreams]\na = 3", "upstreams.a", "must be a table: write [upstreams.a]"),
    (A + "timeouts = {idle = 0}", "upstreams.a.timeouts.idle", "above 0"),
    (A + "api_key = ''", "upstreams.a.api_key", "it is empty"),
    (A + "api_key = '${THE_KEY}'", "upstreams.a.api_key", "env:THE_KEY"),
    (A + "api_key = 'env:'", "upstreams.a.api_key", "must follow"),
    (A + "api_key = \"a\\nb\"", "upstreams.a.api_key", "HTTP header"),
    (A + "max_tokens = 3", "upstreams.a.max_tokens", "[models.NAME]"),
    (A + "proxy = 'p:80'", "upstreams.a.proxy", 'begin with "http://"'),
    ("[models.a]", "models.a.upstream", "is missing. There are: up."),
    ("[models.a]\nupstream = 'pu'", "models.a.upstream", "is 'pu', but there are: up."),
    ("[models.a]\nupstraem = 'up'", "models.a.upstraem", "Did you mean 'upstream'?"),
    (M + "tools = 'yes'", "models.a.tools", '"native", "emulated"'),
    (M + "api_key = 'x'", "models.a.api_key", "belongs in [upstreams.NAME]"),
    ("[models.gpt-4.1]\nupstream = 'up'", "models.gpt-4.1", '[models."gpt-4.1"]'),
    ("[models.'a/b']\nupstrem = 'up'", 'models."a/b".upstrem', "Did you mean 'upstream'?"),
    ("[models.'*-*']\nupstream = 'up'", 'models."*-*"', "more than one *"),
    (M + "name = '*'", "models.a.name", "is '*', but a * is only carried"),
    (M + "abilities = {vision = 'no'}", "models.a.abilities.vision", "must be true or false"),
    (M + "thinking = true", "models.a.thinking", 'say how: "manual"'),
    (M + "options = {num_ctx = 0}", "models.a.options.num_ctx", "1 or more"),
    (M + "defaults = {model = 'x'}", "models.a.defaults.model", "own"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "key", "words"), MISTAKES, ids=[row[1] for row in MISTAKES])
def test_a_mistake_names_its_key_and_the_way_out(text: str, key: str, words: str) -> None:
    found = mistakes(f"{text}\n{ONE}")
    assert list(found) == [key]
    assert words in found[key]


ADDRESSES = [
    ("compatible", "https://a.test/v1/chat/completions", 'write "https://a.test/v1"'),
    ("deepseek", "https://a.test/chat/completions/", 'write "https://a.test"'),
    ("claude", "https://a.test/v1/messages", 'write "https://a.test"'),
    ("claude", "https://a.test/v1", 'write "https://a.test"'),
    ("ollama", "http://a.test:11434/api", 'write "http://a.test:11434"'),
    ("ollama", "localhost:11434", 'write "http://localhost:11434"'),
    ("compatible", "a.test/v1", 'write "https://a.test/v1"'),
    ("compatible", "ftp://a.test/v1", "must be an http:// or https:// address"),
    ("compatible", "http://", "must be an http:// or https:// address"),
    ("compatible", "http://a.test:port/v1", "cannot be read"),
    ("compatible", "https://a.test/v1?key=sk-1", 'leave out what follows the path'),
    ("compatible", "https://me:word@a.test/v1", "use api_key or headers"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "address", "words"), ADDRESSES)
def test_a_wrong_address_comes_with_the_right_one(kind: str, address: str, words: str) -> None:
    text = f'[models.a]\nupstream = "up"\n[upstreams.up]\nkind = "{kind}"\nbase_url = "{address}"'
    found = mistakes(text)
    assert list(found) == ["upstreams.up.base_url"]
    assert words in found["upstreams.up.base_url"]
    assert "sk-1" not in str(found)
    assert "word@" not in str(found)


def test_all_mistakes_are_told_at_once_with_the_file() -> None:
    with pytest.raises(ConfigError) as caught:
        config.parse("[server]\nprot = 1\nport = 0\n[models.a]\n", source="my.toml", environment={})
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["my.toml:2", "server.prot"],
        ["my.toml:3", "server.port"],
        ["my.toml:4", "models.a.upstream"],
    ]


LONG = '''
[server]   # a comment
cors_origins = [
  "a",     # with = and [models.x] in it
  """
[models.x]
temperature = 1
""",
]
port = 0
[models.one]
upstream = "up"
"temperature" = 0.5

options.reask = 7
[models."a.b"]
upstream = "up"
defaults = { seed = 1, temprature = 1 }
[upstreams]
up = { kind = "ollama", prot = 1 }
gone.kind = "compatible"
'''


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_mistake_names_the_line_its_statement_begins_on(end: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.parse(LONG.replace("\n", end), environment={}, server={"max_body": 0})
    found = {one.key: one.line for one in caught.value.mistakes}
    assert found == {
        "server.port": 10,
        "models.one.temperature": 13,
        "models.one.options.reask": 15,
        'models."a.b".defaults.temprature': 18,
        "upstreams.up.prot": 20,
        "upstreams.gone.base_url": 21,
        "server.max_body": 0,  # the command line says it
    }
    assert [*found.values()] == [10, 13, 15, 18, 20, 21, 0]


def test_a_line_is_looked_for_only_so_long() -> None:
    text = "[server]\nkeys = [\n" + '"k",\n' * 20_000 + "]\nprot = 1\n" + ONE
    began = time.process_time()
    assert "server.prot" in mistakes(text)
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("temperature = 0.2", "defaults = { temperature = 0.2 }, or override"),
        ('stop = ["a", "b"]', 'defaults = { stop = ["a", "b"] }'),
        ('reasoning_effort = "low"', 'defaults = { reasoning_effort = "low" }'),
        ("top_k = 3", "defaults = { top_k = 3 }"),
        ("response_format = { type = 1 }", "defaults = { response_format = { … } }"),
    ],
)
def test_a_field_of_requests_beside_the_keys_of_a_model_gets_its_place(
    line: str, words: str
) -> None:
    ((_, text),) = mistakes(f"{ONE.replace('[upstreams', f'{line}{chr(10)}[upstreams')}").items()
    assert words in text
    assert "There are:" not in text


@pytest.mark.parametrize("place", ["defaults", "override"])
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("temprature", "temperature"),
        ("maxtokens", "max_tokens"),
        ("max-tokens", "max_tokens"),
        ("Temperature", "temperature"),
        ("reasoning_efort", "reasoning_effort"),
        ("presence_penality", "presence_penalty"),
        ("top_k", ""),
        ("min_tokens", ""),
        ("chat_template_kwargs", ""),
        ("my_own_field", ""),
    ],
)
def test_a_misspelt_field_is_a_mistake_and_a_foreign_one_is_not(
    place: str, name: str, meant: str
) -> None:
    text = f"[models.two]\nupstream = 'up'\n{place} = {{ {name} = 1 }}\n{ONE}"
    if not meant:
        assert getattr(config.parse(text, environment={}).models["two"], place) == {name: 1}
        return
    assert f"Did you mean '{meant}'?" in mistakes(text)[f"models.two.{place}.{name}"]


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("openai", ["compatible", "https://api.openai.com/v1", "env:OPENAI_API_KEY"]),
        ("OpenAI", ["compatible", "https://api.openai.com/v1"]),
        ("anthropic", ["claude", "env:ANTHROPIC_API_KEY"]),
        ("openrouter", ["compatible", "https://openrouter.ai/api/v1", "env:OPENROUTER_API_KEY"]),
        ("vllm", ["compatible", "http://127.0.0.1:8000/v1"]),
        ("lm-studio", ["compatible", "http://127.0.0.1:1234/v1"]),
        ("llama.cpp", ["compatible", "http://127.0.0.1:8080/v1"]),
        ("llama_cpp", ["compatible", "http://127.0.0.1:8080/v1"]),
        ("Gemini", ["compatible", "https://generativelanguage.googleapis.com/v1beta/openai"]),
        ("qwen", ["compatible", "https://dashscope.aliyuncs.com/compatible-mode/v1"]),
        ("kimi", ["compatible", "https://api.moonshot.ai/v1"]),
        ("together", ["compatible", "https://api.together.ai/v1"]),
        ("bedrock", ["longtail"]),
        ("litellm", ["longtail"]),
    ],
)
def test_a_service_that_is_no_kind_gets_the_stanza_that_is_meant(
    kind: str, lines: list[str]
) -> None:
    text = f'[upstreams.mine]\nkind = "{kind}"\n[models.m]\nupstream = "mine"\n'
    told = mistakes(text)["upstreams.mine.kind"]
    for line in lines:
        assert f'"{line}"' in told
    written = told.partition("write:")[2].replace("\n  ", "\n")
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    found = config.parse(f'{written}\n[models.m]\nupstream = "mine"\n', environment=keys)
    assert found.upstreams["mine"].kind == lines[0]


def test_a_section_that_holds_no_tables_is_a_mistake() -> None:
    found = mistakes("upstreams = 3\nmodels = []\n")
    assert found["upstreams"] == "must hold tables: write [upstreams.NAME]."
    assert found["models"] == "must hold tables: write [models.NAME]."


def test_a_file_without_models_is_a_mistake() -> None:
    assert "There are none" in mistakes("[server]\nport = 1")["models"]


def test_a_misspelt_secret_is_not_shown() -> None:
    text = f'[upstreams.up]\nkind = "claude"\napi_kye = "{KEY}"\nheaders = "{KEY}"\n{ONE}'
    text = text.replace(ONE, '[models.one]\nupstream = "up"\n')
    found = mistakes(text)
    assert list(found) == ["upstreams.up.api_kye", "upstreams.up.headers"]
    assert KEY not in str(found)


def test_a_syntax_error_has_its_line_and_column() -> None:
    assert "line 2, column 8" in mistakes("[server]\nport = \n")[""]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[upstreams.up]\nkind = compatible\n", 'in quotes: kind = "compatible".'),
        ("[models.up/*]\n", 'in quotes: [models."relay/*"].'),
        ("[server]\n[server]\n", "Each [section] stands once"),
        ("[server]\nport = 1\nport = 2\n", "Each key stands once"),
    ],
)
def test_a_syntax_error_says_what_to_write(text: str, hint: str) -> None:
    assert hint in mistakes(text)[""]


@pytest.mark.parametrize(
    ("content", "words"), [(b"\xff\xfe", "not UTF-8"), (None, "No such file or directory")]
)
def test_an_unreadable_file_is_a_mistake(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "config.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        config.load(path)


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
    key = data.draw(st.sampled_from(sorted(SECTIONS[section])))
    text = f"[{section.replace('NAME', 'up')}]\n{key} = {toml(data.draw(TOML))}\n"
    named: tuple[Mistake, ...] = ()
    try:
        config.parse(text, environment={})
    except ConfigError as error:
        named = error.mistakes
    assert all(one.text.endswith(".") for one in named)


def test_every_key_is_explained_and_every_default_is_allowed() -> None:
    for section, keys in SECTIONS.items():
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
        address = "" if kind in KINDS else "base_url = 'http://127.0.0.1'\n"
        address = "base_url = 'http://127.0.0.1'\n" if kind == "compatible" else address
        text = f"[upstreams.up]\nkind = '{kind}'\n{address}[models.one]\nupstream = 'up'\n"
        assert config.parse(text, environment={}).upstreams["up"].kind == kind


def test_a_model_key_is_either_served_or_said_to_come() -> None:
    assert {name for name, key in MODEL.items() if key.coming} >= {"server_tools", "fallback"}


def test_memories_are_kept_in_a_file_for_a_week_unless_said_otherwise() -> None:
    recall = whole().recall
    assert (recall.store, recall.path, recall.max_age) == ("file", None, 604_800)
    text = ONE + '[recall]\nstore = "memory"\nmax_bytes = 100000\n'
    assert config.parse(text, environment={}).recall.max_bytes == 100_000
    for kind, kept in (("claude", True), ("compatible", False)):
        text = (
            f"[models.a]\nupstream = 'up'\n[upstreams.up]\nkind = '{kind}'\nbase_url = 'http://a'"
        )
        assert config.parse(text, environment={}).models["a"].recall is kept


TWO = f"{ONE}[models.two]\npipeline = 'reason-then-answer'\n"


def test_a_pipeline_searches_tavily_without_a_word_about_it() -> None:
    text = f"{TWO}reasoner = 'one'\nanswerer = 'one'\nsearch = 'tavily'\n"
    found = config.parse(text, environment={"TAVILY_API_KEY": "tvly-x"})
    assert found.upstreams["tavily"].base_url == "https://api.tavily.com"
    assert found.upstreams["tavily"].missing() == ()
    own = "[upstreams.tavily]\nkind = 'tavily'\nbase_url = 'http://127.0.0.1:9'\n"
    found = config.parse(text + own, environment={})
    assert found.upstreams["tavily"].base_url == "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("answerer = 'one'", "models.two.reasoner", "is missing"),
        ("reasoner = 'on'\nanswerer = 'one'", "models.two.reasoner", "no such model"),
        ("reasoner = 'one'\nanswerer = 'two'", "models.two.answerer", "a pipeline itself"),
        (
            "reasoner = 'one'\nanswerer = 'one'\nsearch = 'up'",
            "models.two.search",
            "of kind tavily",
        ),
        (
            "reasoner = 'one'\nanswerer = 'one'\nupstream = 'up'",
            "models.two.upstream",
            "is not for",
        ),
        ("reasoner = 'one'\nanswerer = 'one'\ntemplate = 'x'", "models.two.template", "{thought}"),
        ("reasoner = 'one'\nanswerer = 'one'\nrethink = 'x'", "models.two.rethink", "on-results"),
        ("reasoning = 'loud'", "models.two.reasoning", "think-tags"),
    ],
)
def test_mistakes_of_pipelines(text: str, key: str, words: str) -> None:
    assert words in mistakes(TWO + text)[key]


def test_keys_of_pipelines_need_one() -> None:
    text = f"{ONE}[models.two]\nupstream = 'up'\nsearch_show = true\n"
    assert "add pipeline" in mistakes(text)["models.two.search_show"]


def test_importing_the_config_loads_no_web_package() -> None:
    heavy = {"aiohttp", "pydantic", "fastapi", "orjson", "importlib.metadata"}
    program = f"import sys, middleware.config; print(*{heavy} & {{*sys.modules}})"
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (loaded.returncode, loaded.stdout) == (0, "\n"), loaded.stderr


LOCAL = '[upstreams.l]\nkind = "local"\n[models.local]\nupstream = "l"\n'
UNREADABLE: dict[str, tuple[str, str]] = {
    "a user nobody knows": (f'{LOCAL}path = "~nobody-of-that-name/x"', "models.local.path"),
    "no text": (f"{LOCAL}path = 5", "models.local.path"),
    "no text, among options": (f"{LOCAL}options = {{ path = 5 }}", "models.local.options.path"),
    "no text, upstream": (
        LOCAL.replace('"local"\n', '"local"\noptions = { path = 5 }\n', 1),
        "upstreams.l.options.path",
    ),
    "a letter no name has": (f'{LOCAL}path = "a\\u0000b"', "models.local.path"),
    "memories of a user nobody knows": (
        f'{LOCAL}[recall]\npath = "~nobody-of-that-name/x"',
        "recall.path",
    ),
    "memories in a number": (f"{LOCAL}[recall]\npath = 5", "recall.path"),
    "many digits": (f"{LOCAL}threads = {'9' * 5000}", ""),
    "many hexadecimal digits": (f"{LOCAL}threads = 0x{'f' * 5000}", "models.local.threads"),
    "a large number in a free table": (
        f"{LOCAL}override = {{ seed = [1, {1 << 63}] }}",
        "models.local.override.seed",
    ),
    "many brackets": (f"{LOCAL}path = {'[' * 3000}{']' * 3000}", ""),
    "some brackets": (
        f"{LOCAL}defaults = {{ stop = {'[' * 60}{']' * 60} }}",
        "models.local.defaults",
    ),
    "many tables": (f"{LOCAL}[models.local.defaults.{'.'.join('a' * 40)}]\nb = 1", "models.local"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_whatever_cannot_be_read_is_a_mistake_with_its_key(kind: str) -> None:
    text, key = UNREADABLE[kind]
    (found,) = mistakes(text)
    assert found.startswith(key)
    assert bool(found) == bool(key)


def test_a_path_may_begin_at_home() -> None:
    read = config.parse(f'{LOCAL}[recall]\npath = "~/r.sqlite3"', environment={})
    assert read.recall.path == str(Path.home() / "r.sqlite3")


def test_a_config_says_of_which_file_it_is(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(LOCAL)
    assert config.load(path, environment={}).stamp == config.stamp(path)
    assert config.parse(LOCAL, environment={}).stamp is None
    assert config.stamp(tmp_path / "none") is None
