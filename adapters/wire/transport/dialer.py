"""Opens connections: names are looked up, addresses tried side by side, TLS spoken."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from aiohappyeyeballs import AddrInfoType, start_connection

from adapters.wire.failures import (
    NotAccepted,
    NotConnected,
    NoTls,
    UnknownHost,
    UntrustedHost,
    WireError,
)
from adapters.wire.transport.request import Origin

_KNOWN_SECONDS = 10.0
"""How long an address is taken for known: a burst of connections asks once."""
_NEXT_ADDRESS_AFTER = 0.25
"""Seconds until the next address is tried beside one that does not answer (RFC 8305)."""
_FAILURES: tuple[tuple[type[OSError], type[WireError]], ...] = (
    (socket.gaierror, UnknownHost),
    (ssl.SSLCertVerificationError, UntrustedHost),
    (ssl.SSLError, NoTls),
    (OSError, NotAccepted),
)
P = TypeVar("P", bound=asyncio.BaseProtocol)
Addresses = Sequence[AddrInfoType]


@dataclass(frozen=True, slots=True)
class _Lookup:
    until: float
    addresses: asyncio.Future[Addresses]


class Dialer:
    def __init__(self) -> None:
        self._lookups: dict[tuple[str, int], _Lookup] = {}

    async def dial(self, origin: Origin, make: Callable[[], P], seconds: float, due: float) -> P:
        """Return the protocol of a new connection, or raise a `WireError`, or that it is due."""
        last = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(min(last, due)) as patience:
                return await self._connect(origin, make)
        except OSError as error:
            if not patience.expired():
                kind = next(named for found, named in _FAILURES if isinstance(error, found))
                raise kind from error
            if last < due:
                raise NotConnected from error
            raise

    async def _connect(self, origin: Origin, make: Callable[[], P]) -> P:
        loop = asyncio.get_running_loop()
        context = self._context if origin.secure else None
        addresses = await self._addresses(origin)
        opened = await start_connection(
            addresses, happy_eyeballs_delay=_NEXT_ADDRESS_AFTER, interleave=1, loop=loop
        )
        _, protocol = await loop.create_connection(
            make,
            sock=opened,
            ssl=context,
            server_hostname=origin.host.rstrip(".") if origin.secure else None,
        )
        return protocol

    async def _addresses(self, origin: Origin) -> Addresses:
        key, now = (origin.host, origin.port), asyncio.get_running_loop().time()
        with suppress(socket.gaierror):  # it is a name
            return _resolve(*key, socket.AI_NUMERICHOST)
        known = self._lookups.get(key)
        if known is None or known.until < now:
            self._lookups = {at: one for at, one in self._lookups.items() if one.until >= now}
            known = self._lookups[key] = _Lookup(now + _KNOWN_SECONDS, _looking_up(*key))
        try:
            return await asyncio.shield(known.addresses)
        except OSError:
            self._lookups.pop(key, None)  # the next asks again
            raise

    @cached_property
    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.set_alpn_protocols(("http/1.1",))
        return context


def _looking_up(host: str, port: int) -> asyncio.Future[Addresses]:
    """A look-up that goes on when who asked has left: others may wait for it."""
    loop = asyncio.get_running_loop()
    looking = loop.run_in_executor(None, _resolve, host, port, socket.AI_ADDRCONFIG)
    looking.add_done_callback(lambda done: done.cancelled() or done.exception())
    return looking


def _resolve(host: str, port: int, flags: int) -> Addresses:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except UnicodeError as error:  # a name that none can have
        raise socket.gaierror(str(error)) from error
