"""How thoughts are shown to a client: in a field of their own, in the text, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from adapters.protocol import (
    Adapter,
    Aside,
    ChatRequest,
    Event,
    Events,
    Noted,
    Opened,
    Planned,
    ReasoningDelta,
    TextDelta,
)

Manner = Literal["reasoning_content", "reasoning", "think-tags", "hidden"]
_OPENER, _CLOSER = "<think>\n", "\n</think>\n\n"


@dataclass(frozen=True, slots=True)
class Show:
    """Tells the thoughts of its inner adapter in another manner than `reasoning_content`."""

    inner: Adapter
    manner: Manner

    async def stream(self, request: ChatRequest) -> Events:
        shown = _Shown(self.manner)
        async with aclosing(self.inner.stream(request)) as events:
            async for batch in events:
                if told := tuple(shown.told(batch)):
                    yield told

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        return self.inner.plan(request)


class _Shown:
    """One answer's thoughts."""

    def __init__(self, manner: Manner) -> None:
        self._manner = manner
        self._open = False
        self._held: Opened | None = None
        """Opens nothing as long as nothing is shown."""

    def told(self, batch: tuple[Event, ...]) -> Iterator[Event]:
        for event in batch:
            if type(event) is ReasoningDelta:
                yield from self._thought(event.text)
            elif type(event) is Opened and self._manner == "hidden":
                self._held = event
            elif type(event) is Noted and self._held is not None:
                receipt = self._held.receipt + event.receipt
                self._held = Opened(receipt, self._held.upstream)
            else:
                yield from self._other(event)

    def _thought(self, text: str) -> Iterator[Event]:
        match self._manner:
            case "reasoning_content":
                yield ReasoningDelta(text)
            case "reasoning":
                yield Aside("reasoning", text)
            case "think-tags":
                yield TextDelta(text if self._open else _OPENER + text)
                self._open = True

    def _other(self, event: Event) -> Iterator[Event]:
        if self._held is not None:
            yield self._held
            self._held = None
        if self._open and type(event) not in (Opened, Noted):
            yield TextDelta(_CLOSER)
            self._open = False
        yield event
