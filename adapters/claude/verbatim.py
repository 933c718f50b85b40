"""What a client of Messages said itself goes up as it said it, wherever nobody changed it since.

Doors put it beside OpenAI's shape, as `Carried`: of a message `(own, place, count)`, as one of the
client's may have become several; of the request its own members. What was changed on the way (by
the config, server tools, a prompt with tools) is encoded anew, and so is what a note is about: the
client's own word would be refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
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
# By whether a model takes sampling parameters.
_NOT_TAKEN: Mapping[bool, frozenset[str]] = {
    True: frozenset(),
    False: frozenset(("temperature", "top_p", "top_k")),
}
_UNSET = (None, ())
_EFFORT = "reasoning_effort"
_top_of = attrgetter("top")


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


def own_members(request: ChatRequest, native: Carried) -> Json:
    """Members of the client's own that still mean what the request says."""
    tools, choice = request.tools, request.tool_choice
    said = {**request.params, **request.extra, "tools": tools, "tool_choice": choice}
    own: Json = {**native.value}
    if said != native.beside:
        beside = native.beside or {}
        own = {name: value for name, value in own.items() if _is_same(name, said, beside)}
    if native.marked and own.get("tools"):
        own["tools"] = [*own["tools"]]  # it may lose breakpoints, and is asked again with them
    return own


def _is_same(name: str, said: Json, beside: Json) -> bool:
    return all(_same(said.get(field), beside.get(field)) for field in _fields(name))


def _same(now: Any, then: Any) -> bool:
    return now is then or now == then or (now in _UNSET and then in _UNSET)


def _fields(name: str) -> tuple[str, ...]:
    return _MEANT_BY.get(name, (name,))


def restored(own: Json, receipt: Receipt, sampling: bool) -> Json:
    """What of it takes the place of what was encoded: all that no note is about."""
    left_out = _NOT_TAKEN[sampling].union(map(_top_of, receipt))
    if not left_out and None not in own.values():
        return own
    return {
        name: value
        for name, value in own.items()
        if value is not None and name not in left_out and left_out.isdisjoint(_fields(name))
    }


def as_asked(request: ChatRequest, own: Json) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """OpenAI's fields and others as the client of Messages means them: thinking in its own words,
    and none that it did not ask for.
    """
    params, extra, native = request.params, request.extra, request.native
    if native is None or ("thinking" not in own and params.get(_EFFORT) is None):
        return params, extra
    if not _same(params.get(_EFFORT), (native.beside or {}).get(_EFFORT)):
        return params, extra
    return _as_meant(params, extra, own.get("thinking"))


def _as_meant(
    params: Mapping[str, Any], extra: Mapping[str, Any], thinking: Any
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    effort = params.get(_EFFORT)
    meant = {name: value for name, value in params.items() if name != _EFFORT}
    if not isinstance(thinking, dict):
        return meant, extra
    if thinking.get("type") == "adaptive" and effort is not None:
        meant[_EFFORT] = effort
    return meant, {**extra, "thinking": thinking}


def hosted_tools(native: Carried) -> list[Json]:
    """Anthropic's own tools, where others were changed beside them; a search that a tool of the
    gateway stands for is not among them.
    """
    given_up = ("custom",) if native.search else ("custom", "web_search")
    tools = native.value.get("tools") or ()
    return [tool for tool in tools if not (tool.get("type") or "custom").startswith(given_up)]
