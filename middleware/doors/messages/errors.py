"""Errors as Anthropic tells them: its own statuses, types, and words that clients look for."""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from adapters.errors import GatewayError
from adapters.protocol import Json
from adapters.receipts import Receipt
from middleware.doors.door import WAIT
from middleware.doors.messages.words import THREADS
from middleware.doors.x_usetool import warnings_object

_OVERLOADED = 529
_STATUSES: Mapping[str | None, int] = {"upstream_billing": 402}
_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    _OVERLOADED: "overloaded_error",
}
_TOO_LONG = "prompt is too long"
_FIGURES = re.compile(r"\b\d{3,9}\b")
_TRANSIENT = frozenset((408, 409, 429, _OVERLOADED))
_FOR_GOOD = frozenset(("insufficient_quota", "model_unavailable"))
"""Codes of what waiting does not mend."""


def error_status(error: GatewayError) -> int:
    status = _STATUSES.get(error.code, error.status)
    return _OVERLOADED if status == 503 else status


def error_headers(error: GatewayError) -> Mapping[str, str]:
    """Claude Code asks up to ten times where it is not told that this is of no use."""
    status = error_status(error)
    if status in (429, _OVERLOADED) and error.code not in _FOR_GOOD:
        return {"retry-after": error.retry_after or WAIT, "x-should-retry": ""}
    return {"x-should-retry": "false"} if status < 500 and status not in _TRANSIENT else {}


def error_body(error: GatewayError, request_id: str = "", untold: Receipt = ()) -> bytes:
    """With the notes that no header has told."""
    status = error_status(error)
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    said: Json = {"type": kind, "message": _message(error)}
    if error.code == THREADS:
        said["details"] = {"error_code": THREADS, "unsupported": ["thread"]}
    body: Json = {"type": "error", "error": said, "request_id": request_id}
    if untold:
        body["x_usetool"] = warnings_object(untold)
    return orjson.dumps(body)


def error_frame(error: GatewayError, request_id: str, untold: Receipt) -> bytes:
    """The last frame of a stream that failed: nothing follows it, not even `message_stop`."""
    return b"event: error\ndata: " + error_body(error, request_id, untold) + b"\n\n"


def _message(error: GatewayError) -> str:
    if error.code == "model_not_found" and error.param == "model":
        return f"model: {error.message}"
    if error.code != "context_length_exceeded" or _TOO_LONG in error.message.lower():
        return error.message
    # By these words Claude Code knows that it must make its conversation shorter.
    figures = sorted({int(figure) for figure in _FIGURES.findall(error.message)})
    if len(figures) < 2:
        return f"{_TOO_LONG}. {error.message}"
    return f"{_TOO_LONG}: {figures[-1]} tokens > {figures[-2]} maximum. {error.message}"
