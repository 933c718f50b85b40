"""One entry of LiteLLM's `model_list` → an upstream and a model of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from adapters.kind import known_kind
from adapters.options import Wrong
from middleware.cli.importers.collecting import (
    Table,
    Taking,
    is_reference,
    looks_secret,
    variable_name,
    variable_of,
)
from middleware.cli.importers.prices import price_of, shares_of
from middleware.cli.importers.providers import Reached, reach
from middleware.config.keys import OWN_FIELDS, option_keys
from middleware.config.values import ADDRESS
from middleware.doors import FIELDS

_CHAT = (None, "chat", "completion", "responses")
_EMBEDS = ("compatible", "ollama", "longtail")
# Fields OpenAI does not have and leaves of ours know.
_REQUEST = frozenset(FIELDS) - OWN_FIELDS | {"min_p", "repetition_penalty", "thinking", "top_k"}
_CONNECTION = ("aws_", "azure_", "vertex_", "watsonx_", "region_name", "tenant_id", "client_id")
_ORGANIZATION = "OpenAI-Organization"
_ABILITIES: Mapping[str, str] = {
    "vision": "supports_vision",
    "json_schema": "supports_response_schema",
}
_OWN_TABLE = "the gateway has its own knowledge of models; abilities can be set in the model"
_NO_BUDGET = "budgets are of clients here, not of models"
_FIXED = "a limited key rests and a failing upstream is passed over by rules of our own"
WHY: Mapping[str, str] = {
    **dict.fromkeys(("max_budget", "budget_duration"), _NO_BUDGET),
    **dict.fromkeys(("cooldown_time", "allowed_fails", "disable_cooldowns", "retry_after"), _FIXED),
    **dict.fromkeys(("retry_policy", "allowed_fails_policy"), _FIXED),
    "drop_params": "not needed: what an upstream cannot take is left out, and the answer says so",
    "modify_params": "not needed: requests are fitted to the upstream, and the answer says so",
    "mock_response": 'an upstream of kind "scripted" answers by rules',
}


class NotCarried(Exception):
    """A whole model has no place in our config, and why."""


@dataclass(frozen=True, slots=True)
class CarriedOver:
    upstream: str
    """The name its upstream would like to have."""
    service: Table
    model: Table
    shares: Mapping[str, float] = field(default_factory=dict)
    """Of the load of all deployments of its name."""
    embeds: bool = False


class Usual(NamedTuple):
    """What holds for deployments that do not say it themselves."""

    retries: int | None
    at_once: int | None


def carry(params: Taking, information: Taking, usual: Usual) -> CarriedOver:
    """Carry what can be; the rest is lost with a reason, or the whole raises `NotCarried`."""
    model = params.take("model")
    if not isinstance(model, str) or not model:
        raise NotCarried("it names no model")
    mode = information.take("mode")
    if mode not in (*_CHAT, "embedding"):
        raise NotCarried(f"its mode is {mode}, and here are only chat models and embeddings")
    said, address = params.text("custom_llm_provider"), _address(params)
    reached = reach(model, said, bool(address))
    if mode == "embedding" and reached.provider.kind not in _EMBEDS:
        raise NotCarried(f"an upstream of kind {reached.provider.kind} makes no embeddings")
    carried = CarriedOver(
        _upstream_name(reached, address),
        _service(params, reached, address, usual),
        _model(params, information, reached, usual),
        shares_of(params),
        mode == "embedding",
    )
    params.lose_rest(WHY)
    information.lose_rest({}, _OWN_TABLE)
    return carried


def _address(params: Taking) -> str | None:
    given = params.left.get("api_base") or params.left.get("base_url")
    address = params.text("api_base", "base_url")
    if is_reference(given) and not address:
        # Without its address nothing can be written that would reach it.
        raise NotCarried(f"its api_base {params.lost[-1].why}: set it and import again")
    return address


def _upstream_name(reached: Reached, address: str | None) -> str:
    host = urlsplit(address).hostname if address else None
    if host is None or reached.provider.kind != "compatible":
        return reached.name
    usual = urlsplit(reached.provider.base_url).hostname
    return reached.name if host == usual else host.replace(".", "-")


def _service(params: Taking, reached: Reached, address: str | None, usual: Usual) -> Table:
    kind = reached.provider.kind
    found: Table = {"kind": kind, "base_url": _base_url(reached, address)}
    found["api_key"] = _key(params, reached, bool(address))
    headers = params.headers("headers", "extra_headers")
    organization = params.text("organization") if kind == "compatible" else None
    if organization and params.fits("organization", _ORGANIZATION, organization):
        headers[_ORGANIZATION] = organization
    found["headers"] = headers
    if kind == "claude":
        version = params.text("api_version")
        found["api_version"] = None if version == known_kind(kind).api_version else version
    whole = params.number("timeout", 0.001, 1e8)
    found["timeouts"] = waits(whole, params.number("stream_timeout", 0.001, 1e8))
    at_once = params.number("max_parallel_requests", 1, 1e6) or usual.at_once
    found["max_concurrent"] = None if at_once is None else int(at_once)
    if kind == "longtail" and (connection := _connection(params)):
        found["options"] = {"litellm": connection}
    return found


def _base_url(reached: Reached, address: str | None) -> str | None:
    kind, usual = reached.provider.kind, reached.provider.base_url
    if not address:
        return usual or None
    address = address.rstrip("/")
    ends = known_kind(kind).endings
    while end := next((end for end in ends if address.endswith(end)), ""):
        address = address.removesuffix(end).rstrip("/")
    try:
        address = ADDRESS.read(address, {})
    except Wrong as wrong:
        raise NotCarried(
            f"its api_base cannot be used: {str(wrong) or f'write {ADDRESS.words}'}"
        ) from wrong
    return None if address == known_kind(kind).base_url else address


def _key(params: Taking, reached: Reached, elsewhere: bool) -> str | None:
    usual = reached.provider.variable
    if params.left.get("api_key") is not None:
        return params.secret("api_key", usual or variable_name(reached.name, "API_KEY"))
    if elsewhere and usual and reached.provider.kind == "compatible":
        params.lose(
            "api_key",
            f"there is none, and {usual} is not sent to an address of your own: add api_key to "
            "the upstream if it asks for one",
        )
        return None
    return f"env:{usual}" if usual else None


def usual_variable(params: Table) -> str:
    """The variable an entry takes its key from without a word."""
    model, said = params.get("model"), params.get("custom_llm_provider")
    if not isinstance(model, str) or params.get("api_key") is not None:
        return ""
    elsewhere = bool(params.get("api_base") or params.get("base_url"))
    return reach(model, said if isinstance(said, str) else None, elsewhere).provider.variable


def waits(whole: float | None, first: float | None = None) -> Table:
    found: Table = {"first_event": first or whole, "plain": whole}
    if whole and whole > 600:
        found["total"] = whole
    return {name: seconds for name, seconds in found.items() if seconds}


def _connection(params: Taking) -> Table:
    """What only LiteLLM understands, for its own call."""
    found: Table = {}
    for name in [name for name in params.left if name.startswith(_CONNECTION)]:
        value = params.left[name]
        if is_reference(value) and variable_of(value) == name.upper():
            params.take(name)  # LiteLLM looks there itself
        elif is_reference(value):
            params.lose(name, f"LiteLLM reads it from {name.upper()}: set that instead")
        elif looks_secret(name, value):
            params.lose(name, f"is written out, and not copied: set {name.upper()}")
        else:
            found[name] = params.take(name)
    if version := params.text("api_version"):
        found["api_version"] = version
    return found


def _model(params: Taking, about: Taking, reached: Reached, usual: Usual) -> Table:
    found: Table = {"name": reached.model}
    asked = params.number("num_retries" if "num_retries" in params.left else "max_retries", 0, 5)
    found["retry"] = usual.retries if asked is None else int(asked)
    found["defaults"] = _defaults(params)
    dropped = params.take("additional_drop_params")
    found["drop"] = [str(name) for name in dropped] if isinstance(dropped, list) else None
    if reached.provider.kind == "ollama":
        found |= _ollama(params)
    for ability, key in _ABILITIES.items():
        said = about.take(key)
        found[ability] = said if isinstance(said, bool) else None
    context = about.number("max_input_tokens", 1, 1e9)
    found["context_length"] = None if context is None else int(context)
    found["price"] = price_of(params, about)
    return found


def _defaults(params: Taking) -> Table:
    """Fields of requests; LiteLLM too lets the client's own go before them."""
    asked = {name: params.plain(name) for name in sorted(_REQUEST & params.left.keys())}
    extra = params.take("extra_body")
    given = asked | (extra if isinstance(extra, dict) else {})
    return {
        str(name): value
        for name, value in given.items()
        if value is not None and name not in OWN_FIELDS
    }


def _ollama(params: Taking) -> Table:
    kept, keys = Table(), option_keys("ollama")
    for name in ("num_ctx", "keep_alive"):
        if params.left.get(name) is None:
            continue
        try:
            kept[name] = keys[name].allowed.read(params.plain(name), {})
        except Wrong:
            params.lose(name, f"is not {keys[name].allowed.words}")
    return kept
