"""An answer as its upstream gave it: gathered from events, kept as bytes, put back as a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from adapters.history import canonical
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
        if self.turn is not None and not message.get("thinking_blocks"):
            turn[TURN] = self.turn
        if self.reasoning and not message.get("reasoning_content"):
            turn["reasoning_content"] = self.reasoning
        return turn


def loaded(value: bytes) -> Memory:
    data = orjson.loads(value)
    return Memory(**{**data, "calls": tuple(data["calls"])})


def remembered(heard: Batches, images: str) -> Memory | None:
    """What of an answer its upstream may need back; None if the client's own turn says it all."""
    text: list[str] = []
    reasoning: list[str] = []
    calls: list[tuple[ToolCallStart, list[str]]] = []
    for event in (event for batch in heard for event in batch):
        match event:
            case TextDelta():
                text.append(event.text)
            case ReasoningDelta():
                reasoning.append(event.text)
            case ToolCallStart():
                calls.append((event, []))
            case ToolCallDelta():
                calls[-1][1].append(event.arguments)
    finish = heard[-1][-1]
    turn = finish.turn if isinstance(finish, Finish) and _complete(finish) else None
    if not (turn or reasoning or calls):
        return None
    return Memory(
        text="".join(text),
        calls=tuple(_call(start, "".join(pieces)) for start, pieces in calls),
        reasoning="" if turn else "".join(reasoning),
        turn=turn,
        images=images,
    )


def _complete(finish: Finish) -> bool:
    """A turn that was cut may end in half a block, which no upstream takes back."""
    return finish.reason in ("stop", "tool_calls")


_ARGUMENTS: Mapping[str, str] = {"function": "arguments", "custom": "input"}


def _call(start: ToolCallStart, arguments: str) -> Json:
    # The form the door gives to the client's own, so that a lost memory does not change the bytes.
    said = canonical(arguments) if start.kind == "function" else arguments
    function = {"name": start.name, _ARGUMENTS[start.kind]: said}
    return {"id": start.id, "type": start.kind, start.kind: function}
