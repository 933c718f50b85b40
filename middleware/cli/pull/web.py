"""Requests for files: redirects are followed by hand, so that a token never leaves its hub."""

from __future__ import annotations

import os
import re
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin, urlsplit

from middleware import __version__
from middleware.cli.pull.naming import ModelSource, hub

_HOPS = 8
_SILENT = 30.0
"""Seconds a server may say nothing."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHOWN = 300
_REDIRECTS = frozenset((301, 302, 303, 307, 308))


class PullFailed(Exception):
    """What went wrong, and what to do."""


class Broken(Exception):
    """The connection failed: the same request may succeed."""


class _Unredirected(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a file before it is fetched."""

    size: int | None
    sha256: str
    """As the hub says it; empty if nobody says it."""
    version: str
    """Differs if the file was exchanged; empty if that cannot be told."""


class HubReply:
    """An answer's head, and its body to be read."""

    def __init__(self, status: int, headers: Message, body: IO[bytes]) -> None:
        self.status, self.headers, self._body = status, headers, body

    def read(self, size: int) -> bytes:
        try:
            return self._body.read(size)
        except (OSError, HTTPException) as error:
            raise Broken(_reason(error)) from error

    def close(self) -> None:
        self._body.close()

    def number(self, name: str) -> int | None:
        with suppress(ValueError):
            return int(self.headers.get(name, ""))
        return None


def facts(source: ModelSource) -> Facts:
    """Ask what the file is; its hub says it before it sends elsewhere."""
    reply = _follow(source, "HEAD", {}, stop="x-linked-size")
    reply.close()
    if not source.page and reply.status in (403, 405, 501):  # a server that only gives
        return Facts(None, "", "")
    refuse(source, reply)
    linked = reply.headers.get("x-linked-etag", "").removeprefix("W/").strip('"')
    etag = reply.headers.get("x-linked-etag") or reply.headers.get("etag") or ""
    size = reply.number("x-linked-size")
    return Facts(
        reply.number("content-length") if size is None else size,
        linked if _SHA256.fullmatch(linked) else "",
        etag if not etag.startswith("W/") else "",
    )


def fetch(source: ModelSource, start: int, version: str) -> HubReply:
    """Return the body from a byte on, or whole: the status says which."""
    headers = {"Range": f"bytes={start}-"} if start else {}
    if start and version and not source.page:
        headers["If-Range"] = version
    return _follow(source, "GET", headers)


def _follow(
    source: ModelSource, method: str, headers: Mapping[str, str], stop: str = ""
) -> HubReply:
    url = source.url
    for _ in range(_HOPS):
        reply = _ask(method, url, headers)
        if reply.status not in _REDIRECTS or stop in reply.headers:
            return reply
        reply.close()
        onward = urljoin(url, reply.headers.get("location", ""))
        _check(url, onward)
        url = onward
    raise PullFailed(f"{source.url}: was sent on {_HOPS} times without an end.")


def _check(url: str, onward: str) -> None:
    scheme = urlsplit(onward).scheme
    if scheme not in ("http", "https") or (scheme == "http" and url.startswith("https:")):
        raise PullFailed(f"{urlsplit(url).netloc}: sends on to an address that is not https.")


def _ask(method: str, url: str, headers: Mapping[str, str]) -> HubReply:
    sent = {"User-Agent": f"usetool/{__version__}", "Accept-Encoding": "identity", **headers}
    token = os.environ.get("HF_TOKEN", "").strip()
    if token and _origin(url) == _origin(hub()):
        sent["Authorization"] = f"Bearer {token}"
    opener = urllib.request.build_opener(_Unredirected)
    try:
        answer = opener.open(
            urllib.request.Request(url, headers=sent, method=method), timeout=_SILENT
        )
    except HTTPError as error:
        return HubReply(error.code, error.headers, error)
    except (OSError, HTTPException, ValueError) as error:
        raise Broken(f"{urlsplit(url).hostname}: {_reason(error)}") from error
    return HubReply(answer.status, answer.headers, answer)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, parts.port or usual


def refuse(source: ModelSource, reply: HubReply) -> None:
    """Say what a status other than success means."""
    status = reply.status
    if status < 400:
        return
    said = _clean(reply.headers.get("x-error-message", ""))
    words = f"{source.url} answered {status}{said and ': ' + said}."
    if status in (401, 403):
        raise PullFailed(f"{words} {_entrance(source)}")
    if status == 404:
        where = f" Its files are listed at {source.page}/tree/main." if source.page else ""
        raise PullFailed(f"{words} There is no such file.{where}")
    if status in (408, 429) or status >= 500:
        raise Broken(words)
    raise PullFailed(words)


def _entrance(source: ModelSource) -> str:
    if not source.page:
        return "This address asks for a key; fetch the file by other means and name it by `path`."
    if os.environ.get("HF_TOKEN"):
        return f"Accept the model's terms at {source.page} with the account whose HF_TOKEN this is."
    return (
        f"Either there is no such repository, or it asks who you are: accept its terms at "
        f"{source.page}, and set HF_TOKEN to a token of your account."
    )


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return f"said nothing for {_SILENT:.0f} seconds"
    return _clean(str(cause)) or type(cause).__name__


def _clean(words: str) -> str:
    """A stranger's words, fit for a terminal."""
    shown = "".join([letter if letter.isprintable() else " " for letter in words[:_SHOWN]])
    return shown.strip().rstrip(".")
