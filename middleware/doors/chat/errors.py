"""Errors → OpenAI's error object, as a body or as a frame of a stream."""

from __future__ import annotations

import orjson

from adapters.errors import GatewayError
from adapters.protocol import Json
from adapters.receipts import Receipt
from middleware.doors.x_usetool import warnings_object


def error_object(error: GatewayError, request_id: str) -> Json:
    message = f"{error.message} (request id {request_id})" if request_id else error.message
    return {
        "error": {
            "message": message,
            "type": error.type,
            "param": error.param,
            "code": error.code,
        }
    }


def error_body(error: GatewayError, request_id: str = "") -> bytes:
    return orjson.dumps(error_object(error, request_id))


def error_frame(error: GatewayError, request_id: str = "", untold: Receipt = ()) -> bytes:
    """The last frame of a stream that failed: nothing follows it, not even `[DONE]`.

    With the notes that no header has told.
    """
    body = error_object(error, request_id)
    if untold:
        body["x_usetool"] = warnings_object(untold)
    return b"data: " + orjson.dumps(body) + b"\n\n"
