"""Events → lines of JSON, as Ollama streams an answer. One call of `render` is one write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
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
from middleware.doors.bursts import BURST, delta_text, surround
from middleware.doors.door import Stamp
from middleware.doors.endpoint import NDJSON
from middleware.doors.ollama.ending import Ending, HeldCalls
from middleware.doors.ollama.errors import error_line
from middleware.doors.ollama.forms import LineForm, second, timestamp
from middleware.doors.x_usetool import usage_parts

_dumps = orjson.dumps
_MOMENT = 0.001
"""Seconds that lines may have the same time: to write it is half of what a line costs."""
_END_OF_TIME = b'Z",'
_logprobs_of = attrgetter("logprobs")
_Rarer = TextDelta | RefusalDelta | ToolCallStart | Opened | Aside | Noted | Finish


class Lines:
    """Writes one answer's lines."""

    media_type = NDJSON

    def __init__(self, form: LineForm, model: str, stamp: Stamp) -> None:
        self._form, self._model, self._now = form, model, stamp.now
        self._began = self._opened = stamp.began
        (text, self._behind_text), (thought, self._behind_thought) = form.text, form.thought
        self._text, self._thought = _END_OF_TIME + text, _END_OF_TIME + thought
        self._head = b'{"model":' + _dumps(model) + b',"created_at":"'
        self._told, self._second = -1.0, b""
        self._beginning = b"", b""
        self._calls, self._ending = HeldCalls(), Ending()

    def keep_for_last_frame(self, receipt: Receipt) -> None:
        self._ending.notes.add_all(receipt)

    def tell(self, member: str, value: Any) -> None:
        self._ending.told[member] = value

    def heartbeat(self) -> bytes:
        """A line without a word: an empty one is an error to some clients."""
        return b"".join((*self._time(), self._text, b'""', self._behind_text))

    def error_frame(self, error: GatewayError, request_id: str, untold: Receipt) -> bytes:
        return error_line(error, untold)

    def render(self, events: Sequence[Event]) -> bytes:
        begun, dated = self._time()
        if len(events) >= BURST:
            return b"".join(self._runs(events, begun + dated))
        return self._each(events, begun, dated)

    def _each(self, events: Iterable[Event], begun: bytes, dated: bytes) -> bytes:
        frames: list[bytes] = []
        for event in events:
            # What makes up almost all of a stream comes first.
            if type(event) is ToolCallDelta:
                self._calls.go_on(event)
            elif type(event) is TextDelta and not event.logprobs:
                frames += (begun, dated, self._text, _dumps(event.text), self._behind_text)
            elif type(event) is ReasoningDelta:
                frames += (begun, dated, self._thought, _dumps(event.text), self._behind_thought)
            else:
                frames.append(self._line(event))
        return b"".join(frames)

    def _runs(self, events: Sequence[Event], begun: bytes) -> Iterator[bytes]:
        """The same for so many that most stand behind their like."""
        for kind, group in groupby(events, type):
            run: list[Any] = [*group]
            if kind is ToolCallDelta:
                self._calls.go_on_with(run)
            elif kind is TextDelta and not any(map(_logprobs_of, run)):
                yield surround([*map(delta_text, run)], begun + self._text, self._behind_text)
            elif kind is ReasoningDelta:
                before = begun + self._thought
                yield surround([*map(delta_text, run)], before, self._behind_thought)
            else:
                yield self._each(run, begun, b"")

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
        words = self._form.said(text, "", calls)
        line = {"model": self._model, "created_at": timestamp(self._now()), **words, "done": False}
        return _dumps(line | more if more else line, option=orjson.OPT_APPEND_NEWLINE)

    def _time(self) -> tuple[bytes, bytes]:
        """How every line begins, up to the last digit of its time."""
        now = self._now()
        if not 0 <= now - self._told < _MOMENT:
            if int(now) != int(self._told):
                self._second = self._head + second(int(now)).encode() + b"."
            self._told = now
            self._beginning = self._second, b"%09d" % (now % 1 * 1e9)
        return self._beginning
