"""What arrives: who it is from, and the body, within its limits."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable

from starlette.types import Receive, Scope

from adapters.errors import BadRequest, TooLarge, Unauthorized

RECEIVE_SECONDS = 30.0
_MAX_HEADERS = 100
_HOW_TO_SEND_A_KEY = (
    "Send one of the gateway's own keys (`[server] keys` in its config) as "
    "'Authorization: Bearer KEY'."
)


class Keys:
    """The keys that open this gateway, kept as digests; no keys = open (loopback only)."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = frozenset(digest(key.encode()) for key in keys)

    def client(self, scope: Scope) -> str:
        """Return the digest of the caller's key, or raise `Unauthorized`."""
        sent = _keys_sent(scope)
        if len(set(sent)) > 1:
            raise Unauthorized("The request carries two different API keys. Send one.")
        client = digest(sent[0]) if sent else ""
        if self._digests and client not in self._digests:
            what = "Incorrect API key provided." if sent else "You didn't provide an API key."
            raise Unauthorized(f"{what} {_HOW_TO_SEND_A_KEY}")
        return client


def digest(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


def _keys_sent(scope: Scope) -> list[bytes]:
    keys = []
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, key = value.partition(b" ")
            keys.append(key.strip() if scheme.lower() == b"bearer" else value)
        elif name in (b"x-api-key", b"api-key"):
            keys.append(value.strip())
    return [key for key in keys if key]


def header(scope: Scope, wanted: bytes) -> bytes:
    return next((value for name, value in scope["headers"] if name == wanted), b"")


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Return the whole request body; refuse what is too large before reading it."""
    if len(scope["headers"]) > _MAX_HEADERS:
        raise BadRequest("The request has too many headers.", status=431)
    length = header(scope, b"content-length")
    if length and int(length) > limit:
        raise _too_large(limit)
    if header(scope, b"content-encoding") not in (b"", b"identity"):
        raise BadRequest("Send the request body uncompressed.", status=415)
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        async with asyncio.timeout(RECEIVE_SECONDS):
            body = await _rest(receive, body, limit)
    if len(body) > limit:
        raise _too_large(limit)
    return body


async def _rest(receive: Receive, first: bytes, limit: int) -> bytes:
    pieces, size, more = [first], len(first), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequest("The request body broke off.")
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > limit:
            raise _too_large(limit)
        more = message.get("more_body", False)
    return b"".join(pieces)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"The request body is larger than {limit} bytes. Send less, or raise `max_body` under "
        "[server] in the gateway's config."
    )
