"""How thoughts are shown to a client: in a field of their own, in the text, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, assert_never

from adapters.protocol import (
    Aside,
    ChatRequest,
    Event,
    Events,
    Finish,
    Noted,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from adapters.receipts import Note, Receipt
from adapters.shared.think_tags import CLOSER, OPENER
from middleware.wrappers.base import Wrapper

Manner = Literal["reasoning_content", "reasoning", "think-tags", "hidden"]
_BEFORE, _BEHIND = f"{OPENER}\n", f"\n{CLOSER}\n\n"
_HIDDEN = Note(
    "reasoning_hidden",
    "response_format",
    "thoughts are not shown beside JSON: some clients put them into its text",
)


@dataclass(frozen=True, slots=True)
class Show(Wrapper):
    """Tells the thoughts of its inner adapter as the config wants them told."""

    manner: Manner | None = None
    """None: in `reasoning_content`, except beside JSON, where Dify would mix them into it."""

    def stream(self, request: ChatRequest) -> Events:
        beside_json = "response_format" in request.params and self._mixes_into_json(request)
        manner = "hidden" if beside_json else self.manner or "reasoning_content"
        if manner == "reasoning_content":
            return self.inner.stream(request)
        return self._told(request, _Shown(manner, (_HIDDEN,) if beside_json else ()))

    def _mixes_into_json(self, request: ChatRequest) -> bool:
        # Tags in the text would break JSON too.
        # Other protocols, whose requests have a part of their own, keep thoughts apart.
        mixes = self.manner == "think-tags" or (self.manner is None and request.native is None)
        form = request.params["response_format"] or {}
        return mixes and form.get("type") in ("json_object", "json_schema")

    async def _told(self, request: ChatRequest, shown: _Shown) -> Events:
        async with aclosing(self.inner.stream(request)) as events:
            async for batch in events:
                if told := tuple(shown.told(batch)):
                    yield told


class _Shown:
    """One answer's thoughts."""

    def __init__(self, manner: Manner, receipt: Receipt) -> None:
        self._manner = manner
        self._receipt = receipt
        """To be told if there is a thought."""
        self._open = False
        self._signed: list[Aside] = []
        """Thoughts for upstreams alone: in their places they would part what is told of them."""
        self._held: Opened | None = None
        """Opens nothing as long as nothing is shown."""

    def told(self, batch: tuple[Event, ...]) -> Iterator[Event]:
        for event in batch:
            match event:
                case ReasoningDelta(text):
                    yield from self._thought(text)
                case Opened() if self._manner == "hidden":
                    self._held = event
                case Opened():
                    yield event
                case Noted(receipt):
                    yield from self._note(receipt)
                case TextDelta() | RefusalDelta() | ToolCallStart() | ToolCallDelta():
                    yield from self._other(event)
                case Aside("thinking_blocks"):
                    self._signed.append(event)
                case Aside():
                    yield from self._other(event)
                case Finish():
                    for signed in self._signed:
                        yield from self._other(signed)
                    yield from self._other(event)
                case _:
                    assert_never(event)

    def _note(self, receipt: Receipt) -> Iterator[Event]:
        if self._held is not None:
            self._held = Opened(self._held.receipt + receipt, self._held.upstream)
        elif receipt:
            yield Noted(receipt)

    def _thought(self, text: str) -> Iterator[Event]:
        match self._manner:
            case "hidden":
                receipt, self._receipt = self._receipt, ()
                yield from self._note(receipt)
            case "reasoning":
                yield Aside("reasoning", text)
            case "think-tags":
                yield TextDelta(text if self._open else _BEFORE + text)
                self._open = True

    def _other(self, event: Event) -> Iterator[Event]:
        if self._held is not None:
            yield self._held
            self._held = None
        if self._open:
            yield TextDelta(_BEHIND)
            self._open = False
        yield event
