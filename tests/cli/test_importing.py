"""A config of LiteLLM's proxy becomes ours: what is carried, and that the rest is told."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.wire.http import Transport
from middleware import config
from middleware.__main__ import main
from middleware.cli.common import FINE, LACKING, WRONG
from middleware.cli.importers import Imported, Lost, Unreadable, from_litellm, lost_lines, toml
from middleware.routing import build

SECRET = "sk-written-out-0123456789"
TWELVE = f"""
model_list:
  - model_name: sonnet
    litellm_params:
      model: anthropic/claude-sonnet-5-5
      api_key: os.environ/ANTHROPIC_API_KEY
      api_version: 2023-06-01
      max_tokens: 8192
      rpm: 10
  - model_name: "claude-*"
    litellm_params: {{model: "anthropic/claude-*", api_key: os.environ/ANTHROPIC_API_KEY}}
  - model_name: deepseek
    litellm_params: {{model: deepseek/deepseek-chat, api_key: {SECRET}, temperature: 0.2}}
  - model_name: "ollama/*"
    litellm_params: {{model: "ollama_chat/*", api_base: "http://localhost:11434/"}}
  - model_name: qwen
    litellm_params:
      model: ollama/qwen3:8b
      api_base: http://localhost:11434
      num_ctx: 16384
      keep_alive: 30m
  - model_name: gpt-4o
    litellm_params:
      model: gpt-4o
      timeout: 900
      stream_timeout: "30"
      max_retries: 1
      organization: org-1
    model_info: {{id: a, supports_vision: true}}
  - model_name: local.qwen
    litellm_params:
      model: openai/Qwen/Qwen3
      api_base: http://vllm.lan:8000/v1/chat/completions
      api_key: none
      extra_headers: {{X-Team: a, Authorization: Bearer tok-0123456789}}
      extra_body: {{top_k: 3}}
      additional_drop_params: [user]
  - model_name: llama
    litellm_params: {{model: groq/llama-3.3-70b}}
  - model_name: azure
    litellm_params:
      model: azure/gpt-deploy
      api_base: os.environ/AZURE_BASE
      api_version: "2024-10-21"
      api_key: os.environ/AZURE_KEY
  - model_name: bedrock
    litellm_params:
      model: bedrock/anthropic.claude-v3
      aws_region_name: us-east-1
      aws_access_key_id: os.environ/AWS_ACCESS_KEY_ID
      aws_secret_access_key: {SECRET}
  - model_name: anything/*
    litellm_params: {{model: "openrouter/*", api_key: os.environ/OPENROUTER_API_KEY}}
  - model_name: hosted
    litellm_params: {{model: hosted_vllm/m, api_base: os.environ/VLLM_BASE}}
litellm_settings: {{drop_params: true, num_retries: 3, request_timeout: 700, callbacks: [x]}}
router_settings:
  model_group_alias: {{gpt-4: gpt-4o, haiku: {{model: claude-haiku-5-5}}, nowhere: nothing}}
  fallbacks: [{{sonnet: [gpt-4o, deepseek]}}]
  routing_strategy: simple-shuffle
general_settings: {{master_key: os.environ/LITELLM_MASTER_KEY, database_url: x}}
"""
SET = {"AZURE_BASE": "https://a.openai.azure.com", "VLLM_BASE": "http://gpu:8000/v1"}


class Everything(dict[str, str]):
    """An environment in which every variable is set."""

    def get(self, name: str, default: Any = None) -> Any:
        return f"value-of-{name}"


def imported(text: str, environment: Mapping[str, str] = SET) -> Imported:
    found = from_litellm(text, "proxy.yaml", environment)
    config.parse(found.text, environment=Everything())  # whatever comes out is valid
    return found


def one(params: Mapping[str, Any], **entry: Any) -> Imported:
    entry = {"model_name": "m", "litellm_params": dict(params), **entry}
    return imported(yaml.safe_dump({"model_list": [entry]}))


def parts(found: Imported) -> tuple[dict[str, Any], dict[str, Any]]:
    """The only upstream and the only model."""
    written = tomllib.loads(found.text)
    ((upstream,), (model,)) = written["upstreams"].values(), written["models"].values()
    return upstream, model


# All twelve ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def twelve() -> Imported:
    return imported(TWELVE)


def test_every_model_and_alias_is_there(twelve: Imported) -> None:
    found = config.parse(twelve.text, environment=Everything())
    assert list(found.models) == [
        "sonnet", "claude-*", "deepseek", "ollama/*", "qwen", "gpt-4o", "local.qwen", "llama",
        "azure", "bedrock", "anything/*", "hosted", "gpt-4", "haiku",
    ]  # fmt: skip
    assert {name: (m.upstream, m.name) for name, m in found.models.items()} == {
        "sonnet": ("anthropic", "claude-sonnet-5-5"),
        "claude-*": ("anthropic", "claude-*"),
        "deepseek": ("deepseek", "deepseek-chat"),
        "ollama/*": ("ollama", "*"),
        "qwen": ("ollama", "qwen3:8b"),
        "gpt-4o": ("openai", "gpt-4o"),
        "local.qwen": ("vllm-lan", "Qwen/Qwen3"),
        "llama": ("groq", "llama-3.3-70b"),
        "azure": ("azure", "azure/gpt-deploy"),
        "bedrock": ("bedrock", "bedrock/anthropic.claude-v3"),
        "anything/*": ("openrouter", "*"),
        "hosted": ("gpu", "m"),
        "gpt-4": ("openai", "gpt-4o"),
        "haiku": ("anthropic", "claude-haiku-5-5"),
    }
    assert {name: up.kind for name, up in found.upstreams.items()} == {
        "anthropic": "claude", "deepseek": "deepseek", "ollama": "ollama", "openai": "compatible",
        "vllm-lan": "compatible", "groq": "compatible", "azure": "longtail",
        "bedrock": "longtail", "openrouter": "compatible", "gpu": "compatible",
    }  # fmt: skip


def test_addresses_and_keys_are_those_litellm_used(twelve: Imported) -> None:
    found = config.parse(twelve.text, environment=Everything()).upstreams
    assert {name: up.base_url for name, up in found.items()} == {
        "anthropic": "https://api.anthropic.com",
        "deepseek": "https://api.deepseek.com",
        "ollama": "http://localhost:11434",
        "openai": "https://api.openai.com/v1",
        "vllm-lan": "http://vllm.lan:8000/v1",
        "groq": "https://api.groq.com/openai/v1",
        "azure": "https://a.openai.azure.com",
        "bedrock": "",
        "openrouter": "https://openrouter.ai/api/v1",
        "gpu": "http://gpu:8000/v1",
    }
    keys = {name: up.api_key.variable for name, up in found.items() if up.api_key}
    assert keys == {
        "anthropic": "ANTHROPIC_API_KEY",
        "deepseek": "DEEPSEEK_API_KEY",
        "openai": "OPENAI_API_KEY",
        "vllm-lan": "",
        "groq": "GROQ_API_KEY",
        "azure": "AZURE_KEY",
        "openrouter": "OPENROUTER_API_KEY",
    }


def test_what_was_said_of_models_is_said_again(twelve: Imported) -> None:
    found = config.parse(twelve.text, environment=Everything())
    models, upstreams = found.models, found.upstreams
    assert models["sonnet"].defaults == {"max_tokens": 8192}
    assert models["deepseek"].defaults == {"temperature": 0.2}
    assert models["qwen"].options == {"num_ctx": 16384, "keep_alive": "30m"}
    assert (models["gpt-4o"].retry, models["llama"].retry) == (1, 3)
    assert models["gpt-4o"].abilities == {"vision": True}
    assert models["local.qwen"].defaults == {"top_k": 3}
    assert models["local.qwen"].drop == ("user",)
    openai = upstreams["openai"]
    assert {k: v for k, v in openai.timeouts.items() if k in ("first_event", "plain", "total")} == {
        "first_event": 30, "plain": 900, "total": 900,
    }  # fmt: skip
    assert openai.headers["OpenAI-Organization"].value == "org-1"
    assert upstreams["vllm-lan"].headers["X-Team"].value == "a"
    assert upstreams["vllm-lan"].headers["Authorization"].variable == "LOCAL_QWEN_AUTHORIZATION"
    assert upstreams["groq"].timeouts["plain"] == 700
    assert upstreams["azure"].options == {"litellm": {"api_version": "2024-10-21"}}
    assert upstreams["bedrock"].options == {"litellm": {"aws_region_name": "us-east-1"}}
    assert [key.variable for key in found.server.keys] == ["LITELLM_MASTER_KEY"]
    assert (found.server.host, found.server.port) == ("127.0.0.1", 8000)
    assert '# Not done yet: fallbacks = ["gpt-4o", "deepseek"]\n[models.sonnet]' in twelve.text


def test_what_is_not_carried_is_named_with_the_reason(twelve: Imported) -> None:
    assert lost_lines(twelve.lost) == [
        "litellm_params.rpm of sonnet: there are no limits per model here",
        "litellm_params.api_key of deepseek: is written out, and not copied: set the environment "
        "variable DEEPSEEK_API_KEY",
        "model_info.id of gpt-4o: the gateway has its own knowledge of models; abilities can be "
        "set in the model",
        "litellm_params.extra_headers.Authorization of local.qwen: is written out, and not "
        "copied: set the environment variable LOCAL_QWEN_AUTHORIZATION",
        "litellm_params.aws_secret_access_key of bedrock: is written out, and not copied: set "
        "AWS_SECRET_ACCESS_KEY",
        "router_settings.model_group_alias of nowhere: there is no model 'nothing' for it",
        "fallbacks of sonnet: this version asks no other model when one fails (gpt-4o, deepseek)",
        "litellm_settings.drop_params: not needed: what an upstream cannot take is left out, and "
        "the answer says so",
        "litellm_settings.callbacks: has no counterpart here",
        "router_settings.routing_strategy: there is no load balancing here",
        "general_settings.database_url: has no counterpart here",
    ]


def test_no_secret_that_was_written_out_is_written_or_told(twelve: Imported) -> None:
    said = twelve.text + "\n".join(lost_lines(twelve.lost))
    assert SECRET not in said
    assert "tok-0123456789" not in said


def test_every_imported_model_that_needs_no_litellm_can_be_built(twelve: Imported) -> None:
    text = twelve.text.replace('kind = "longtail"', 'kind = "scripted"')
    text = text.replace("[server]", '[recall]\nstore = "off"\n[server]', 1)
    routes = build(config.parse(text, environment=Everything()), Transport())
    absent = {e.id: e.reason for e in routes.listing() if not e.available}
    assert absent == {}


# One by one ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "said", "kind", "name"),
    [
        ("claude-opus-5-5", {}, "claude", "claude-opus-5-5"),
        ("o3-mini", {}, "compatible", "o3-mini"),
        ("mistral/large", {}, "compatible", "large"),
        ("gemini/gemini-3-pro", {}, "longtail", "gemini/gemini-3-pro"),
        ("nobody-knows", {}, "longtail", "nobody-knows"),
        ("openai/responses/gpt-5", {}, "longtail", "openai/responses/gpt-5"),
        ("hosted_vllm/m", {}, "longtail", "hosted_vllm/m"),
        ("org/m", {"custom_llm_provider": "openai"}, "compatible", "org/m"),
        ("openai/m", {"custom_llm_provider": "openai"}, "compatible", "m"),
        ("m", {"custom_llm_provider": "bedrock"}, "longtail", "bedrock/m"),
        ("text-completion-openai/m", {}, "longtail", "text-completion-openai/m"),
    ],
)  # fmt: skip
def test_a_provider_becomes_the_kind_that_speaks_its_language(
    model: str, said: dict[str, Any], kind: str, name: str
) -> None:
    upstream, written = parts(one({"model": model, **said}))
    assert (upstream["kind"], written.get("name", "m")) == (kind, name)


@pytest.mark.parametrize(
    ("model", "address", "written"),
    [
        ("anthropic/c", "https://relay.lan/v1/messages", "https://relay.lan"),
        ("anthropic/c", "https://api.anthropic.com/v1", None),
        ("deepseek/d", "https://api.deepseek.com/beta", "https://api.deepseek.com/beta"),
        ("ollama/q", "http://10.0.0.2:11434/v1/", "http://10.0.0.2:11434"),
        ("openai/x", "http://10.0.0.2/v1/chat/completions/", "http://10.0.0.2/v1"),
    ],
)  # fmt: skip
def test_an_address_loses_what_is_added_anyway(
    model: str, address: str, written: str | None
) -> None:
    upstream, _ = parts(one({"model": model, "api_base": address, "api_key": "none"}))
    assert upstream.get("base_url") == written


def test_openais_key_is_not_sent_to_a_server_of_ones_own() -> None:
    found = one({"model": "openai/x", "api_base": "http://gpu/v1"})
    assert "api_key" not in parts(found)[0]
    assert found.lost[0].key == "litellm_params.api_key"
    assert "OPENAI_API_KEY is not sent to an address of your own" in found.lost[0].why


def test_two_written_out_keys_get_two_variables() -> None:
    entries = [
        {"model_name": name, "litellm_params": {"model": "anthropic/c", "api_key": key}}
        for name, key in (("a", SECRET), ("b", SECRET), ("c", SECRET + "x"))
    ]
    found = tomllib.loads(imported(yaml.safe_dump({"model_list": entries})).text)
    assert {name: found["models"][name]["upstream"] for name in "abc"} == {
        "a": "anthropic", "b": "anthropic", "c": "anthropic-2",
    }  # fmt: skip
    assert found["upstreams"]["anthropic-2"]["api_key"] == "env:ANTHROPIC_API_KEY_2"


def test_shared_credentials_and_anchors_are_followed() -> None:
    found = imported("""
credential_list:
  - credential_name: relay
    credential_values: {api_key: os.environ/RELAY_KEY, api_base: "https://relay.lan/v1"}
base: &base {litellm_credential_name: relay}
model_list:
  - {model_name: m, litellm_params: {<<: *base, model: openai/x}}
""")
    upstream, _ = parts(found)
    assert (upstream["api_key"], upstream["base_url"]) == ("env:RELAY_KEY", "https://relay.lan/v1")
    assert found.lost == (Lost("", "base", "has no counterpart here"),)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"litellm_params": {"model": "openai/e"}, "model_info": {"mode": "image_generation"}},
         "its mode is image_generation, and here are only chat models and embeddings"),
        ({"litellm_params": {"model": "anthropic/e"}, "model_info": {"mode": "embedding"}},
         "an upstream of kind claude makes no embeddings"),
        ({"litellm_params": {"model": "openai/e", "api_base": "os.environ/NOT_SET"}},
         "its api_base is in the environment variable NOT_SET, which is not set here: set it and "
         "import again"),
        ({"litellm_params": {"model": "openai/e", "api_base": "ftp://x"}},
         "its api_base cannot be used: write an http:// or https:// address"),
        ({"litellm_params": {"model": "openai/*"}}, "a * in the upstream's name needs one in the "
         "model's own"),
        ({"litellm_params": {"model": "openai/*"}, "model_name": "*x*"},
         "its name has more than one *"),
        ({"litellm_params": {}}, "it names no model"),
        ({"litellm_params": {"model": "openai/y"}, "model_name": "first"},
         "a second deployment of one name: there is no load balancing here"),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_carried_says_why(entry: dict[str, Any], why: str) -> None:
    first = {"model_name": "first", "litellm_params": {"model": "openai/x"}}
    found = imported(yaml.safe_dump({"model_list": [first, {"model_name": "m", **entry}]}))
    assert found.models == ("first",)
    assert [lost.why for lost in found.lost if lost.key == "model_list"] == [why]


@pytest.mark.parametrize(
    ("params", "key", "why"),
    [
        ({"timeout": "soon"}, "timeout", "is no number from 0.001 to 1e+08"),
        ({"max_retries": 9}, "max_retries", "is no number from 0 to 5"),
        ({"temperature": "os.environ/NOT_SET"}, "temperature",
         "is in the environment variable NOT_SET, which is not set here"),
        ({"api_key": "os.environ/not a name"}, "api_key",
         "names an environment variable that cannot be read"),
        ({"mirostat": 1}, "mirostat", "has no counterpart here"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_carried_says_why(
    params: dict[str, Any], key: str, why: str
) -> None:
    found = one({"model": "openai/x", **params})
    assert Lost("m", f"litellm_params.{key}", why) in found.lost


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "is not valid YAML"),
        ("- a", "has no list 'model_list'"),
        ("model_list: {}", "has no list 'model_list'"),
        ("model_list: []", "has no model that could be carried"),
        ("model_list: [{model_name: m, litellm_params: {}}]", "carried: m: it names no model"),
        ("a: !!python/object/apply:os.getcwd []", "is not valid YAML"),
    ],
)  # fmt: skip
def test_what_is_no_config_of_the_proxy_is_refused(text: str, told: str) -> None:
    with pytest.raises(Unreadable, match=told):
        from_litellm(text, "x.yaml", {})


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
    assert err == "1 models written to stdout.\n"


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
