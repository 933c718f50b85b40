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

    def head(self) -> bytes:
        """The request line and the headers, as aiohttp writes them."""
        target = target_of(self.url)
        host = "" if "host" in self.headers else f"Host: {target.host_header}\r\n"
        named = "".join([f"{name}: {value}\r\n" for name, value in self.headers.items()])
        length = ""
        if (self.body is not None or self.method != "GET") and "content-length" not in self.headers:
            length = f"Content-Length: {len(self.body or b'')}\r\n"
        text = f"{self.method} {target.path} HTTP/1.1\r\n{host}{named}{length}\r\n"
        ends = 2 + len(self.headers) + bool(host) + bool(length)
        if text.count("\n") != ends or text.count("\r") != ends or "\0" in text:
            raise ValueError("A header for an upstream contains a line break: see its config.")
        return text.encode()


@lru_cache(maxsize=256)
def target_of(url: str) -> Target:
    parsed = URL(url)
    origin = Origin(parsed.raw_host or "", parsed.port or 0, parsed.scheme == "https")
    return Target(origin, parsed.host_port_subcomponent or "", parsed.raw_path_qs)
