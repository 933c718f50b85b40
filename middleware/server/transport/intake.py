"""What arrives: who it is from, and the body, within its limits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from starlette.types import Message, Receive, Scope

from adapters.errors import BadRequest, TooLarge, Unauthorized
from middleware.accounts.clients import Client, digest

_MAX_HEADERS, _MAX_HEADER_BYTES = 100, 64 << 10
_DISCARD_SECONDS, _DISCARD_BYTES = 5.0, 64 << 20
_TILDE = ord("~")
HEADERS = "usetool.headers"
"""Where in a request's scope its headers stand by their names."""
_KEYS_SENT_AS = frozenset((b"authorization", b"x-api-key", b"api-key"))
_MET, _LONGEST_MET = 256, 1024
"""Callers that are remembered, and bytes of the headers with their keys."""
_HOW_TO_SEND_A_KEY = (
    "Send one of the gateway's own keys (`[server] keys` or `[clients]` in its config) as "
    "'Authorization: Bearer KEY'."
)


class Caller(NamedTuple):
    """Who asks, by the key of the request."""

    client: Client = Client()
    key: str = ""
    suffix: str = ""
    """What stands behind the last `~` of the key: the name of a cassette."""

    @property
    def owner(self) -> str:
        return self.client.owner


class Keys:
    """Whom the keys that open this gateway belong to, by their digests; none = it is open.

    Unless `cuts`, a `~` is a part of the key: it is an upstream's, which may have one.
    """

    def __init__(self, clients: Mapping[str, Client], cuts: bool = True) -> None:
        self._clients = clients
        self._cuts = cuts
        self._met = lru_cache(maxsize=_MET)(self._caller)
        """Those that call again and again."""

    def caller(self, scope: Scope) -> Caller:
        """Return who asks, or raise `Unauthorized`."""
        if _KEYS_SENT_AS.isdisjoint(headers_of(scope)):
            return self._met(())
        sent = tuple([header for header in scope["headers"] if header[0] in _KEYS_SENT_AS])
        known = sum(map(len, chain.from_iterable(sent))) <= _LONGEST_MET
        return self._met(sent) if known else self._caller(sent)

    def _caller(self, headers: Sequence[tuple[bytes, bytes]]) -> Caller:
        sent = _keys_in(headers)
        if not self._clients:
            if len(sent) > 1:
                raise _two_keys()
            return self._guest(sent[0]) if sent else Caller()
        found = [caller for key in sent if (caller := self._known(key)) is not None]
        if len(found) > 1 and len({caller.owner for caller in found}) > 1:
            raise _two_keys()
        if found:
            return found[-1]
        what = "Incorrect API key provided." if sent else "You didn't provide an API key."
        raise Unauthorized(f"{what} {_HOW_TO_SEND_A_KEY}")

    def _known(self, sent: bytes) -> Caller | None:
        key, suffix = sent, b""
        client = self._clients.get(digest(key))
        if client is None and self._cuts and _TILDE in sent:
            key, _, suffix = sent.rpartition(b"~")
            client = self._clients.get(digest(key))
        if client is None:
            return None
        return Caller(client, key.decode("latin-1"), suffix.decode("utf-8", "replace"))

    def _guest(self, sent: bytes) -> Caller:
        """Where no key is asked, what clients send tells them apart."""
        key, _, suffix = (
            sent.rpartition(b"~") if self._cuts and _TILDE in sent else (sent, b"", b"")
        )
        client = Client(owner=digest(key))
        return Caller(client, key.decode("latin-1"), suffix.decode("utf-8", "replace"))


def _two_keys() -> Unauthorized:
    return Unauthorized("The request carries two different API keys. Send one.")


def _keys_in(headers: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """At most one a header: of two in the same, who stands before us may have read the other."""
    keys: dict[bytes, bytes] = {}
    for name, value in headers:
        key = value.strip()
        if name == b"authorization":
            scheme, _, sent = value.partition(b" ")
            key = sent.strip() if scheme.lower() == b"bearer" else value
        if key and keys.setdefault(name, key) != key:
            raise _two_keys()
    return [*dict.fromkeys(keys.values())]


def by_names(headers: Sequence[tuple[bytes, bytes]]) -> Mapping[bytes, bytes]:
    """Of several with one name the first."""
    found = dict(headers)
    if len(found) < len(headers):
        found.update(reversed(headers))
    return found


def headers_of(scope: Scope) -> Mapping[bytes, bytes]:
    """By their names; who made the scope has mostly put them there."""
    found: Mapping[bytes, bytes] | None = scope.get(HEADERS)
    if found is None:
        found = scope[HEADERS] = by_names(scope["headers"])
    return found


def header(scope: Scope, wanted: bytes) -> bytes:
    return headers_of(scope).get(wanted, b"")


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Return the whole request body; refuse what is too large before reading it."""
    lines, headers = scope["headers"], headers_of(scope)
    size = sum(map(len, chain.from_iterable(lines)))
    if len(lines) > _MAX_HEADERS or size > _MAX_HEADER_BYTES:
        raise _too_many_headers()
    length = headers.get(b"content-length")
    if length and int(length) > limit:
        # Who asks first (curl does) has not sent it yet.
        if not headers.get(b"expect"):
            await _discard(receive)
        raise _too_large(limit)
    if headers.get(b"content-encoding", b"") not in (b"", b"identity"):
        raise BadRequest("Send the request body uncompressed.", status=415)
    message = await receive()
    body: bytes = message.get("body", b"")
    is_whole = message["type"] == "http.request" and not message.get("more_body", False)
    return body if is_whole and len(body) <= limit else await _whole(message, receive, limit)


async def _discard(receive: Receive) -> None:
    """Read past a body nobody wants: a connection closed on unread bytes loses the answer too."""
    size, more = 0, True
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while more and size < _DISCARD_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                more = message.get("more_body", False)


async def _whole(message: Message, receive: Receive, limit: int) -> bytes:
    """How long it may take is for `listening` to say, which knows when the request began."""
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        if message["type"] == "http.disconnect":
            raise BadRequest("The request body broke off. Send the request again.")
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        more = message.get("more_body", False)
        if size > limit:
            if more:
                await _discard(receive)
            raise _too_large(limit)
        if more:
            message = await receive()
    return b"".join(pieces)


def _too_many_headers() -> BadRequest:
    return BadRequest(
        f"The request's headers are too many (over {_MAX_HEADERS}) or too large (over "
        f"{_MAX_HEADER_BYTES} bytes).",
        status=431,
    )


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"The request body is larger than {limit} bytes. Send less, or raise `max_body` under "
        "[server] in the gateway's config."
    )
