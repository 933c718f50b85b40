"""A config of LiteLLM's proxy becomes ours: what is carried, and that the rest is told."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.cli.importers.collecting import Lost, Unreadable, lost_lines
from middleware.cli.importers.litellm import Imported, from_litellm
from tests.cli.importing import SECRET, TWELVE, Everything, imported


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
    assert found.clients["admin"].key.variable == "LITELLM_MASTER_KEY"
    assert found.clients["admin"].admin
    assert (found.server.host, found.server.port) == ("127.0.0.1", 8000)
    assert models["sonnet"].fallback == ("gpt-4o", "deepseek")


def test_what_is_not_carried_is_named_with_the_reason(twelve: Imported) -> None:
    assert lost_lines(twelve.lost) == [
        "litellm_params.rpm of sonnet: an upstream has no rates here: one that answers 429 rests, "
        "and clients have limits",
        "litellm_params.api_key of deepseek: is written out, and not copied: set the environment "
        "variable DEEPSEEK_API_KEY",
        "model_info.id of gpt-4o: the gateway has its own knowledge of models; abilities can be "
        "set in the model",
        "litellm_params.extra_headers.Authorization of local.qwen: is written out, and not "
        "copied: set the environment variable LOCAL_QWEN_AUTHORIZATION",
        "litellm_params.aws_secret_access_key of bedrock: is written out, and not copied: set "
        "AWS_SECRET_ACCESS_KEY",
        "router_settings.model_group_alias of nowhere: there is no model 'nothing' for it",
        "litellm_settings.drop_params: not needed: what an upstream cannot take is left out, and "
        "the answer says so",
        "litellm_settings.callbacks: what happens is told by /metrics and [telemetry]",
        "general_settings.database_url: is not read: usage goes to [ledger], and clients stand in "
        "[clients]",
    ]


def test_no_secret_that_was_written_out_is_written_or_told(twelve: Imported) -> None:
    said = twelve.text + "\n".join(lost_lines(twelve.lost))
    assert SECRET not in said
    assert "tok-0123456789" not in said


def test_every_imported_model_that_needs_no_litellm_can_be_built(twelve: Imported) -> None:
    text = twelve.text.replace('kind = "longtail"', 'kind = "scripted"')
    text = re.sub(r"options = \{ litellm = .*", "", text)
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
