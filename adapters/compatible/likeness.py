"""What the chunks that come together with one probably look like."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial

from adapters.protocol import Event, ReasoningDelta, TextDelta, ToolCallDelta
from adapters.wire.alike import Alike, Said, alike
from adapters.wire.exchange import AnswerState
from adapters.wire.json_text import load

_DELTA = ("choices", 0, "delta")
_PIECE = (*_DELTA, "tool_calls", 0, "function", "arguments")
_SAID: Mapping[type[Event], tuple[Callable[[str], Event], Sequence[str]]] = {
    TextDelta: (TextDelta, ("content",)),
    ReasoningDelta: (ReasoningDelta, ("reasoning_content", "reasoning")),
}


def likeness(frame: bytes, said: tuple[Event, ...], key: Hashable) -> Alike[AnswerState] | None:
    """Frames like this one, which said one thing; `key` is of the call that a piece was of."""
    kind = type(said[0])
    if kind is ToolCallDelta:
        found = alike(frame, _PIECE, partial(_call_all, key))
        return None if found is None or _is_named(frame) else found
    if kind not in _SAID:
        return None
    event, names = _SAID[kind]
    meant: Said[AnswerState] = partial(_say_all, event)
    return next(filter(None, (alike(frame, (*_DELTA, name), meant) for name in names)), None)


def _is_named(frame: bytes) -> bool:
    """A piece with a name may begin another call, which depends on what came of the last one."""
    return bool(load(frame)["choices"][0]["delta"]["tool_calls"][0]["function"].get("name"))


def _say_all(event: Callable[[str], Event], texts: list[str], _: AnswerState) -> Iterable[Event]:
    return map(event, texts)


def _call_all(key: Hashable, pieces: list[str], state: AnswerState) -> Iterable[Event]:
    return state.calls.deltas(key, pieces)
