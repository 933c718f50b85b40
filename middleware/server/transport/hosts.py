"""Under which names the gateway is asked, and from which pages, where no key is asked.

A browser lets any web page send requests to this machine, and read the answers too if the page's
own name comes to point here (DNS rebinding). It says both names, as Host and as Origin; for an
image or a script of another site it says no Origin, but `Sec-Fetch-Site: cross-site`.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from ipaddress import ip_address

from starlette.types import Scope

from adapters.errors import BadRequest
from middleware.config import Server, is_loopback
from middleware.server.transport.intake import headers_of

_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:@/\[\]]+))(?::[0-9]*)?")
# What containers call the machine they run on; nobody can own a name under `internal`.
_CONTAINERS = ("host.docker.internal", "gateway.docker.internal", "host.containers.internal")
# Desktop applications, which are no web pages.
_APPS = frozenset({"app", "capacitor", "file", "tauri", "vscode-file", "vscode-webview"})
# Of these, browsers say the Origin only where the page may read the answer.
_WITHOUT_ORIGIN = frozenset({"GET", "HEAD"})
_EMBEDDED = (
    "so pages of other sites may link to it, but not show its answers as images, scripts or "
    "frames. Set keys under [server] in the gateway's config."
)
_ALL = "*"
_SHOWN = 100


class Hosts:
    """Knows this machine's own names, and which others the config allows."""

    def __init__(self, server: Server) -> None:
        own = (server.host, socket.gethostname(), "localhost", *_CONTAINERS, *server.hosts)
        self._names = frozenset(filter(None, (host_name(_bracketed(name)) for name in own)))
        self._any_host = _ALL in server.hosts
        self._origins = frozenset(origin.lower().rstrip("/") for origin in server.cors_origins)
        named = (server.host, "127.0.0.1", "localhost")
        self._usual = frozenset(f"{name}:{server.port}".encode() for name in named)

    def check(self, scope: Scope) -> None:
        """Raise a 403 for a request that a stranger's page may have sent."""
        named = headers_of(scope)
        usual = named.get(b"host") in self._usual and b"origin" not in named
        once = len(named) == len(scope["headers"])
        if not (usual and once):
            self._check_each(scope)
        if not once:
            named = dict(scope["headers"])  # of two of one name, the last says what page it is
        if scope.get("method") in _WITHOUT_ORIGIN and self._is_embedded(named):
            raise _refused(_EMBEDDED, "origin_not_allowed")

    def _check_each(self, scope: Scope) -> None:
        for name, value in scope["headers"]:
            if name == b"host" and value not in self._usual:
                host = value.decode("latin-1")
                if not (self._any_host or self._is_own(host, scope)):
                    raise _refused_host(host)
            elif name == b"origin" and not self._hears(value.decode("latin-1"), scope):
                raise _refused_origin(value.decode("latin-1"))

    def _is_embedded(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether another site's page has the answer as a part of it, and no link led here."""
        if headers.get(b"sec-fetch-site") != b"cross-site" or b"origin" in headers:
            return False
        place = headers.get(b"sec-fetch-dest", b"document")
        is_link = headers.get(b"sec-fetch-mode") == b"navigate" and place == b"document"
        return not is_link and _ALL not in self._origins

    def _hears(self, origin: str, scope: Scope) -> bool:
        origin = origin.strip().lower()
        if origin in self._origins or _ALL in self._origins:
            return True
        scheme, _, authority = origin.partition("://")
        return scheme in _APPS or (scheme in ("http", "https") and self._is_own(authority, scope))

    def _is_own(self, authority: str, scope: Scope) -> bool:
        name = host_name(authority)
        if name in self._names or name.endswith(".localhost") or is_loopback(name):
            return True
        # Where the request arrived: of use on addresses that other machines can reach.
        where = scope.get("server")
        return where is not None and bool(name) and _same_address(name, where[0])


def host_name(authority: str) -> str:
    """The host of `host:port`, as names are compared; empty if it is none."""
    found = _AUTHORITY.fullmatch(authority.strip().lower())
    return (found[1] or found[2]).removesuffix(".") if found else ""


def _bracketed(host: str) -> str:
    """IPv6 as a config may have it → as a URL has it."""
    return f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host


def _same_address(one: str, another: str) -> bool:
    try:
        return ip_address(one) == ip_address(another)
    except ValueError:
        return False


def _refused_host(host: str) -> BadRequest:
    return _refused(
        f"so it answers only to this machine's own names, and '{host[:_SHOWN]}' is none of them. "
        "Add it to hosts under [server] in the gateway's config, or set keys there.",
        "host_not_allowed",
    )


def _refused_origin(origin: str) -> BadRequest:
    return _refused(
        f"so pages of other origins may not call it, and this one is of '{origin[:_SHOWN]}'. "
        "Add it to cors_origins under [server] in the gateway's config, or set keys there.",
        "origin_not_allowed",
    )


def _refused(why: str, code: str) -> BadRequest:
    return BadRequest(f"This gateway asks for no key, {why}", status=403, code=code)
