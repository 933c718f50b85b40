"""aiohttp as the sender: for what goes through a proxy, and for recorders that know it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from socket import socket

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey

from adapters.wire.capture import Chunking
from adapters.wire.failures import (
    CutShort,
    NotAccepted,
    NotConnected,
    NotHttp,
    NoTls,
    ProxyFailed,
    Unanswered,
    Undecodable,
    UnknownHost,
    UntrustedHost,
    WireError,
)
from adapters.wire.transport.client import IDLE_SECONDS, MOST_IDLE
from adapters.wire.transport.request import Outgoing

_FAILURES: tuple[tuple[type[Exception], type[WireError]], ...] = (
    (aiohttp.ConnectionTimeoutError, NotConnected),
    (aiohttp.ClientConnectorDNSError, UnknownHost),
    (aiohttp.ClientConnectorCertificateError, UntrustedHost),
    (aiohttp.ClientSSLError, NoTls),
    (aiohttp.ClientProxyConnectionError, ProxyFailed),
    (aiohttp.ClientConnectorError, NotAccepted),
    (aiohttp.ServerDisconnectedError, Unanswered),
    (aiohttp.ClientResponseError, NotHttp),
    (aiohttp.ClientOSError, Unanswered),
    (ConnectionError, Unanswered),
)
_BROKEN = (aiohttp.ClientError, OSError, asyncio.IncompleteReadError)
_CLOSED = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError)
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None)


class _Attempt:
    """Whether a request opened a connection of its own or got one the pool had kept."""

    fresh = False


_attempt: ContextVar[_Attempt] = ContextVar("attempt")


def _new_socket(address: aiohttp.AddrInfoType) -> socket:
    if attempt := _attempt.get(None):
        attempt.fresh = True
    family, kind, protocol, *_ = address
    return socket(family, kind, protocol)


class _Connector(aiohttp.TCPConnector):
    """Keeps only so many connections for later: a burst would leave thousands open, here and there.

    aiohttp has a limit for those at work alone, and that would make requests wait.
    """

    def _release(
        self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        full = sum(map(len, self._conns.values())) >= MOST_IDLE
        super()._release(key, protocol, should_close=should_close or full)


class LibraryClient:
    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Outgoing, due: float) -> LibraryReply:
        try:
            async with asyncio.timeout_at(due):
                return LibraryReply(await self._ask(request), request.noted)
        except (*_BROKEN, TimeoutError) as error:
            kinds = (named for found, named in _FAILURES if isinstance(error, found))
            if kind := next(kinds, None):
                raise kind from error
            if isinstance(error, TimeoutError):
                raise
            raise WireError from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(self, request: Outgoing) -> aiohttp.ClientResponse:
        attempt = _Attempt()
        _attempt.set(attempt)
        try:
            return await self._request(request)
        except _CLOSED as error:
            if attempt.fresh or isinstance(error, aiohttp.ClientConnectorError):
                raise
            # A pooled connection the upstream closed while it was idle; nothing was answered, so
            # asking once more is safe.
            return await self._request(request)

    async def _request(self, request: Outgoing) -> aiohttp.ClientResponse:
        return await self._open_session().request(
            request.method,
            request.url,
            data=request.body,
            headers=request.headers,
            allow_redirects=False,
            proxy=request.proxy,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=request.connect_seconds),
        )

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=_Connector(
                    limit=0, keepalive_timeout=IDLE_SECONDS, socket_factory=_new_socket
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=_NO_TIMEOUT,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
            )
        return self._session


class LibraryReply:
    def __init__(self, response: aiohttp.ClientResponse, noted: bool) -> None:
        self._response = response
        self._noted = noted
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    sizes: Sequence[int] = ()

    @property
    def chunking(self) -> Chunking:
        return self

    @property
    def over(self) -> bool:
        return self._response.content.at_eof()

    async def read(self, due: float) -> bytes:
        content = self._response.content
        if not content.is_eof() and asyncio.get_running_loop().time() >= due:
            raise TimeoutError  # where something always is here, nobody waits
        try:
            async with asyncio.timeout_at(due):
                return await (self._read_chunk() if self._noted else content.readany())
        except TimeoutError:
            raise
        except _BROKEN as error:
            # The library says only in words what it is.
            coded = (
                isinstance(error, aiohttp.ClientPayloadError)
                and "content-encoding" in str(error).lower()
            )
            raise (Undecodable if coded else CutShort) from error

    async def _read_chunk(self) -> bytes:
        """One as it was sent: what is recorded must not depend on how busy this machine was."""
        piece, content = b"", self._response.content
        while not piece and not content.at_eof():
            piece, _ = await content.readchunk()
        return piece

    def close(self) -> None:
        self._response.close()
