"""Errors → OpenAI's error object, as a body or as a frame of a stream."""

from __future__ import annotations

import orjson

from adapters.errors import GatewayError
from adapters.protocol import Json
from adapters.receipts import Receipt
from middleware.doors.x_usetool import warnings_object


def error_body(error: GatewayError, request_id: str = "", untold: Receipt = ()) -> bytes:
    """With the notes that no header has told."""
    message = f"{error.message} (request id {request_id})" if request_id else error.message
    said = {"message": message, "type": error.type, "param": error.param, "code": error.code}
    body: Json = {"error": said}
    if untold:
        body["x_usetool"] = warnings_object(untold)
    return orjson.dumps(body)


def error_frame(error: GatewayError, request_id: str = "", untold: Receipt = ()) -> bytes:
    """The last frame of a stream that failed: nothing follows it, not even `[DONE]`."""
    return b"data: " + error_body(error, request_id, untold) + b"\n\n"
