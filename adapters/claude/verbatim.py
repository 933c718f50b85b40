"""What a client of Messages said itself goes up as it said it, wherever nobody changed it since.

Doors put it beside OpenAI's shape, as `Carried`: of a message `(own, place, count)`, as one of the
client's may have become several; of the request its own members. What was changed on the way (by
the config, server tools, a prompt with tools) is encoded anew, and so is what a note is about: the
client's own word would be refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.protocol import CARRIER, Carried, ChatRequest, Json
from adapters.receipts import Notes, Receipt

# Members of a request → the fields of OpenAI's shape that mean the same.
_MEANT_BY: Mapping[str, tuple[str, ...]] = {
    "max_tokens": ("max_completion_tokens", "max_tokens"),
    "stop_sequences": ("stop",),
    "thinking": ("thinking", "reasoning_effort"),
    "output_config": ("reasoning_effort", "response_format"),
    "output_format": ("response_format",),
    "metadata": ("safety_identifier", "user"),
    "tool_choice": ("tool_choice", "parallel_tool_calls", "tools"),
}
_SAMPLING = frozenset(("temperature", "top_p", "top_k"))
_UNSET = (None, ())
_EFFORT = "reasoning_effort"


def encoded_anew(message: Json, notes: Notes) -> Json:
    """A message whose own words do not count any more, with the breakpoint they had."""
    carried: Carried = message[CARRIER]
    if carried.refusal is not None:
        raise carried.refusal
    notes.add_all(carried.lost)
    plain = {name: value for name, value in message.items() if name != CARRIER}
    own, place, length = carried.value
    marks = _marks(own) if place == length - 1 else []
    return {**plain, "cache_control": marks[-1]} if marks else plain


def _marks(own: Json) -> list[Json]:
    """Where the client of a turn wanted it cached."""
    content = own.get("content", own.get("system"))
    blocks = content if isinstance(content, list) else []
    return [block["cache_control"] for block in blocks if block.get("cache_control")]


def own_members(request: ChatRequest) -> Json:
    """Members of the client's own that still mean what the request says."""
    native = request.native
    if native is None:
        return {}
    said = {**request.params, **request.extra}
    said |= {"tools": request.tools, "tool_choice": request.tool_choice}
    beside = native.beside or {}
    own = {
        name: value
        for name, value in native.value.items()
        if all(_same(said.get(field), beside.get(field)) for field in _fields(name))
    }
    if own.get("tools"):
        own["tools"] = [*own["tools"]]  # it may lose breakpoints, and is asked again with them
    return own


def _same(now: Any, then: Any) -> bool:
    return now is then or now == then or (now in _UNSET and then in _UNSET)


def _fields(name: str) -> tuple[str, ...]:
    return _MEANT_BY.get(name, (name,))


def restored(own: Json, receipt: Receipt, sampling: bool) -> Json:
    """What of it takes the place of what was encoded: all that no note is about."""
    if not own:
        return own
    noted = {note.top for note in receipt}
    return {
        name: value
        for name, value in own.items()
        if value is not None
        and (sampling or name not in _SAMPLING)
        and noted.isdisjoint((name, *_fields(name)))
    }


def as_asked(request: ChatRequest, own: Json) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """OpenAI's fields and others as the client of Messages means them: thinking in its own words,
    and none that it did not ask for.
    """
    params, native = request.params, request.native
    if native is None or not _same(params.get(_EFFORT), (native.beside or {}).get(_EFFORT)):
        return params, request.extra
    params, extra = {**params}, {**request.extra}
    effort = params.pop(_EFFORT, None)
    if isinstance(thinking := own.get("thinking"), dict):
        extra["thinking"] = thinking
        if thinking.get("type") == "adaptive" and effort is not None:
            params[_EFFORT] = effort
    return params, extra


def hosted_tools(request: ChatRequest, own: Json) -> list[Json]:
    """Anthropic's own tools, where others were changed beside them; a search that a tool of the
    gateway stands for is not among them.
    """
    native = request.native
    if native is None or "tools" in own:
        return []
    given_up = ("custom",) if native.search else ("custom", "web_search")
    tools = native.value.get("tools") or ()
    return [tool for tool in tools if not (tool.get("type") or "custom").startswith(given_up)]
