"""The address guard: which hosts HTTP tools may reach, by what they resolve to.

The addresses that were judged are the ones connected to, so a name cannot change in between.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, NamedTuple

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from middleware.tools.foreign import Raised
from middleware.tools.python.threads import ThreadShare
from middleware.tools.tool import CallFailed

_UNSAFE = re.compile(r"[\\\s\x00-\x1f\x7f]")
_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")


class Destination(NamedTuple):
    """Where a request goes."""

    url: URL
    addresses: tuple[str, ...]


class Guard(NamedTuple):
    """What a table may reach: what is public, and what the operator lets through."""

    allow: Collection[str]
    threads: ThreadShare

    async def destination(self, text: str) -> Destination:
        """Read an address and judge where it leads, or raise `CallFailed`."""
        url = _read(text)
        host, port = url.host or "", url.port or 0
        # Not in the threads of the loop: whose names are looked up slowly must not stop others.
        found = await self.threads.run(
            "address", lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        if isinstance(found, Raised):
            raise CallFailed(f"the host of {_shown(url)} is not found") from found.error
        addresses = tuple(dict.fromkeys(str(one[4][0]) for one in found))
        if f"{host}:{port}" not in self.allow:
            _refuse_private(url, addresses)
        return Destination(url, addresses)


def _refuse_private(url: URL, addresses: Collection[str]) -> None:
    if not all(map(_is_public, addresses)):
        told = f"{_shown(url)} is not allowed: it leads to an address that is not public"
        let = f'allow = ["{url.host}:{url.port}"]'
        raise CallFailed(f"{told}. The operator may let it through: {let}")


def _read(text: str) -> URL:
    if _UNSAFE.search(text) or not re.match(r"https?://[^/]", text, re.IGNORECASE):
        raise CallFailed("the address is not allowed: only http:// and https://, without blanks")
    try:
        url = URL(text)
        _ = url.port
        as_written = URL(text, encoded=True)
        if text.isascii() and as_written.host == url.host:
            url = as_written  # what was encoded as data stays so
    except ValueError as error:
        raise CallFailed("the address cannot be read") from error
    if url.user is not None or url.password is not None:
        raise CallFailed("the address is not allowed: it has user information in it")
    if url.scheme not in ("http", "https") or not url.host:
        raise CallFailed("the address is not allowed: only http:// and https://")
    return url.with_fragment(None)


def _shown(url: URL) -> str:
    return f"{url.scheme}://{url.host}:{url.port}"


def _is_public(text: str) -> bool:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        if inner is not None:
            return _is_public(str(inner))
        if address.is_site_local or address in _NAT64_LOCAL or address in _COMPATIBLE:
            return False
    others = address.is_multicast or address.is_reserved or address.is_unspecified
    return address.is_global and not others


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The address of version 4 behind one of version 6."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)


class _Judged(AbstractResolver):
    """Answers with what has been judged."""

    def __init__(self, addresses: Collection[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """It holds nothing."""


def connector_to(destination: Destination) -> aiohttp.TCPConnector:
    """Connects to the judged addresses and to no other, whatever form the host has."""
    judged = destination.addresses

    def new_socket(address: Any) -> socket.socket:
        family, kind, protocol, _, where = address
        if where[0] not in judged:
            raise OSError(f"{where[0]} was not judged")
        return socket.socket(family, kind, protocol)

    return aiohttp.TCPConnector(
        resolver=_Judged(judged),
        socket_factory=new_socket,
        use_dns_cache=False,
        force_close=True,
    )
