"""The response object: what is the same in all that is said of one answer, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from adapters.protocol import FinishReason, Json, Usage, value_class
from adapters.receipts import Note, Receipt
from middleware.doors.responses.fields import Echo
from middleware.doors.x_usetool import usage_parts, warnings_object

USAGE_UNKNOWN = Note("usage_unknown", "usage", "the upstream reported none")
_HEAD = b'{"id":"%b","object":"response","created_at":%d,'
_JSON: Mapping[bool, bytes] = {True: b"true", False: b"false"}
_NOTHING_YET = b',"output":[],"usage":null}'


class ResponseStatus(NamedTuple):
    """How far an answer is."""

    word: str
    members: bytes
    """Those of its object that tell of it."""


def status_of(status: str, **more: Any) -> ResponseStatus:
    usual = {"status": status, "background": False, "error": None, "incomplete_details": None}
    return ResponseStatus(status, orjson.dumps(usual | more)[1:-1] + b",")


_GOES_ON, _COMPLETED = status_of("in_progress"), status_of("completed")
_CUT: Mapping[FinishReason, ResponseStatus] = {
    "length": status_of("incomplete", incomplete_details={"reason": "max_output_tokens"}),
    "content_filter": status_of("incomplete", incomplete_details={"reason": "content_filter"}),
}


def how_it_ended(reason: FinishReason, refused: bool) -> ResponseStatus:
    """A refusal in words is a whole answer."""
    if refused and reason == "content_filter":
        return _COMPLETED
    return _CUT.get(reason, _COMPLETED)


@value_class
class ResponseHeading:
    id: str
    """One of ours: no JSON says it otherwise."""
    created: int
    echo: Echo
    tools: bytes
    """As the request declared them."""
    stored: bool

    def begun(self) -> Parts:
        """The object of an answer that goes on. Tools may be long, and nobody reads them there."""
        return self._parts(_GOES_ON, b"[]", _NOTHING_YET)

    def ended(
        self, how: ResponseStatus, output: list[Json], usage: Json | None, own: Json
    ) -> Parts:
        """The whole object, with words of our own; `how` it ended."""
        last = {"output": output, "usage": usage, **own}
        return self._parts(how, self.tools, b",%b" % orjson.dumps(last)[1:])

    def finished(
        self,
        how: ResponseStatus,
        output: list[Json],
        usage: Usage | None,
        late: Receipt = (),
        told: Json | None = None,
    ) -> Parts:
        """The same of an answer that has its end; with what is `told` beside it."""
        if usage is None:
            return self.ended(how, output, None, own_words((*late, USAGE_UNKNOWN), told, None))
        own = own_words(late, told, usage) if late or told or usage.parts else {}
        return self.ended(how, output, tokens(usage), own)

    def _parts(self, how: ResponseStatus, tools: bytes, last: bytes) -> Parts:
        head, stored = _HEAD % (self.id.encode(), self.created), _JSON[self.stored]
        before, between, behind = self.echo
        return head, how.members, before, tools, between, stored, behind, last


Parts = Sequence[bytes]
"""Of an object, as tools may be long."""


def tokens(usage: Usage) -> Json:
    """Both details are always there: Codex reads no usage without."""
    cached: Json = {"cached_tokens": usage.cached or 0}
    if usage.cache_write is not None:
        cached["cache_write_tokens"] = usage.cache_write
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": cached,
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": usage.prompt + usage.completion,
    }


def own_words(late: Receipt, told: Json | None, usage: Usage | None) -> Json:
    """What is ours to tell and could not stand in the headers."""
    parts = usage_parts(usage) if usage is not None and usage.parts else None
    if not (late or told or parts):
        return {}
    own = (warnings_object(late) if late else {}) | (told or {})
    return {"x_usetool": own | ({"usage": parts} if parts else {})}
