"""The response object: what is the same in all that is said of one answer, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from adapters.protocol import FinishReason, Json, Usage, value_class
from adapters.receipts import Note, Receipt
from middleware.doors.responses.fields import Echo
from middleware.doors.x_usetool import usage_parts, warnings_object

_CUT: Mapping[FinishReason, str] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}
USAGE_UNKNOWN = Note("usage_unknown", "usage", "the upstream reported none")


@value_class
class ResponseHeading:
    id: str
    created: int
    echo: Echo

    def begun(self) -> bytes:
        """The object of an answer that goes on. Tools may be long, and nobody reads them there."""
        return b"".join(self._parts({"status": "in_progress"}, b"[]", []))

    def ended(self, how: Json, output: list[Json], **more: Any) -> Sequence[bytes]:
        """The whole object, in pieces; `how` it ended."""
        return self._parts(how, self.echo.tools, output, **more)

    def finished(
        self,
        how: Json,
        output: list[Json],
        usage: Usage | None,
        late: Receipt = (),
        told: Json | None = None,
    ) -> Sequence[bytes]:
        """The same of an answer that has its end; with what is `told` beside it."""
        if usage is None:
            return self.ended(how, output, **own_words((*late, USAGE_UNKNOWN), told or {}, None))
        return self.ended(how, output, usage=tokens(usage), **own_words(late, told or {}, usage))

    def _parts(self, how: Json, tools: bytes, output: list[Json], **more: Any) -> Sequence[bytes]:
        said = {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": "",
            "background": False,
            "error": None,
            "incomplete_details": None,
            **how,
        }
        last = {"output": output, "usage": None, **more}
        return orjson.dumps(said)[:-1], b",", *self.echo.text(tools), b",", orjson.dumps(last)[1:]


def how_it_ended(reason: FinishReason, refused: bool) -> Json:
    """Status and what goes with it; a refusal in words is a whole answer."""
    why = _CUT.get(reason)
    if why is None or (refused and reason == "content_filter"):
        return {"status": "completed"}
    return {"status": "incomplete", "incomplete_details": {"reason": why}}


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


def own_words(late: Receipt, told: Json, usage: Usage | None) -> Json:
    """What is ours to tell and could not stand in the headers."""
    parts = usage_parts(usage)
    if not (late or told or parts):
        return {}
    own = (warnings_object(late) if late else {}) | told
    return {"x_usetool": own | ({"usage": parts} if parts else {})}
