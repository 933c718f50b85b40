"""Errors in the words that clients of this API look for."""

from __future__ import annotations

import orjson

from adapters.errors import Busy, GatewayError, RateLimited
from adapters.protocol import Json

_OVERLOADED = "server_is_overloaded"
# Clients give up on the first three, and wait before they ask again after the last.
_KNOWN = frozenset(
    {"context_length_exceeded", "insufficient_quota", "invalid_prompt", "rate_limit_exceeded"}
)


def code_of(error: GatewayError) -> str | None:
    return _OVERLOADED if isinstance(error, Busy) else error.code


def failure(error: GatewayError, request_id: str) -> Json:
    """Why an answer failed that had begun: `error` of its object."""
    message = f"{error.message} (request id {request_id})" if request_id else error.message
    code = code_of(error)
    if isinstance(error, RateLimited) and code not in _KNOWN:
        code = "rate_limit_exceeded"
    elif code not in (*_KNOWN, _OVERLOADED):
        code = "invalid_prompt" if error.status < 500 else "server_error"
    if code == "rate_limit_exceeded" and error.retry_after:
        message += f" Please try again in {error.retry_after}s."
    return {"code": code, "message": message}


def error_body(error: GatewayError, request_id: str = "") -> bytes:
    """OpenAI's error object: some clients show all of it, so the words come first."""
    message = f"{error.message} (request id {request_id})" if request_id else error.message
    told = {"message": message, "type": error.type, "param": error.param, "code": code_of(error)}
    return orjson.dumps({"error": told})
