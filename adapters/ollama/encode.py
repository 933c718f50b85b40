"""An OpenAI request as the body of Ollama's `/api/chat`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.errors import BadRequest
from adapters.fields import Fields, unsupported
from adapters.ollama.abilities import Abilities
from adapters.ollama.messages import messages
from adapters.ollama.tools import answer_shape, call_shape, declared, either_shape, offered
from adapters.protocol import ChatRequest, Json, Receipt
from adapters.toolbox import Tool, Toolbox

# Named alike in OpenAI's request and in Ollama's options, with the same meaning.
_SHARED = ("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty")
# Ollama's own options that a client may send beside OpenAI's fields.
_OWN = (
    *("top_k", "min_p", "typical_p", "repeat_penalty", "repeat_last_n"),
    *("num_keep", "num_predict", "num_ctx"),
)
_TOP_LEVEL = ("logprobs", "top_logprobs", "keep_alive", "truncate", "shift")
_EFFORTS: Mapping[str, str | bool] = {
    "none": False,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
    "max": "max",
}
# gpt-oss has three levels and no off.
_GPT_OSS: Mapping[str | bool | None, str] = {
    None: "low",
    "none": "low",
    "minimal": "low",
    "xhigh": "high",
    "max": "high",
    False: "low",
}
_GPT_OSS_LACKS = ("none", "xhigh", "max", False)


@dataclass(frozen=True, slots=True)
class Setup:
    """What besides the request decides its body."""

    abilities: Abilities = field(default_factory=Abilities)
    options: Mapping[str, Any] = field(default_factory=dict)
    """The model's keys in the config."""


def encode(request: ChatRequest, box: Toolbox, setup: Setup) -> tuple[Json, Receipt]:
    fields = Fields({**request.extra, **request.params})
    _refuse(fields)
    tools = offered(box)
    if tools and setup.abilities.tools is False:
        raise _cannot_call(request.model)
    turns, receipt = messages(request, setup.abilities)
    fields.add(receipt)
    fields.add(box.receipt)
    # Streaming is the server's default, so a plain request has to say so.
    body: Json = {"model": request.model, "messages": turns, "stream": request.call.streamed}
    if tools:
        body["tools"], receipt = declared(tools)
        fields.add(receipt)
    form = _format(fields, tools, forced(box))
    if form is not None:
        body["format"] = form
    think = _think(request.model, fields, setup.abilities)
    if think is not None:
        body["think"] = think
    fields.take("parallel_tool_calls")
    fields.take("stream_options")
    body |= {name: value for name in _TOP_LEVEL if (value := fields.take(name)) is not None}
    if "keep_alive" in setup.options:
        body.setdefault("keep_alive", setup.options["keep_alive"])
    body["options"] = _options(fields, setup)
    return body, fields.receipt("Ollama")


def forced(box: Toolbox) -> bool:
    return box.mode in ("required", "named")


def _refuse(fields: Fields) -> None:
    """Refuse what would change the meaning of the request."""
    if (fields.take("n") or 1) > 1:
        raise unsupported("n", "Only one choice is given. Leave 'n' out and ask again for another.")
    if "audio" in (fields.take("modalities") or ()):
        raise unsupported("modalities", "This model answers in text. Ask for ['text'].")
    fields.refuse("audio", "This model answers in text. Leave 'audio' out.")
    fields.refuse(
        "web_search_options",
        "This model does not search the web. Leave 'web_search_options' out; offer a search tool.",
    )


def _cannot_call(model: str) -> BadRequest:
    return unsupported(
        "tools",
        f"The model '{model}' cannot call tools: its server does not list the capability 'tools'. "
        'Choose one that can, or set `tools = "emulated"` for this model in the config.',
    )


def _format(fields: Fields, tools: tuple[Tool, ...], must_call: bool) -> Any:
    """A grammar is the only guarantee this server gives, also for a call that must be made."""
    answer = answer_shape(fields.take("response_format"))
    if answer is None:
        answer = fields.take("format")
    fields.lose("format", "response_format says what it is")
    if not tools:
        return answer
    if must_call:
        return call_shape(tools)
    return None if answer is None else either_shape(call_shape(tools), answer)


def _think(model: str, fields: Fields, abilities: Abilities) -> str | bool | None:
    vendor = fields.take("thinking")
    effort = fields.take("reasoning_effort")
    asked = fields.take("think")
    if asked is None and isinstance(vendor, dict):
        asked = vendor.get("type") != "disabled"
    if not isinstance(asked, str | bool | None):
        raise BadRequest("'think' must be true, false or a level such as 'high'.", param="think")
    if abilities.thinking is False:
        if asked or (effort and effort != "none"):
            fields.note("thinking_dropped", "reasoning_effort", "this model does not think")
        return None  # it answers a 400 even to `true`
    if "gpt-oss" in model or abilities.family in ("gptoss", "gpt-oss"):
        return _gpt_oss_think(fields, effort if asked is None else asked)
    return _EFFORTS.get(effort, effort) if asked is None else asked


def _gpt_oss_think(fields: Fields, asked: str | bool | None) -> str | bool | None:
    level = _GPT_OSS.get(asked, asked)
    if asked in _GPT_OSS_LACKS:
        fields.note("reasoning_effort_changed", "reasoning_effort", f"{asked} was sent as {level}")
    return level


def _options(fields: Fields, setup: Setup) -> Json:
    """Collect sampling and limits; what a client says in Ollama's own words outranks."""
    limits = (fields.take("max_completion_tokens"), fields.take("max_tokens"))
    limit = limits[0] or limits[1] or setup.options.get("max_tokens")
    options: Json = {} if limit is None else {"num_predict": limit}
    if (window := setup.options.get("num_ctx")) is not None:
        options["num_ctx"] = window
    for name in (*_SHARED, "stop", *_OWN):
        if (value := fields.take(name)) is not None:
            options[name] = value
    native = fields.take("options")
    if native is not None and not isinstance(native, dict):
        raise BadRequest("'options' must be an object, as Ollama's API has it.", param="options")
    options |= native or {}
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]
    return options
