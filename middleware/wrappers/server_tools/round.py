"""`Round`: one answer of the model, parted into what the client hears and what is run here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import assert_never

from adapters.protocol import (
    RESULT_OF,
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
from adapters.shared.history import canonical
from middleware.tools.tool import ToolResult

OF_ONE_ANSWER = frozenset({"thinking_blocks", "reasoning_details"})
"""Members that mean something only beside the calls of their own answer."""


@dataclass(slots=True)
class RoundCall:
    start: ToolCallStart
    of_client: bool
    pieces: list[str] = field(default_factory=list)
    result: ToolResult | None = None
    """Of one that was run here."""
    table: str = ""
    """Its tool's."""
    said: list[str] = field(default_factory=list)
    """By its tool, while it ran; kept where clients are shown that."""
    order: int = 0
    """How many calls of its round were over before it."""

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def call(self) -> Json:
        """As a history says it, in the form the door gives to the client's own."""
        start, arguments = self.start, self.arguments
        if start.kind == "function":
            said = {"name": start.name, "arguments": canonical(arguments)}
        else:
            said = {"name": start.name, "input": arguments}
        return {"id": start.id, "type": start.kind, start.kind: said}


@dataclass(slots=True)
class Round:
    number: int
    of_client: Collection[str]
    most: int | None = None
    """Calls that may be run here; None: all."""
    text: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[RoundCall] = field(default_factory=list)
    finish: Finish | None = None
    opened: Opened | None = None
    asides: list[Aside] = field(default_factory=list)
    """What the client gets of them, if this is all of its answer."""
    _to_client: int = 0

    @property
    def run_here(self) -> list[RoundCall]:
        """The calls that are not the client's, as many as may be; none if they may have been
        cut.
        """
        complete = self.finish is not None and self.finish.reason in ("tool_calls", "stop")
        return [call for call in self.calls if not call.of_client][: self.most] if complete else []

    @property
    def has_client_calls(self) -> bool:
        return self._to_client > 0

    def read(self, events: Iterable[Event]) -> Iterator[Event]:
        """What of them is the client's; `Finish` is told when all is known."""
        for event in events:
            match event:
                case TextDelta(text):
                    self.text.append(text)
                    yield event
                case ToolCallStart():
                    yield from self._start(event)
                case ToolCallDelta():
                    yield from self._go_on(event)
                case Finish():
                    self.finish = event
                case Aside(name) if name in OF_ONE_ANSWER:
                    self.asides.append(event)
                case Opened():
                    self.opened = event
                    yield event
                case ReasoningDelta(text):
                    self.thoughts.append(text)
                    yield event
                case RefusalDelta() | Noted() | Aside():
                    yield event
                case _:
                    assert_never(event)

    def turn(self) -> Json:
        """The assistant's, as a history says it; without calls that nobody answers."""
        text = "".join(self.text)
        calls = [call.call() for call in self.calls if call.of_client or call.result is not None]
        message: Json = {"role": "assistant", "content": text}
        if calls:
            message["content"] = text or None
            message["tool_calls"] = calls
        return message

    def own_thoughts(self) -> Json:
        """Of the turn, for upstreams that want them back where nobody else remembers them."""
        if self.finish is not None and self.finish.turn is not None:
            return {TURN: self.finish.turn}
        return {"reasoning_content": "".join(self.thoughts)} if self.thoughts else {}

    def results(self) -> list[Json]:
        """Of what was run here, in the order of the calls."""
        return [
            _message(call.start.id, call.result, call.table)
            for call in self.calls
            if call.result is not None
        ]

    def is_client_s(self, event: ToolCallStart) -> bool:
        return event.name in self.of_client

    def _start(self, event: ToolCallStart) -> Iterator[Event]:
        of_client = self.is_client_s(event)
        self.calls.append(RoundCall(event, of_client))
        if of_client:
            yield event if event.index == self._to_client else replace(event, index=self._to_client)
            self._to_client += 1

    def _go_on(self, event: ToolCallDelta) -> Iterator[Event]:
        call = self.calls[-1]
        call.pieces.append(event.arguments)
        if call.of_client:
            yield ToolCallDelta(self._to_client - 1, event.arguments)


def _message(identity: str, result: ToolResult, table: str) -> Json:
    message: Json = {"role": "tool", "tool_call_id": identity, "content": result.content}
    if not isinstance(result.content, str):
        message[RESULT_OF] = table
    return {**message, "is_error": True} if result.failed else message
