"""Claude's answers, streamed or whole, as events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

import orjson

from adapters.claude.citations import address, cited
from adapters.claude.conversation import THOUGHTS
from adapters.claude.ending import finish_reason, joined, turn_of, type_of, usage_of
from adapters.claude.failures import failure
from adapters.errors import UpstreamError
from adapters.protocol import (
    Aside,
    Event,
    Finish,
    Json,
    Noted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from adapters.receipts import Note
from adapters.shared.history import json_object
from adapters.wire.alike import Said, alike
from adapters.wire.exchange import AnswerState, few, quoted, require_text
from adapters.wire.json_text import exact, load

T = TypeVar("T")
_kind_of = itemgetter("type")
_TOLD = THOUGHTS | {"text", "tool_use"}
"""Blocks that have events of their own."""
_TIERS: Mapping[str, str] = {"standard": "default", "priority": "priority"}


@dataclass(slots=True)
class State(AnswerState):
    blocks: list[Json] = field(default_factory=list)
    """Claude's own content so far, in order."""
    block: Json = field(default_factory=dict)
    """The block that is open; {} between blocks."""
    pieces: list[str] = field(default_factory=list)
    """What its deltas said."""
    parts: dict[str, list[Any]] = field(default_factory=dict)
    """Pieces of its other members."""
    position: int = 0
    """Blocks begun: calls are told apart by it, since indexes may start again."""
    usage: Json = field(default_factory=dict)
    native: str = ""
    stop: str | None = None
    """The stop sequence that ended it."""
    details: Json | None = None
    """What goes with a refusal."""
    noted: frozenset[Note] = frozenset()
    told: int = 0
    """Characters of the texts that are whole: annotations count them."""
    begun: bool = False
    """There is a message; without one an end is the end of nothing."""
    own: bool = False
    """The client speaks Claude's language: it gets what others are only told of."""
    broken: bool = False
    """A call's arguments are not what Claude would take back."""


def decode(frame: bytes, state: State) -> Iterable[Event]:
    event = load(frame)
    kind = event.get("type")
    if kind == "content_block_delta":
        delta = event["delta"]
        said = delta["type"]
        if state.guesses and state.alike is None:
            _expect_alike(frame, said, state)
        if said == "text_delta":
            text = delta["text"]
            state.pieces.append(text)
            return (TextDelta(text if type(text) is str else require_text(text)),) if text else ()
        if said == "input_json_delta" and state.block["type"] == "tool_use":
            piece = delta["partial_json"]
            state.pieces.append(piece)
            return state.calls.delta(state.position, piece)
        if said == "thinking_delta" and type(thought := delta.get("thinking")) is str:
            return _think(thought, state)
        return _delta(delta, state)
    return _HANDLERS.get(kind, _skip)(event, state)


def _expect_alike(frame: bytes, said: str, state: State) -> None:
    """A delta of a block looks like those that follow."""
    known = type(said) is str and said in _SAID
    if known and (said != "input_json_delta" or state.block["type"] == "tool_use"):
        state.guesses -= 1
        name, meant = _SAID[said]
        state.alike = alike(frame, ("delta", name), meant)


def _say_all(event: Callable[[str], Event], said: list[str], state: State) -> list[Event]:
    state.pieces += said
    return [*map(event, said)]


def _call_all(pieces: list[str], state: State) -> list[Event]:
    state.pieces += pieces
    return state.calls.deltas(state.position, pieces)


def close(state: State) -> Iterator[Event]:
    if not state.ending:
        raise state.cut("a stop_reason")
    yield from _finish(state)


def decode_answer(body: Any, state: State) -> Iterable[Event]:
    _skip(body, state)
    _identify(body, state)
    return (*_whole(body, state), *_finish(state))


def _delta(delta: Json, state: State) -> Iterable[Event]:
    """A piece of the open block, other than text and the arguments of a call."""
    match delta["type"]:
        case "thinking_delta":  # some only count
            return _think(_own(delta, "thinking", str, state), state)
        case "input_json_delta":
            state.pieces.append(_own(delta, "partial_json", str, state) or "")
        # What no client is shown, but Claude may want back.
        case "signature_delta":
            _add("signature", _own(delta, "signature", str, state), state)
        case "citations_delta":
            _add("citations", _own(delta, "citation", dict, state), state)
        case "compaction_delta":
            # A summary comes in pieces, what stands for it enciphered comes whole.
            _add("content", _own(delta, "content", str, state) or "", state)
            if delta.get("encrypted_content"):
                state.block["encrypted_content"] = delta["encrypted_content"]
    return ()


def _own(said: Json, name: str, kind: type[T], state: State) -> T | None:
    """A member that only Claude wants back: one that is odd spoils its turn, not the answer."""
    value = state.optional(said, name, kind)
    state.broken |= value is None and bool(said.get(name))
    return value


def _think(thought: str | None, state: State) -> Iterable[Event]:
    if not thought:
        return ()
    state.pieces.append(thought)
    return (ReasoningDelta(thought),)


def _add(name: str, piece: str | Json | None, state: State) -> None:
    if piece is not None:
        state.parts.setdefault(name, []).append(piece)


def _skip(event: Json, state: State) -> Iterable[Event]:
    """Pings, and whatever is invented after this was written; but never an error."""
    if event.get("error") or event.get("type") == "error":
        raise failure(event, state.upstream, state.secrets)
    return ()


def _begin(event: Json, state: State) -> Iterable[Event]:
    message = event["message"]
    _identify(message, state)
    # Calls that code execution made come whole, here, with the reason.
    return _whole(message, state) if message.get("content") else ()


def _identify(message: Json, state: State) -> None:
    state.begun = True
    state.model = message.get("model") or state.model
    _take_usage(message, state)
    state.tier = _TIERS.get(str(state.usage.get("service_tier")))


def _whole(message: Json, state: State) -> Iterator[Event]:
    """A message that has its content already: each of its blocks begins and ends at once."""
    content = few(message["content"])
    called = "tool_use" in map(_kind_of, content)
    precise = ((called and exact(state.raw)) or message)["content"]
    for position, block in enumerate(content):
        yield from _start(block, state)
        if block is not precise[position] and block["type"] == "tool_use":
            arguments = orjson.dumps(precise[position].get("input") or {}).decode()
            state.pieces.append(arguments)
            yield from state.calls.delta(state.position, arguments)
        yield from _end_block(state)
    _take_reason(message, state)


def _start(begun: Json, state: State) -> Iterable[Event]:
    block = state.block = dict(begun)
    state.alike = None
    state.position += 1
    kind = block["type"]
    state.busy = kind != "text"
    if kind == "text":
        return _begin_text(block.get("text"), state)
    if kind == "tool_use":
        return state.calls.start(state.position, block.get("id"), block["name"])
    if kind == "thinking":
        return _think(_own(block, "thinking", str, state), state)
    if kind == "redacted_thinking" or state.own:
        return ()
    text = f"a block of type '{kind}' stayed behind"
    return _note_once(Note("block_not_shown", "content", text), state)


def _begin_text(text: Any, state: State) -> Iterable[Event]:
    if not text:
        return ()
    state.pieces.append(text)
    return (TextDelta(require_text(text)),)


def _note_once(note: Note, state: State) -> Iterable[Event]:
    if note in state.noted:
        return ()
    state.noted |= {note}
    return (Noted((note,)),)


def _end_block(state: State) -> Iterable[Event]:
    """Complete the open block as Claude would have it back."""
    block, state.block, state.busy = state.block, {}, False
    state.alike = None
    said, state.pieces = "".join(state.pieces), []
    if state.parts:
        _take_parts(block, state)
    if "type" not in block:
        return ()
    state.blocks.append(block)
    if block["type"] == "text":
        block["text"] = said
        return _cite(block, len(said), state)
    return _complete(block, said, state)


def _take_parts(block: Json, state: State) -> None:
    parts, state.parts = state.parts, {}
    for name, pieces in parts.items():
        block[name] = joined(_own(block, name, type_of(pieces), state), pieces)


def _complete(block: Json, said: str, state: State) -> Iterator[Event]:
    """A block other than text."""
    kind = block["type"]
    if kind in THOUGHTS:
        yield from _sign(block, said, state)
    elif "input" in block and said.strip():
        given = json_object(said)
        state.broken |= given is None
        block["input"] = {} if state.broken else given
    elif kind == "tool_use":
        # No pieces: no arguments, or all of them at once.
        arguments = orjson.dumps(block.get("input") or {}).decode()
        yield from state.calls.delta(state.position, arguments)
    if state.own and kind not in _TOLD:
        yield Aside("own_block", block)


def _sign(block: Json, said: str, state: State) -> Iterator[Event]:
    """A thought that is whole; one without a signature no Claude takes back."""
    if block["type"] == "thinking":
        block["thinking"] = said
        if not block.get("signature"):
            state.broken = True
            return
    yield Aside("thinking_blocks", [block])


def _cite(block: Json, length: int, state: State) -> Iterable[Event]:
    """Say what a whole text rests on."""
    start, state.told = state.told, state.told + length
    return _cited(block, start, state) if "citations" in block or state.own else ()


def _cited(block: Json, start: int, state: State) -> Iterator[Event]:
    citations = state.entries(block, "citations") if _own(block, "citations", list, state) else []
    if state.own:
        yield Aside("own_citations", citations)
        return
    if found := cited(citations, start, state.told):
        yield Aside("annotations", found)
    if not all(map(address, citations)):
        text = "a document that is cited has no address, and OpenAI's annotations are addresses"
        yield from _note_once(Note("citations_dropped", "annotations", text), state)


def _take_usage(message: Json, state: State) -> None:
    """Counters are cumulative; the last figure of each counts."""
    usage: Json = state.optional(message, "usage", dict) or {}
    if None in usage.values():
        usage = {name: figure for name, figure in usage.items() if figure is not None}
    state.usage |= usage


def _reason(event: Json, state: State) -> Iterable[Event]:
    _take_usage(event, state)
    _take_reason(event["delta"], state)
    return ()


def _take_reason(said: Json, state: State) -> None:
    if said.get("stop_reason"):
        state.native = quoted(said["stop_reason"])
        state.stop = state.optional(said, "stop_sequence", str)
        state.ending = True
    if state.native == "refusal":
        state.details = state.optional(said, "stop_details", dict) or state.details


def _finish(state: State) -> Iterator[Event]:
    if state.block:
        yield from _end_block(state)
    if not state.begun and not state.blocks:
        raise UpstreamError(f"Upstream '{state.upstream}' ended an answer it had not begun.")
    if called := bool(state.calls):
        yield from state.calls.close()
    if state.details and (explanation := state.optional(state.details, "explanation", str)):
        yield RefusalDelta(explanation)
    turn = None if state.broken or state.native == "refusal" else turn_of(state.blocks)
    usage, notes = usage_of(state.usage)
    reason, why = finish_reason(state.native, state.details or {}, called)
    if notes + why:
        yield Noted(notes + why)
    yield Finish(reason, usage, state.native, turn, state.stop)


_SAID: Mapping[str, tuple[str, Said[State]]] = {
    "text_delta": ("text", partial(_say_all, TextDelta)),
    "thinking_delta": ("thinking", partial(_say_all, ReasoningDelta)),
    "input_json_delta": ("partial_json", _call_all),
}
"""Deltas of which a stream is full: their text, and what several texts mean."""
_HANDLERS: Mapping[str, Callable[[Json, State], Iterable[Event]]] = {
    "message_start": _begin,
    "content_block_start": lambda event, state: _start(event["content_block"], state),
    "content_block_stop": lambda _, state: _end_block(state),
    "message_delta": _reason,
    "message_stop": lambda _, state: _finish(state),
}
