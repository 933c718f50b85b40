"""Events → the named events of a streamed message.

One block is open at a time; the next kind closes it. A thought is signed where it ends: by its
upstream, or, where that signs none, by us. One call of `render` is one write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, assert_never

import orjson

from adapters.errors import GatewayError
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
from middleware.doors.bursts import BURST, delta_arguments, delta_text, surround
from middleware.doors.endpoint import SSE
from middleware.doors.messages.answer import (
    Answering,
    ending,
    own_words,
    unsayable,
)
from middleware.doors.messages.errors import error_frame
from middleware.doors.x_usetool import usage_parts

_dumps = orjson.dumps
_PING = b'event: ping\ndata: {"type":"ping"}\n\n'
_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":'
_TAIL = b"}}\n\n"
_TEXT = b'{"type":"text_delta","text":'
_INPUT = b'{"type":"input_json_delta","partial_json":'
_THOUGHT = b'{"type":"thinking_delta","thinking":'
_Rarer = ToolCallStart | RefusalDelta | Opened | Aside | Noted | Finish
_EMPTY_THOUGHT: Mapping[str, str] = {"type": "thinking", "thinking": "", "signature": ""}
_EMPTY_TEXT: Mapping[str, str] = {"type": "text", "text": ""}


class MessageEvents:
    """Writes one answer."""

    media_type = SSE

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._index = -1
        """Of the last block that began."""
        self._kind = ""
        """Of the one that is open."""
        self._head = b""
        """Begins each of its deltas."""
        self._thought: list[str] = []
        """What the open one says, if it is a thought: it is signed."""
        self._refusal: list[str] = []
        self._said = 0
        """Letters."""
        self._called = False
        self._late: Receipt = ()
        self._told: Json = {}

    def keep_for_last_frame(self, receipt: Receipt) -> None:
        self._late += receipt

    def tell(self, member: str, value: Any) -> None:
        self._told[member] = value

    def heartbeat(self) -> bytes:
        return _PING

    def error_frame(self, error: GatewayError, request_id: str, untold: Receipt) -> bytes:
        return error_frame(error, request_id, untold)

    def render(self, events: Sequence[Event]) -> bytes:
        frames: list[bytes] = []
        if len(events) >= BURST:
            self._write_runs(events, frames)
            return b"".join(frames)
        for event in events:
            # What makes up almost all of a stream comes first.
            if type(event) is TextDelta:
                if self._kind != "text":
                    self._begin("text", _EMPTY_TEXT, frames)
                self._said += len(event.text)
                frames += (self._head, _TEXT, _dumps(event.text), _TAIL)
            elif type(event) is ToolCallDelta:
                self._said += len(event.arguments)
                frames += (self._head, _INPUT, _dumps(event.arguments), _TAIL)
            elif type(event) is ReasoningDelta:
                self._think(event.text, frames)
            else:
                self._write(event, frames)
        return b"".join(frames)

    def _write_runs(self, events: Sequence[Event], frames: list[bytes]) -> None:
        """The same for so many that most stand behind their like."""
        for kind, group in groupby(events, type):
            run: list[Any] = [*group]
            if kind is TextDelta:
                if self._kind != "text":
                    self._begin("text", _EMPTY_TEXT, frames)
                frames.append(self._deltas(_TEXT, [*map(delta_text, run)]))
            elif kind is ToolCallDelta:
                frames.append(self._deltas(_INPUT, [*map(delta_arguments, run)]))
            else:
                for event in run:
                    if kind is ReasoningDelta:
                        self._think(event.text, frames)
                    else:
                        self._write(event, frames)

    def _deltas(self, name: bytes, run: list[str]) -> bytes:
        """What is said in the open block, piece by piece."""
        self._said += sum(map(len, run))
        return surround(run, self._head + name, _TAIL)

    def _write(self, event: _Rarer, frames: list[bytes]) -> None:
        match event:
            case ToolCallStart(_, identity, name):
                self._called = True
                call = {"type": "tool_use", "id": self._answering.call_id(identity)}
                self._begin("tool_use", {**call, "name": name, "input": {}}, frames)
            case RefusalDelta(text):
                self._refusal.append(text)
            case Opened():
                self._open(event, frames)
            case Aside():
                self._aside(event, frames)
            case Noted(receipt):
                self._late += receipt
            case Finish():
                self._finish(event, frames)
            case _:
                assert_never(event)

    def _open(self, event: Opened, frames: list[bytes]) -> None:
        answering = self._answering
        answering.upstream = event.upstream.name
        usage = {"input_tokens": answering.asked(), "cache_creation_input_tokens": 0,
                 "cache_read_input_tokens": 0, "output_tokens": 1}  # fmt: skip
        message = {**answering.head(), "content": [], "stop_reason": None, "stop_sequence": None}
        frames.append(_frame({"type": "message_start", "message": {**message, "usage": usage}}))
        frames.append(_PING)

    # Blocks -------------------------------------------------------------------------------------

    def _begin(self, kind: str, block: Mapping[str, Any], frames: list[bytes]) -> None:
        if self._kind:
            self._end(frames)
        self._index += 1
        self._kind = kind
        start = {"type": "content_block_start", "index": self._index, "content_block": block}
        frames.append(_frame(start))
        self._head = _DELTA % self._index

    def _end(self, frames: list[bytes], signed: str = "") -> None:
        if self._kind == "thinking":
            signed = signed or self._answering.signature("".join(self._thought))
            self._thought.clear()
            delta = {"type": "signature_delta", "signature": signed}
            frames += (self._head, _dumps(delta), b"}\n\n")
        self._kind = ""
        frames.append(_frame({"type": "content_block_stop", "index": self._index}))

    def _think(self, piece: str, frames: list[bytes]) -> None:
        if self._kind != "thinking":
            self._begin("thinking", _EMPTY_THOUGHT, frames)
        self._said += len(piece)
        if not self._answering.silent:
            self._thought.append(piece)
            frames += (self._head, _THOUGHT, _dumps(piece), _TAIL)

    def _aside(self, event: Aside, frames: list[bytes]) -> None:
        match event.field:
            case "reasoning":
                self._think(event.value, frames)
            case "thinking_blocks":
                for block in event.value:
                    self._sign(block, frames)
            case "own_block":
                self._begin("own", event.value, frames)
                self._end(frames)
            case "own_citations":
                self._cite(event.value, frames)
            case "steps":
                self.tell("steps", event.value)
            case "step":
                pass  # `steps` has them all
            case name:
                self._late += (unsayable(name),)

    def _sign(self, block: Json, frames: list[bytes]) -> None:
        """The end of a thought, or one that is not told."""
        if block["type"] == "redacted_thinking":
            self._begin("redacted_thinking", block, frames)
            self._end(frames)
        elif self._kind == "thinking" or not block.get("thinking"):
            if self._kind != "thinking":
                self._begin("thinking", _EMPTY_THOUGHT, frames)
            self._end(frames, block["signature"])

    def _cite(self, citations: Sequence[Json], frames: list[bytes]) -> None:
        """What the open text rests on; what follows is another text."""
        if self._kind == "text":
            for citation in citations:
                delta = {"type": "citations_delta", "citation": citation}
                frames += (self._head, _dumps(delta), b"}\n\n")
            self._end(frames)

    # The end ------------------------------------------------------------------------------------

    def _finish(self, event: Finish, frames: list[bytes]) -> None:
        refusal = "".join(self._refusal)
        if refusal and event.native != "refusal":
            self._begin("text", _EMPTY_TEXT, frames)
            frames += (self._head, _TEXT, _dumps(refusal), _TAIL)
        elif self._index < 0:
            self._begin("text", _EMPTY_TEXT, frames)
        if self._kind:
            self._end(frames)
        last: Json = {
            "type": "message_delta",
            "delta": ending(event, self._called, refusal),
            "usage": self._answering.usage(event.usage, self._said),
        }
        own = own_words(self._late, self._told, event.usage)
        if parts := usage_parts(event.usage):
            own["usage"] = parts
        if own:
            last["x_usetool"] = own
        frames += (_frame(last), _STOP)


def _frame(event: Json) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), _dumps(event))
