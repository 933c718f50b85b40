"""One request: where it goes, and the bytes of its head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from yarl import URL


class Origin(NamedTuple):
    """What a connection leads to."""

    host: str
    port: int
    secure: bool


class Target(NamedTuple):
    """What a URL says."""

    origin: Origin
    host_header: str
    path: str


@dataclass(slots=True)  # freezing it would double what it costs to make
class Outgoing:
    """What is asked of an upstream."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)
    proxy: str | None = field(default=None, repr=False)
    connect_seconds: float = 5.0
    noted: bool = False
    """The chunks of the answer are noted."""
    private: bool = False
    """Its headers are one client's: they are not remembered."""

    def head(self) -> bytes:
        """The request line and the headers, as aiohttp writes them."""
        begin = start_of_head if self.private else kept_start_of_head
        start = begin(self.method, self.url, tuple(self.headers.items()))
        if (self.body is None and self.method == "GET") or "content-length" in self.headers:
            return start + b"\r\n"
        return b"%bContent-Length: %d\r\n\r\n" % (start, len(self.body or b""))


@lru_cache(maxsize=256)
def target_of(url: str) -> Target:
    parsed = URL(url)
    origin = Origin(parsed.raw_host or "", parsed.port or 0, parsed.scheme == "https")
    return Target(origin, parsed.host_port_subcomponent or "", parsed.raw_path_qs)


def start_of_head(method: str, url: str, headers: tuple[tuple[str, str], ...]) -> bytes:
    """All but the body's length."""
    target = target_of(url)
    own = () if any(name == "host" for name, _ in headers) else (("Host", target.host_header),)
    lines = [f"{method} {target.path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in (*own, *headers)]
    text = "\r\n".join(lines)
    ends = len(lines) - 1
    if text.count("\n") != ends or text.count("\r") != ends or "\0" in text:
        raise ValueError("A header for an upstream contains a line break: see its config.")
    return f"{text}\r\n".encode()


# An upstream is asked with the same headers again and again.
kept_start_of_head = lru_cache(maxsize=64)(start_of_head)
