"""A body's bytes → its JSON object, within bounds; the same for every protocol."""

from __future__ import annotations

from typing import Any

import orjson

from adapters.errors import BadRequest
from adapters.protocol import Json, RequestContext
from adapters.receipts import Notes
from adapters.shared.marks import are_deeper, marks, most_openers
from middleware.doors.surrogates import without_surrogates

MAX_DEPTH = 64
MAX_VALUES = 60_000
"""Each costs microseconds here and at every leaf, however short it is."""


def read_object(body: bytes, notes: Notes) -> Json:
    """Return the JSON object of a body, or raise a `BadRequest` that says what is wrong with it."""
    found = _marks(body)
    if len(found) - found.count(b"]") > MAX_VALUES:
        raise BadRequest(
            f"The request body has more than {MAX_VALUES} values: objects, arrays and their "
            "members. Send fewer messages, tools or properties of tools.",
            code="request_too_large",
            status=413,
        )
    data = _value(body, notes)
    if not isinstance(data, dict):
        raise BadRequest("The request body must be a JSON object.", code="invalid_type")
    if are_deeper(found, MAX_DEPTH):
        raise BadRequest(
            f"The request body is nested more than {MAX_DEPTH} levels deep. Flatten it.",
            code="invalid_value",
        )
    return data


def asked_so(call: RequestContext, streamed: bool, most_calls: int | None = None) -> RequestContext:
    """The context of a request that is to be answered in one way or the other."""
    if streamed is call.streamed and most_calls == call.most_calls:
        return call
    given = call.id, call.owner, call.deadline, streamed, call.key, call.capture
    more = call.client, call.chosen, call.journey, call.size, call.session, call.secret
    return RequestContext(*given, *more, call.headers, most_calls, call.now)


def _value(body: bytes, notes: Notes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        mended = without_surrogates(body)
        if mended != body:
            text = "halves of characters (an emoji cut in two) were replaced by U+FFFD"
            notes.add("half_character_replaced", "messages", text)
            return _value(mended, notes)
        raise BadRequest(
            f"The request body is not valid JSON: {error}. Send a JSON object in UTF-8.",
            code="invalid_json",
        ) from None


def _marks(body: bytes) -> bytes:
    """Its commas and brackets, as far as there may be too many."""
    few = len(body) <= MAX_VALUES and most_openers(body) <= MAX_DEPTH
    return b"" if few else marks(body)
