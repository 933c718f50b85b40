"""An answer as its upstream gave it: gathered from events, kept as bytes, put back as a message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, assert_never

import orjson

from adapters.protocol import (
    TURN,
    Aside,
    Event,
    Finish,
    Json,
    Noted,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from adapters.shared.history import canonical, text_of
from adapters.shared.think_tags import CLOSER
from middleware.wrappers.recall import fingerprint

Batches = Sequence[tuple[Event, ...]]
_SIGNED = frozenset(("thinking", "redacted_thinking"))


@dataclass(frozen=True, slots=True)
class Memory:
    """One answer, as its upstream gave it."""

    text: str
    calls: tuple[Json, ...]
    reasoning: str = ""
    turn: Json | None = None
    images: str = ""
    """Digest of the images in the conversation before it."""
    previous: tuple[int, str] | None = None
    """The last turn before it that is remembered: its number, its memory's key."""
    results: tuple[Any, ...] | None = None
    """What stood between that turn and this one, if that called one tool twice."""

    def message(self) -> Json:
        """The turn as a client would send it back."""
        message: Json = {"role": "assistant", "content": self.text}
        if self.calls:
            message["content"] = self.text or None
            message["tool_calls"] = list(self.calls)
        return message

    def ids(self) -> list[str]:
        return [call["id"] for call in self.calls]

    def restored(self, message: Json) -> Json:
        """The client's turn with its thoughts, and the calls they led to as they were made."""
        turn = {name: value for name, value in message.items() if name != TURN}
        if self.calls:
            turn["tool_calls"] = list(self.calls)
        shown = CLOSER in text_of(message.get("content"))
        if shown and CLOSER in self.text:
            return turn  # it thought in its text, and the client sends that
        if shown:
            turn["content"] = self.text or None  # the thought returns to its own place
        return turn | self._thoughts(turn)

    def _thoughts(self, turn: Json) -> Json:
        """What of it the client does not send itself."""
        thoughts: Json = {}
        if self.turn is not None and not turn.get("thinking_blocks"):
            thoughts[TURN] = self.turn if text_of(turn.get("content")) else _wordless(self.turn)
        if self.reasoning and not turn.get("reasoning_content"):
            thoughts["reasoning_content"] = self.reasoning
        return thoughts


def _wordless(turn: Json) -> Json:
    """The turn without the text that the client left out.

    What stands between two thoughts stays: signed ones must follow each other as they did.
    """
    blocks = turn.get("content")
    if not isinstance(blocks, list):
        return turn
    signed = [at for at, block in enumerate(blocks) if block["type"] in _SIGNED]
    kept = [
        block
        for at, block in enumerate(blocks)
        if block["type"] != "text" or signed[0] < at < signed[-1]
    ]
    return {**turn, "content": kept}


def loaded(value: bytes) -> Memory:
    data = orjson.loads(value)
    for name in ("calls", "previous", "results"):
        if data[name] is not None:
            data[name] = tuple(data[name])
    return Memory(**data)


def remembered(batches: Batches, before: Mapping[str, Any], has_ids: bool) -> Memory | None:
    """What of an answer its upstream may need back; None if nothing could be found for it.

    An answer without thoughts is remembered if it has ids: else one that is alike would be found.
    """
    text, reasoning, calls = _gathered(chain.from_iterable(batches))
    turn = _turn(batches[-1][-1])
    if calls and not (turn or reasoning):
        reasoning, _ = fingerprint.split_thought(text)
    if not (turn or reasoning or calls or has_ids or before["previous"]):
        return None
    return Memory(text, calls, "" if turn else reasoning, turn, **before)


def _turn(finish: Event) -> Json | None:
    """The upstream's own turn, if there are thoughts in it."""
    if not isinstance(finish, Finish) or finish.turn is None:
        return None
    if finish.reason not in ("stop", "tool_calls"):
        return None  # it was cut, maybe in half a block, which no upstream takes back
    blocks = finish.turn.get("content")
    signed = isinstance(blocks, list) and any(block["type"] in _SIGNED for block in blocks)
    return finish.turn if signed or "thought" in finish.turn else None


_ARGUMENTS: Mapping[str, str] = {"function": "arguments", "custom": "input"}


def _gathered(events: Iterable[Event]) -> tuple[str, str, tuple[Json, ...]]:
    """What an answer said, thought and called; the rest no upstream asks for again."""
    text: list[str] = []
    reasoning: list[str] = []
    calls: list[tuple[ToolCallStart, list[str]]] = []
    for event in events:  # by what there is most of
        if type(event) is TextDelta:
            text.append(event.text)
        elif type(event) is ToolCallDelta:
            calls[-1][1].append(event.arguments)
        elif type(event) is ReasoningDelta:
            reasoning.append(event.text)
        elif type(event) is ToolCallStart:
            calls.append((event, []))
        elif not isinstance(event, Opened | RefusalDelta | Aside | Noted | Finish):
            assert_never(event)
    return "".join(text), "".join(reasoning), tuple(_call(*call) for call in calls)


def _call(start: ToolCallStart, pieces: Sequence[str]) -> Json:
    arguments = "".join(pieces)
    if start.kind == "function":
        # The form the door gives to the client's own: a lost memory does not change the bytes.
        arguments = canonical(arguments)
    function = {"name": start.name, _ARGUMENTS[start.kind]: arguments}
    return {"id": start.id, "type": start.kind, start.kind: function}
