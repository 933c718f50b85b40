"""An answer as its upstream gave it: gathered from events, kept as bytes, put back as a message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from adapters.history import canonical, text_of
from adapters.protocol import (
    TURN,
    Event,
    Finish,
    Json,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from middleware.recall import said

Batches = Sequence[tuple[Event, ...]]


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
    """The last turn before it that was put back: its number, its memory's identity."""
    results: tuple[Any, ...] | None = None
    """What stood between that turn and this one, if that called one tool twice."""

    def message(self) -> Json:
        """The turn as a client would send it back."""
        message: Json = {"role": "assistant", "content": self.text}
        if self.calls:
            message["content"] = self.text or None
            message["tool_calls"] = list(self.calls)
        return message

    def dumped(self) -> bytes:
        return orjson.dumps(self)

    def ids(self) -> list[str]:
        return [call["id"] for call in self.calls]

    def restored(self, message: Json) -> Json:
        """The upstream's own turn; what the client echoes of it stays."""
        turn = {name: value for name, value in message.items() if name != TURN} | self.message()
        reasoning = self.reasoning
        if self.calls and not (
            reasoning or self.turn or "</think>" in text_of(message.get("content"))
        ):
            # It thought in its text, and the client left that out: it goes up as a thought.
            reasoning, rest = said.apart(self.text)
            turn["content"] = rest or None
        if self.turn is not None and not message.get("thinking_blocks"):
            turn[TURN] = self.turn
        if reasoning and not message.get("reasoning_content"):
            turn["reasoning_content"] = reasoning
        return turn


def loaded(value: bytes) -> Memory:
    data = orjson.loads(value)
    previous, results = data["previous"], data["results"]
    return Memory(
        text=data["text"],
        calls=tuple(data["calls"]),
        reasoning=data["reasoning"],
        turn=data["turn"],
        images=data["images"],
        previous=previous and (previous[0], previous[1]),
        results=None if results is None else tuple(results),
    )


def remembered(heard: Batches, before: Mapping[str, Any]) -> Memory | None:
    """What of an answer its upstream may need back; None if the client's own turn says it all."""
    events = [event for batch in heard for event in batch]
    reasoning, text = _joined(events, ReasoningDelta), _joined(events, TextDelta)
    calls = tuple(_calls(events))
    finish = events[-1]
    turn = finish.turn if isinstance(finish, Finish) and _complete(finish) else None
    if not (turn or reasoning or calls or before["results"]):
        return None
    return Memory(
        text=text,
        calls=calls,
        reasoning="" if turn else reasoning,
        turn=turn,
        **before,
    )


def _joined(events: Sequence[Event], kind: type[TextDelta | ReasoningDelta]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def _complete(finish: Finish) -> bool:
    """A turn that was cut may end in half a block, which no upstream takes back."""
    return finish.reason in ("stop", "tool_calls")


_ARGUMENTS: Mapping[str, str] = {"function": "arguments", "custom": "input"}


def _calls(events: Sequence[Event]) -> Iterator[Json]:
    started: list[tuple[ToolCallStart, list[str]]] = []
    for event in events:
        if isinstance(event, ToolCallStart):
            started.append((event, []))
        elif isinstance(event, ToolCallDelta):
            started[-1][1].append(event.arguments)
    for start, pieces in started:
        arguments = "".join(pieces)
        if start.kind == "function":
            # The form the door gives to the client's own: a lost memory does not change the bytes.
            arguments = canonical(arguments)
        function = {"name": start.name, _ARGUMENTS[start.kind]: arguments}
        yield {"id": start.id, "type": start.kind, start.kind: function}
