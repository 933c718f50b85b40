"""Events → lines of JSON, as Ollama streams an answer. One call of `render` is one write."""

from __future__ import annotations

from collections.abc import Sequence
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
from middleware.doors.door import Stamp
from middleware.doors.endpoint import NDJSON
from middleware.doors.ollama.ending import Ending, HeldCalls
from middleware.doors.ollama.errors import error_line
from middleware.doors.ollama.forms import LineForm, second, timestamp
from middleware.doors.x_usetool import usage_parts

_dumps = orjson.dumps
_Rarer = TextDelta | RefusalDelta | ToolCallStart | Opened | Aside | Noted | Finish


class Lines:
    """Writes one answer's lines."""

    media_type = NDJSON

    def __init__(self, form: LineForm, model: str, stamp: Stamp) -> None:
        self._form, self._model, self._now = form, model, stamp.now
        self._began = self._opened = stamp.began
        self._head = b'{"model":' + _dumps(model) + b',"created_at":"'
        self._whole, self._second = -1, b""
        self._calls, self._ending = HeldCalls(), Ending()

    def keep_for_last_frame(self, receipt: Receipt) -> None:
        self._ending.notes.add_all(receipt)

    def tell(self, member: str, value: Any) -> None:
        self._ending.told[member] = value

    def heartbeat(self) -> bytes:
        """A line without a word: an empty one is an error to some clients."""
        before, behind = self._form.text
        return b"".join((*self._begin(), before, b'""', behind))

    def error_frame(self, error: GatewayError, request_id: str, untold: Receipt) -> bytes:
        return error_line(error, untold)

    def render(self, events: Sequence[Event]) -> bytes:
        text, behind_text = self._form.text
        thought, behind_thought = self._form.thought
        frames: list[bytes] = []
        for event in events:
            # What makes up almost all of a stream comes first.
            if type(event) is TextDelta and not event.logprobs:
                frames += (*self._begin(), text, _dumps(event.text), behind_text)
            elif type(event) is ToolCallDelta:
                self._calls.go_on(event)
            elif type(event) is ReasoningDelta:
                frames += (*self._begin(), thought, _dumps(event.text), behind_thought)
            else:
                frames.append(self._line(event))
        return b"".join(frames)

    def _line(self, event: _Rarer) -> bytes:
        match event:
            case TextDelta(text, logprobs):
                return self._say(text, more={"logprobs": logprobs})
            case RefusalDelta(text):
                return self._say(text)
            case ToolCallStart():
                self._calls.begin(event)
            case Opened():
                self._opened = self._now()
            case Aside():
                self._ending.lose(event)
            case Noted(receipt):
                self._ending.notes.add_all(receipt)
            case Finish():
                return self._finish(event)
            case _:
                assert_never(event)
        return b""

    def _finish(self, event: Finish) -> bytes:
        calls = self._calls.objects(self._ending, event)
        if parts := usage_parts(event.usage):
            self._ending.told["usage"] = parts
        first, total = self._opened - self._began, self._now() - self._began
        ended = self._ending.members(event, first, total)
        return (self._say("", calls) if calls else b"") + self._say("", more=ended)

    def _say(self, text: str, calls: Sequence[Json] = (), more: Json | None = None) -> bytes:
        line: Json = {"model": self._model, "created_at": timestamp(self._now())}
        line |= {**self._form.said(text, "", calls), "done": False, **(more or {})}
        return _dumps(line) + b"\n"

    def _begin(self) -> tuple[bytes, bytes]:
        """The members of every line, with the time of this one."""
        now = self._now()
        whole = int(now)
        if whole != self._whole:
            self._whole, self._second = whole, self._head + second(whole).encode()
        return self._second, b'.%09dZ",' % int((now - whole) * 1e9)
