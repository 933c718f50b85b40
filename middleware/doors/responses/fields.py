"""Fields of a request: in chat's words, and as its answer repeats them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import Notes
from adapters.shared.fields import unsupported

_SAME: Mapping[str, str] = {
    **{
        name: name
        for name in (
            *("temperature", "top_p", "metadata", "user", "safety_identifier", "prompt_cache_key"),
            *("prompt_cache_options", "prompt_cache_retention", "service_tier", "moderation"),
        )
    },
    "max_output_tokens": "max_completion_tokens",
}
"""Fields that chat has too, and their names there."""
_OF_TOOLS: Mapping[str, str] = {"parallel_tool_calls": "parallel_tool_calls"}
_REFUSED: Mapping[str, str] = {
    "background": "Answers in the background are not made here. Ask with 'stream': true.",
    "conversation": "Conversations are not kept here. Send 'previous_response_id', or the items.",
    "prompt": "Prompts are not kept here. Send their text in 'instructions' or 'input'.",
}
_LEFT: Mapping[str, str] = {
    "max_tool_calls": "this gateway's config bounds the calls of its own tools",
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


def echo(data: Json, keeps: bool) -> Json:
    """Members that every response object has; `store` says what is done."""
    thinking, text = data.get("reasoning") or {}, data.get("text") or {}
    said = {name: data[name] for name in _USUAL.keys() & data.keys() if data[name] is not None}
    return {
        "model": data["model"],
        **_USUAL,
        **said,
        "reasoning": {"effort": thinking.get("effort"), "summary": thinking.get("summary")},
        "store": keeps and data.get("store") is not False,
        "text": {**text, "format": text.get("format") or {"type": "text"}},
    }


def params_of(data: Json, has_tools: bool, notes: Notes) -> Json:
    """OpenAI's fields as chat has them; raise where their loss would change the meaning."""
    said = {name: value for name, value in data.items() if value is not None}
    for name in filter(data.get, _REFUSED):
        raise unsupported(name, _REFUSED[name])
    same = {**_SAME, **_OF_TOOLS} if has_tools else _SAME
    params = {same[name]: value for name, value in said.items() if name in same}
    for name in _READ.keys() & said.keys():
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
