"""Events → one message: what its stream comes to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, assert_never

import orjson

from adapters.errors import Truncated
from adapters.protocol import (
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
from adapters.receipts import Receipt
from middleware.doors.messages.answer import Answering, ending, own_words, unsayable

_Rarer = ToolCallStart | RefusalDelta | Aside | Noted
_kind_of = itemgetter("type")


class MessageFold:
    """Collects one answer."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._content: list[Json] = []
        self._kind = ""
        """Of the block that is open."""
        self._pieces: list[str] = []
        """What it says."""
        self._refusal: list[str] = []
        self._said = 0
        self._late: Receipt = ()
        """What is known too late for the headers."""
        self._told: Json = {}
        self._opened = False
        self._finish: Finish | None = None

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            # What is in every answer, or makes up most of one, comes first.
            if type(event) is TextDelta:
                if self._kind != "text":
                    self._begin("text", {"type": "text", "text": ""})
                self._pieces.append(event.text)
            elif type(event) is ToolCallDelta:
                self._pieces.append(event.arguments)
            elif type(event) is Opened:
                self._opened = True
                self._answering.upstream = event.upstream.name
            elif type(event) is Finish:
                self._finish = event
            elif type(event) is ReasoningDelta:
                self._think(event.text)
            else:
                self._add(event)

    def _add(self, event: _Rarer) -> None:
        match event:
            case Aside():
                self._aside(event)
            case ToolCallStart(_, identity, name):
                identity = self._answering.call_id(identity)
                self._begin("tool_use", {"type": "tool_use", "id": identity, "name": name})
            case RefusalDelta(text):
                self._refusal.append(text)
            case Noted():
                pass  # the headers tell it
            case _:
                assert_never(event)

    def _begin(self, kind: str, block: Json) -> None:
        if self._kind or self._pieces:
            self._end()
        self._kind = kind
        self._content.append(block)

    def _end(self, signed: str = "") -> None:
        said, kind, content = "".join(self._pieces), self._kind, self._content
        self._said += len(said)
        self._pieces.clear()
        self._kind = ""
        if kind == "text":
            content[-1]["text"] = said
        elif kind == "tool_use":
            content[-1]["input"] = _input(said)
        elif kind == "thinking":
            shown = "" if self._answering.silent else said
            content[-1]["thinking"] = shown
            content[-1]["signature"] = signed or self._answering.signature(shown)

    def _think(self, text: str) -> None:
        if self._kind != "thinking":
            self._begin("thinking", {"type": "thinking"})
        self._pieces.append(text)

    def _aside(self, event: Aside) -> None:
        match event.field:
            case "own_citations":
                self._cite(event.value)
            case "reasoning":
                self._think(event.value)
            case "thinking_blocks":
                for block in event.value:
                    self._sign(block)
            case "own_block":
                self._begin("own", event.value)
                self._end()
            case "steps":
                self._told["steps"] = event.value
            case "step":
                pass  # `steps` has them all
            case name:
                self._late += (unsayable(name),)

    def _sign(self, block: Json) -> None:
        if block["type"] == "redacted_thinking":
            self._begin("redacted_thinking", block)
            self._end()
        elif self._kind == "thinking" or not block.get("thinking"):
            self._think("")
            self._end(block["signature"])

    def _cite(self, citations: Sequence[Json]) -> None:
        if self._kind == "text":
            if citations:
                self._content[-1]["citations"] = [*citations]
            self._end()

    def body(self) -> bytes:
        if not self._opened or self._finish is None:
            raise Truncated("The upstream's answer has no end.")
        if self._kind or self._pieces:
            self._end()
        finish, refusal = self._finish, "".join(self._refusal)
        if refusal or not self._content:
            self._say("" if finish.native == "refusal" else refusal)
        called = "tool_use" in map(_kind_of, self._content)
        message: Json = {
            **self._answering.head(),
            "content": self._content,
            **ending(finish, called, refusal),
            "usage": self._answering.usage(finish.usage, self._said),
        }
        if own := own_words(self._late, self._told, finish.usage):
            message["x_usetool"] = own
        return orjson.dumps(message)

    def _say(self, text: str) -> None:
        """What is told beside all blocks; without any, that there is nothing."""
        if text or not self._content:
            self._content.append({"type": "text", "text": text})


def _input(arguments: str) -> Any:
    """As it was written; what an answer's end has cut is no object, and means nothing."""
    try:
        return orjson.Fragment(arguments) if isinstance(orjson.loads(arguments), dict) else {}
    except orjson.JSONDecodeError:
        return {}
