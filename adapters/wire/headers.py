"""Upstream response headers → the ones our client gets, in OpenAI's names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

REQUEST_ID_HEADERS = ("request-id", "x-ds-trace-id", "x-request-id")
_RESET = "x-ratelimit-reset-"
# Both names of each figure, OpenAI's and Anthropic's → OpenAI's.
_LIMITS: Mapping[str, str] = {
    name: f"x-ratelimit-{figure}-{kind}"
    for kind in ("requests", "tokens")
    for figure in ("limit", "remaining", "reset")
    for name in (f"x-ratelimit-{figure}-{kind}", f"anthropic-ratelimit-{kind}-{figure}")
}

_UNIFIED = "anthropic-ratelimit-unified-"
"""Of a subscription: without its status Claude Code asks for ever."""


_EACH_HAS = "ratelimit"
"""A part of all these names."""
IDENTITY = "x-upstream-request-id"


def request_id(headers: Mapping[str, str]) -> str:
    for name in REQUEST_ID_HEADERS:
        if name in headers:
            # It is logged as JSON, and bytes that are no text came as what JSON cannot say.
            return headers[name].encode("ascii", "replace").decode()
    return ""


def for_client(headers: Mapping[str, str]) -> dict[str, str]:
    """The allow-listed headers of an answer; everything else (cookies, account ids) stays here."""
    found: dict[str, str] = {}
    identity = request_id(headers)
    if identity:
        found[IDENTITY] = identity
    if _EACH_HAS not in " ".join(headers).lower():
        return found
    for sent, value in headers.items():
        name = sent.lower()
        limit = _LIMITS.get(name)
        if limit and value and limit not in found:
            found[limit] = _duration(value, headers) if limit.startswith(_RESET) else value
        elif name.startswith(_UNIFIED):
            found[name] = value
    return found


def _duration(value: str, headers: Mapping[str, str]) -> str:
    """Anthropic says when (RFC 3339), OpenAI says how long; the answer's own Date is the clock."""
    try:
        until = _aware(datetime.fromisoformat(value))
        now = _aware(parsedate_to_datetime(headers.get("date", "")))
    except (ValueError, TypeError, OverflowError):
        return value
    return f"{max(0, round((until - now).total_seconds()))}s"


def _aware(time: datetime) -> datetime:
    """With a zone; an RFC 3339 time without one, and a Date that ends in -0000, are UTC."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
