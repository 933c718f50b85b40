"""A hub of models on a loopback port, its CDN on another, and the ways both fail."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GGUF = b"GGUF" + bytes(range(256)) * 4096
"""Some megabyte that begins as a model does."""


@dataclass
class Hub:
    """What it has, how it misbehaves, and what it was asked."""

    content: bytes = GGUF
    sha256: str = ""
    size: int = 0
    """What it says of the content, if not the truth."""
    linked: bool = True
    """It says size and sha256 before it sends elsewhere, as the real one does."""
    etag: str = '"v1"'
    ranges: bool = True
    breaks: list[int] = field(default_factory=list)
    """After so many bytes each of the next answers breaks off."""
    refusal: tuple[int, str] | None = None
    moved: str = ""
    """Where it sends on to, if not to its CDN."""
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """By whom (hub or cdn), what, with which headers."""
    url: str = ""
    cdn: str = ""

    def bodies(self) -> list[dict[str, str]]:
        return [headers for host, line, headers in self.asked if host == "cdn" and line == "GET"]


def _handler(hub: Hub, name: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_HEAD(self) -> None:  # the library's name
            self._answer()

        def do_GET(self) -> None:  # the library's name
            self._answer()

        def _answer(self) -> None:
            headers = {key.lower(): value for key, value in self.headers.items()}
            hub.asked.append((name, self.command, headers))
            if name == "hub" and hub.refusal:
                status, words = hub.refusal
                self._head(status, 0, {"x-error-message": words})
            elif name == "hub" and "/resolve/" in self.path:
                self._send_on()
            else:
                self._give(headers)

        def _send_on(self) -> None:
            digest = hub.sha256 or hashlib.sha256(hub.content).hexdigest()
            linked = {
                "x-linked-size": str(hub.size or len(hub.content)),
                "x-linked-etag": f'"{digest}"',
            }
            location = {"location": hub.moved or f"{hub.cdn}/blob?signed=1"}
            self._head(302, 0, {**location, **(linked if hub.linked else {})})

        def _give(self, headers: dict[str, str]) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-", headers.get("range", ""))
            same = headers.get("if-range", hub.etag) == hub.etag
            start = int(asked[1]) if asked and hub.ranges and same else 0
            body = hub.content[start:]
            whole = len(hub.content)
            part = {"content-range": f"bytes {start}-{whole - 1}/{whole}"} if start else {}
            tag = {"etag": hub.etag} if hub.etag else {}
            self._head(206 if start else 200, len(body), {**part, **tag})
            if self.command == "GET":
                self.wfile.write(body[: hub.breaks.pop(0)] if hub.breaks else body)
                self.close_connection = True

        def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
            self.send_response(status)
            for key, value in {"content-length": str(length), **headers}.items():
                self.send_header(key, value)
            self.end_headers()

    return Handler


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    servers = [
        ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub, name)) for name in ("hub", "cdn")
    ]
    hub.url, hub.cdn = (f"http://127.0.0.1:{server.server_port}" for server in servers)
    for server in servers:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield hub
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
