"""Errors Claude reports inside a stream, where there is no status to go by."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.errors import UpstreamError, from_words
from adapters.protocol import Json

# An error inside a stream has no status of its own; its type stands for one.
STATUS: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def failure(said: Json, upstream: str, secrets: tuple[str, ...]) -> UpstreamError:
    """The error an `error` event stands for: its type stands for a status."""
    told = said.get("error")
    told = told if isinstance(told, dict) else {"message": told}
    kind = str(told.get("type") or "")
    words = str(told.get("message") or kind)
    return from_words(STATUS.get(kind, 500), words, upstream, secrets, within=True)
