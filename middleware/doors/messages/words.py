"""What this door's modules say alike: names of the API, also of limits, and seals on thoughts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from middleware.doors.seal import seal, unseal

LANGUAGE = "anthropic"
"""Of what is carried: `Kind.language` of the leaves that read it."""
THREADS = "thread_unsupported_request"
"""Code of an error, as the SDKs' tool runners look for it."""
_OURS = "utm1."
_SEALED = ("utm1.", "utr1.")
"""How signatures of this gateway begin, at whichever door they were given out."""
_LIMIT = re.compile(r"x-ratelimit-(limit|remaining|reset)-(requests|tokens)")
_DURATION = re.compile(r"(?:(\d{1,4})h)?(?:(\d{1,4})m)?(?:(\d{1,6}(?:\.\d+)?)s)?(?:(\d{1,6})ms)?")

# What other gateways write for lack of a signature: an id, or a time.
_MADE_UP = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|\d+", re.IGNORECASE)


def signature(secret: bytes, upstream: str, thought: str) -> str:
    """For a thought of an upstream that signs none."""
    return seal(_OURS, secret, upstream, _digest(thought))


def signer(secret: bytes, signed: str, thought: str) -> str:
    """The upstream whose thought it is; empty: it cannot be told, or it signs its own."""
    found = unseal(_OURS, secret, signed)
    return found[0] if found and found[1] == _digest(thought) else ""


def may_be_claudes(signed: str) -> bool:
    """Whether a signature may be one that an upstream gave out, and wants back."""
    return bool(signed) and not (signed.startswith(_SEALED) or _MADE_UP.fullmatch(signed))


def _digest(thought: str) -> bytes:
    return sha256(thought.encode("utf-8", "replace")).digest()[:16]


def limits(headers: Mapping[str, str], now: float) -> Mapping[str, str]:
    """Headers of an answer as clients of Anthropic look for them; `now` in seconds since 1970."""
    told = {}
    for name, value in headers.items():
        found = _LIMIT.fullmatch(name)
        if found is None:
            told[name] = value
        else:
            figure, kind = found.groups()
            said = _until(value, now) if figure == "reset" else value
            told[f"anthropic-ratelimit-{kind}-{figure}"] = said
    return told


def _until(value: str, now: float) -> str:
    """How long → when, rounded up."""
    found = _DURATION.fullmatch(value)
    if found is None or not value:
        return value
    hours, minutes, seconds, thousandths = (float(part or 0) for part in found.groups())
    wait = timedelta(hours=hours, minutes=minutes, seconds=seconds, milliseconds=thousandths)
    until = datetime.fromtimestamp(now, UTC) + wait + timedelta(seconds=0.999999)
    return f"{until:%Y-%m-%dT%H:%M:%SZ}"
