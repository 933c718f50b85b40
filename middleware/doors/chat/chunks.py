"""Events → the SSE frames of a streamed answer.

The order is OpenAI's: role, then reasoning, text and calls as they come, the reason, usage when
asked for, `[DONE]`. One call of `render` is one write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    Usage,
)
from adapters.receipts import Note, Receipt
from middleware.doors.bursts import BURST, delta_arguments, delta_text, surround
from middleware.doors.chat.errors import error_frame
from middleware.doors.chat.words import (
    THINKING_BLOCKS,
    Heading,
    echoed,
    joined,
)
from middleware.doors.door import PING
from middleware.doors.endpoint import SSE
from middleware.doors.x_usetool import usage_object, usage_parts, warnings_object

_dumps = orjson.dumps
# Clients that echo these read them from the last delta.
_AT_THE_END = frozenset({THINKING_BLOCKS})
_USAGE_UNKNOWN = Note("usage_unknown", "usage", "the upstream reported none: 0 is no figure here")
_Rarer = TextDelta | RefusalDelta | ToolCallStart | Aside | Noted | Finish


_Form = tuple[bytes, bytes]
"""What stands around the text in chunks that differ in that alone."""
_NO_FORM: _Form = (b"", b"")
_WITH_TEXT, _WITHOUT_TEXT = (
    _dumps({"role": "assistant", "content": content}) for content in ("", None)
)


class Chunks:
    """Writes one answer's chunks."""

    media_type = SSE

    def __init__(self, heading: Heading) -> None:
        self._heading = heading
        self._head, self._tail = b"", b""
        self._text = self._thought = self._arguments = _NO_FORM
        self._base: Json = {}
        self._late: Receipt = ()
        self._told: Json = {}
        self._last: Json = {}

    def keep_for_last_frame(self, receipt: Receipt) -> None:
        """What the response headers can no longer say goes on the finish chunk."""
        self._late += receipt

    def tell(self, member: str, value: Any) -> None:
        self._told[member] = value

    def heartbeat(self) -> bytes:
        return PING

    def error_frame(self, error: GatewayError, request_id: str, untold: Receipt) -> bytes:
        return error_frame(error, request_id, untold)

    def render(self, events: Sequence[Event]) -> bytes:
        if len(events) >= BURST:
            return b"".join(self._runs(events))
        before, behind = self._text
        frames: list[bytes] = []
        for event in events:
            # What makes up almost all of a stream comes first.
            if type(event) is TextDelta and not event.logprobs:
                frames += (before, _dumps(event.text), behind)
            elif type(event) is ToolCallDelta:
                opening, closing = self._arguments
                frames += (opening, _dumps(event.arguments), closing)
            elif type(event) is ReasoningDelta:
                opening, closing = self._thought
                frames += (opening, _dumps(event.text), closing)
            elif type(event) is Opened:
                frames.append(self._open(event, events))
                before, behind = self._text
            else:
                frames.append(self._frame(event))
        return b"".join(frames)

    def _runs(self, events: Sequence[Event]) -> Iterator[bytes]:
        """The same for so many that most stand behind their like."""
        for kind, group in groupby(events, type):
            run: list[Any] = [*group]
            if kind is TextDelta and not any(one.logprobs for one in run):
                yield surround([*map(delta_text, run)], *self._text)
            elif kind is ToolCallDelta:
                yield surround([*map(delta_arguments, run)], *self._arguments)
            elif kind is ReasoningDelta:
                yield surround([*map(delta_text, run)], *self._thought)
            else:
                yield b"".join([self._rare(one, events) for one in run])

    def _rare(self, event: Event, events: Sequence[Event]) -> bytes:
        return self._open(event, events) if type(event) is Opened else self.render([event])

    def _frame(self, event: _Rarer) -> bytes:
        match event:
            case TextDelta(text, logprobs):
                logged = {"content": list(logprobs), "refusal": None}
                return self._choice({"content": text}, None, logged)
            case ToolCallStart():
                return self._call(event)
            case RefusalDelta(text):
                return self._delta({"refusal": text})
            case Aside():
                return self._aside(event)
            case Noted(receipt):
                self._late += receipt
                return b""
            case Finish():
                return self._finish(event)
            case _:
                assert_never(event)

    def _open(self, event: Opened, events: Sequence[Event]) -> bytes:
        heading = self._heading
        base: Json = {
            "id": heading.id,
            "object": "chat.completion.chunk",
            "created": heading.created,
            "model": heading.model,
        }
        if event.upstream.fingerprint:
            base["system_fingerprint"] = event.upstream.fingerprint
        if event.upstream.tier:
            base["service_tier"] = event.upstream.tier
        self._base = base
        self._head = b"data: " + _dumps(base)[:-1] + b',"choices":[{"index":0,"delta":'
        usage = b',"usage":null' if heading.usage_chunk else b""
        self._tail = b',"logprobs":null,"finish_reason":null}]' + usage + b"}\n\n"
        self._text = self._form(b'{"content":', b"}")
        self._thought = self._form(b'{"reasoning_content":', b"}")
        kinds = (type(other) for other in events if type(other) not in (Opened, Noted))
        # Null where something else comes first: with calls alone, text is null at OpenAI too.
        text = next(kinds, TextDelta) in (TextDelta, Finish)
        return self._head + (_WITH_TEXT if text else _WITHOUT_TEXT) + self._tail

    def _delta(self, delta: Json) -> bytes:
        return self._head + _dumps(delta) + self._tail

    def _form(self, before: bytes, behind: bytes) -> _Form:
        return self._head + before, behind + self._tail

    def _call(self, event: ToolCallStart) -> bytes:
        if self._heading.legacy:
            self._arguments = self._form(b'{"function_call":{"arguments":', b"}}")
            return self._delta({"function_call": {"name": event.name, "arguments": ""}})
        name = "input" if event.kind == "custom" else "arguments"
        piece = b'{"tool_calls":[{"index":%d,"%b":{"%b":'
        kind = event.kind.encode()
        self._arguments = self._form(piece % (event.index, kind, name.encode()), b"}}]}")
        function = {"name": event.name, name: ""}
        call = {"index": event.index, "id": event.id, "type": event.kind, event.kind: function}
        return self._delta({"tool_calls": [call]})

    def _aside(self, event: Aside) -> bytes:
        if event.field in _AT_THE_END:
            self._last[event.field] = joined(self._last.get(event.field), event.value)
            return b""
        if event.field == "steps":
            self.tell("steps", event.value)
            return b""
        if event.field == "step":
            return self._choice({}, None, None, {"step": event.value})
        return self._delta({event.field: event.value})

    def _finish(self, event: Finish) -> bytes:
        if self._heading.usage_chunk and event.usage is None:
            self._late += (_USAGE_UNKNOWN,)
        last = echoed(self._last, event) if self._last else self._last
        frames = self._choice(last, self._heading.reason(event), None, self._own(event))
        if self._heading.usage_chunk:
            # The client asked for it, so it comes even where the upstream reported nothing.
            usage = usage_object(event.usage or Usage(0, 0))
            chunk = {**self._base, "choices": [], "usage": usage}
            frames += b"data: " + _dumps(chunk) + b"\n\n"
        return frames + b"data: [DONE]\n\n"

    def _own(self, event: Finish) -> Json:
        """What is ours to tell and could not stand in the headers."""
        own = warnings_object(self._late) | self._told if self._late else self._told
        if event.usage is not None and event.usage.parts:
            return {**own, "usage": usage_parts(event.usage)}
        return own

    def _choice(
        self, delta: Json, reason: str | None, logprobs: Json | None, own: Json | None = None
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        chunk: Json = {**self._base, "choices": [choice]}
        if self._heading.usage_chunk:
            chunk["usage"] = None
        if own:
            chunk["x_usetool"] = own
        return b"data: " + _dumps(chunk) + b"\n\n"
