"""Fields of a request: in chat's words, and as its answer repeats them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from adapters.errors import BadRequest
from adapters.protocol import Json, value_class
from adapters.receipts import Notes, Receipt
from adapters.shared.fields import unsupported
from middleware.doors.chat.grammars import check_grammars
from middleware.doors.responses.shapes import OWN_FIELDS

_SAME: Mapping[str, str] = {
    **{
        name: name
        for name in (
            *("temperature", "top_p", "metadata", "user", "safety_identifier", "prompt_cache_key"),
            *("prompt_cache_options", "prompt_cache_retention", "service_tier", "moderation"),
            "parallel_tool_calls",
        )
    },
    "max_output_tokens": "max_completion_tokens",
}
"""Fields that chat has too, and their names there."""
_OF_TOOLS = frozenset({"parallel_tool_calls"})
"""Those that say nothing where there are none."""
_REFUSED: Mapping[str, str] = {
    "background": "Answers in the background are not made here. Ask with 'stream': true.",
    "conversation": "Conversations are not kept here. Send 'previous_response_id', or the items.",
    "prompt": "Prompts are not kept here. Send their text in 'instructions' or 'input'.",
}
_LEFT: Mapping[str, str] = {
    "context_management": "this gateway does not compact conversations",
}
_LOGPROBS, _THOUGHTS = "message.output_text.logprobs", "reasoning.encrypted_content"
_USUAL: Mapping[str, Any] = {
    **dict.fromkeys(("instructions", "max_output_tokens", "max_tool_calls")),
    **dict.fromkeys(("previous_response_id", "temperature", "top_p", "user")),
    **dict.fromkeys(("safety_identifier", "prompt_cache_key")),
    "metadata": {},
    "parallel_tool_calls": True,
    "service_tier": "default",
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "truncation": "disabled",
}


_SPLIT = b"\0"
"""No JSON has it."""
_LATER = orjson.Fragment(_SPLIT)


class Echo(NamedTuple):
    """What every response object repeats of its request, as text."""

    before: bytes
    """Members up to the tools."""
    between: bytes
    """Those from the tools up to `store`."""
    behind: bytes


@value_class
class RequestFields:
    """What a request says beside items and tools; nobody changes it: many requests may say so."""

    model: str
    streamed: bool
    params: Json
    params_without_tools: Json
    extra: Json
    choice: Any
    """`tool_choice`."""
    most_calls: int | None
    """`max_tool_calls`."""
    instructions: str
    stores: bool
    receipt: Receipt
    echo: Echo


def read_fields(data: Json) -> RequestFields:
    """OpenAI's fields as chat has them; raise where their loss would change the meaning."""
    notes = Notes()
    params = _params_of(data, notes)
    extra = {name: value for name, value in data.items() if name not in OWN_FIELDS}
    if extra or "response_format" in params:
        check_grammars({**params, **extra})
    return RequestFields(
        model=data["model"],
        streamed=data.get("stream") is True,
        params=params,
        params_without_tools={name: params[name] for name in params if name not in _OF_TOOLS},
        extra=extra,
        choice=data.get("tool_choice"),
        most_calls=data.get("max_tool_calls"),
        instructions=data.get("instructions") or "",
        stores=data.get("store") is not False,
        receipt=notes.receipt(),
        echo=_echo(data),
    )


def _echo(data: Json) -> Echo:
    thinking, text = data.get("reasoning") or {}, data.get("text") or {}
    said = {name: data[name] for name in _USUAL if data.get(name) is not None}
    members = {
        "model": data["model"],
        **_USUAL,
        **said,
        "tools": _LATER,
        "reasoning": {"effort": thinking.get("effort"), "summary": thinking.get("summary")},
        "store": _LATER,
        "text": {**text, "format": text.get("format") or {"type": "text"}},
    }
    before, between, behind = orjson.dumps(members)[1:-1].split(_SPLIT)
    return Echo(before, between, behind)


def _params_of(data: Json, notes: Notes) -> Json:
    said = {name: value for name, value in data.items() if value is not None}
    for name in filter(data.get, _REFUSED):
        raise unsupported(name, _REFUSED[name])
    params = {_SAME[name]: value for name, value in said.items() if name in _SAME}
    for name in filter(said.__contains__, _READ):
        _READ[name](said[name], params, notes)
    for name in filter(data.get, _LEFT):
        notes.add("parameter_dropped", name, _LEFT[name])
    if said.get("include"):
        _name_wishes(said["include"], params, notes)
    return params


def _name_wishes(included: list[str], params: Json, notes: Notes) -> None:
    """What an answer cannot include: models without it answer all the same."""
    had = {_THOUGHTS, _LOGPROBS} if "logprobs" in params else {_THOUGHTS}
    for name in included:
        if name not in had:
            notes.add("parameter_dropped", f"include.{name[:60]}", "answers here have none")


def _thinking(said: Json, params: Json, notes: Notes) -> None:
    if said.get("effort"):
        params["reasoning_effort"] = said["effort"]
    for name, value in said.items():
        if value is not None and name not in ("effort", "summary", "generate_summary"):
            notes.add("parameter_dropped", f"reasoning.{name}", "chat has nothing like it")


def _form(said: Json, params: Json, _: Notes) -> None:
    if said.get("verbosity"):
        params["verbosity"] = said["verbosity"]
    form = said.get("format") or {}
    if form.get("type") == "json_object":
        params["response_format"] = {"type": "json_object"}
    elif form.get("type") == "json_schema":
        if not form.get("name"):
            raise BadRequest("Missing required parameter: 'text.format.name'.", param="text.format")
        known = ("name", "description", "schema", "strict")
        schema = {key: form[key] for key in known if form.get(key) is not None}
        params["response_format"] = {"type": "json_schema", "json_schema": schema}


def _logprobs(most: int, params: Json, _: Notes) -> None:
    if most:
        params |= {"logprobs": True, "top_logprobs": most}


def _truncation(said: str, _: Json, notes: Notes) -> None:
    if said == "auto":
        notes.add("parameter_dropped", "truncation", "no item is left out to make room")


_READ: Mapping[str, Callable[[Any, Json, Notes], None]] = {
    "reasoning": _thinking,
    "text": _form,
    "top_logprobs": _logprobs,
    "truncation": _truncation,
}
