"""`usetool import` on whatever stands in the file: what it writes and says."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from middleware import config
from middleware.__main__ import main
from middleware.cli.command import FINE, LACKING, WRONG
from middleware.cli.importers import toml
from middleware.cli.importers.collecting import Unreadable, lost_lines
from middleware.cli.importers.litellm import from_litellm
from tests.cli.importing import SET, TWELVE, imported

# Whatever stands there -------------------------------------------------------------------------


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.dates()
    | st.floats(allow_nan=False) | st.sampled_from(["os.environ/A", "http://h/v1", "*"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip
PARAMS = st.sampled_from(
    ["api_base", "api_key", "api_version", "timeout", "max_retries", "headers", "num_ctx", "stop",
     "keep_alive", "temperature", "extra_body", "aws_region_name", "organization", "new"]
)  # fmt: skip
MODELS = st.sampled_from(["openai/x", "ollama/q", "anthropic/c", "bedrock/b", "gpt-5", "a/*"])


@example("m", "gpt-5", {"headers": {"a": "", "b": "$X", "c": "ü", "d": "env:", "key": "$Y"}}, None)
@example("m", "gpt-5", {"api_key": "${X}"}, None)
@example("m", "gpt-5", {"api_base": "http://a:b@c/v1", "stop": ["a", 1.5, None]}, None)
@given(st.text(min_size=1), MODELS, st.dictionaries(PARAMS, VALUES), VALUES)
def test_whatever_comes_out_is_a_valid_config_and_whatever_stays_is_named(
    name: str, model: str, params: dict[str, Any], more: Any
) -> None:
    entry = {"model_name": name, "litellm_params": {"model": model, **params}}
    text = yaml.safe_dump({"model_list": [entry], "router_settings": more})
    with suppress(Unreadable):  # no model was left
        found = imported(text, {})
        told = "\n".join(lost_lines(found.lost))
        assert found.models == (name,)
        assert not [key for key in ("new", "num_ctx") if params.get(key) and model != "ollama/q"
                    and f"litellm_params.{key} of" not in told]  # fmt: skip


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.text(), st.text())
def test_what_is_written_as_toml_is_read_back(table: dict[str, Any], name: str, note: str) -> None:
    plain = {k: v for k, v in table.items() if isinstance(v, str | int | float | bool)}
    written = tomllib.loads(toml.table(("a", name), plain, [note]))
    assert written == {"a": {name: plain}}


# The command -----------------------------------------------------------------------------------


@pytest.fixture
def proxy(tmp_path: Path) -> Path:
    path = tmp_path / "proxy.yaml"
    path.write_text(TWELVE.replace("os.environ/VLLM_BASE", "http://gpu:1/v1"), "utf-8")
    return path


def test_the_command_writes_a_file_that_check_reads(
    proxy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_BASE", SET["AZURE_BASE"])
    written = proxy.parent / "mine.toml"
    assert main(["import", "litellm", str(proxy), "-o", str(written)]) == LACKING
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"14 models written to {written}.\nNot carried:\n  litellm_params.rpm of")
    monkeypatch.setenv("LITELLM_MASTER_KEY", "k-0123456789")
    assert len(config.load(written).models) == 14


def test_the_command_prints_and_is_fine_if_nothing_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("model_list: [{model_name: m, litellm_params: {model: gpt-4o}}]", "utf-8")
    assert main(["import", "litellm", str(path)]) == FINE
    out, err = capsys.readouterr()
    assert "[models.m]" in out
    assert err == "1 model written to stdout.\n"


def test_the_command_writes_over_nothing_unless_told(
    proxy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = proxy.parent / "config.toml"
    there.write_text("mine", "utf-8")
    command = ["import", "litellm", str(proxy), "-o", str(there)]
    assert main(command) == WRONG
    assert there.read_text("utf-8") == "mine"
    assert "is there already: choose another name, or --force" in capsys.readouterr().err
    assert main([*command, "--force"]) == LACKING


@pytest.mark.parametrize(("content", "told"), [(b"a: [", "p.yaml is not valid YAML"),
                                               (b"\xff\xfe\xff", "p.yaml is not UTF-8 text"),
                                               (None, "p.yaml: No such file")])  # fmt: skip
def test_the_command_says_what_is_wrong_with_the_file(
    content: bytes | None, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.yaml"
    if content is not None:
        path.write_bytes(content)
    assert main(["import", "litellm", str(path)]) == WRONG
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert told in err


ACCOUNTS = """
model_list:
- model_name: first
  litellm_params: {model: anthropic/claude-a, api_key: os.environ/ANTHROPIC_API_KEY}
- model_name: second
  litellm_params: {model: anthropic/claude-b, api_key: sk-other-account-0123456789}
- model_name: third
  litellm_params: {model: groq/llama}
- model_name: fourth
  litellm_params: {model: groq/llama-2, api_key: gsk-other-account-0123456789}
- model_name: fifth
  litellm_params: {model: mistral/small, api_key: mist-0123456789}
- model_name: sixth
  litellm_params: {model: xai/grok, api_key: xai-0123456789}
- litellm_params: {model: openai/gpt-5}
- model_name: text-embedding-3-small
  litellm_params: {model: text-embedding-3-small}
  model_info: {mode: embedding}
"""


def test_a_key_that_is_written_out_gets_no_variable_of_another_account() -> None:
    environment = {"XAI_API_KEY": "somebody's", "MISTRAL_API_KEY": "mist-0123456789"}
    found = from_litellm(ACCOUNTS, "proxy.yaml", environment)
    parsed = config.parse(found.text, environment={})
    keys = {}
    for name, model in parsed.models.items():
        key = parsed.upstreams[model.upstream].api_key
        keys[name] = key.variable if key else ""
    assert keys == {
        "first": "ANTHROPIC_API_KEY",
        "second": "ANTHROPIC_API_KEY_2",
        "third": "GROQ_API_KEY",
        "fourth": "GROQ_API_KEY_2",
        "fifth": "MISTRAL_API_KEY",
        "sixth": "XAI_API_KEY_2",
        "text-embedding-3-small": "OPENAI_API_KEY",
    }
    assert any("ANTHROPIC_API_KEY_2" in one.why for one in found.lost if one.of == "second")


def test_an_entry_without_a_name_is_said_and_not_carried() -> None:
    found = from_litellm(ACCOUNTS, "proxy.yaml", {})
    assert not [name for name in found.models if "model_list" in name]
    assert [one.why for one in found.lost if one.of == "model_list[6]"] == [
        "it has no model_name: clients could not ask for it"
    ]


def test_embeddings_are_carried_to_who_makes_them() -> None:
    found = from_litellm(ACCOUNTS, "proxy.yaml", {})
    parsed = config.parse(found.text, environment={})
    model = parsed.models["text-embedding-3-small"]
    assert parsed.upstreams[model.upstream].base_url == "https://api.openai.com/v1"


def test_a_yaml_that_holds_itself_is_read() -> None:
    text = "model_list:\n- &a {model_name: x, litellm_params: {model: gpt-5}, own: *a}\n"
    assert from_litellm(text, "proxy.yaml", {}).models == ("x",)
