"""What the chunks that come together with one probably look like."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial

from adapters.compatible.state import State
from adapters.protocol import Event, ReasoningDelta, TextDelta, ToolCallDelta
from adapters.wire.alike import Alike, Said, alike
from adapters.wire.json_text import load

_DELTA = ("choices", 0, "delta")
_PIECE = (*_DELTA, "tool_calls", 0, "function", "arguments")
_SAID: Mapping[type[Event], tuple[Callable[[str], Event], Sequence[str]]] = {
    TextDelta: (TextDelta, ("content",)),
    ReasoningDelta: (ReasoningDelta, ("reasoning_content", "reasoning")),
}


def likeness(frame: bytes, said: Iterable[Event], state: State) -> Alike[State] | None:
    """Frames like this one, if it said one thing that others may say more of."""
    if type(said) is not tuple or len(said) != 1:
        return None
    state.guesses -= 1
    kind = type(said[0])
    if kind is ToolCallDelta:
        found = alike(frame, _PIECE, partial(_call_all, state.slots[state.last].key))
        return None if found is None or _is_named(frame) else found
    if kind not in _SAID:
        return None
    event, names = _SAID[kind]
    meant: Said[State] = partial(_say_all, event)
    return next(filter(None, (alike(frame, (*_DELTA, name), meant) for name in names)), None)


def _is_named(frame: bytes) -> bool:
    """A piece with a name may begin another call, which depends on what came of the last one."""
    return bool(load(frame)["choices"][0]["delta"]["tool_calls"][0]["function"].get("name"))


def _say_all(event: Callable[[str], Event], texts: list[str], _: State) -> Iterable[Event]:
    return map(event, texts)


def _call_all(key: Hashable, pieces: list[str], state: State) -> Iterable[Event]:
    return state.calls.deltas(key, pieces)
