"""The one transport: pool, deadlines, size caps; no redirects, no proxies of the environment.

Knows HTTP and nothing of what the bytes mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import orjson

from adapters.errors import GatewayError, Unauthorized, from_status
from adapters.wire.capture import Capture, CapturedCall, Fact, FactRow, Source, Tap
from adapters.wire.failures import NotConnected, WireError, timed_out, unconnected, unreachable
from adapters.wire.headers import for_client
from adapters.wire.json_text import load
from adapters.wire.reply import Reply
from adapters.wire.transport.client import HttpClient
from adapters.wire.transport.request import Outgoing
from adapters.wire.transport.seam import RawReply, Sender

MAX_ERROR_BODY = 64 << 10
_REFUSED = 300
"""Statuses from here on are no answer."""
_KEY_HEADERS = frozenset({"authorization", "x-api-key"})


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. Silence is measured while we wait, never while the client is slow to read."""

    connect: float = 5
    first_event: float = 60
    """Wait for the first sign of life of a stream, and from one to the next before its content."""
    idle: float = 60
    """Silence of bytes in a stream."""
    idle_open: float = 300
    """The same while a thought or a tool call is open: models think between lumps of arguments."""
    content: float = 300
    """Silence of content while the upstream keeps pinging, from the beginning on."""
    plain: float = 600
    """A plain answer, whole."""
    total: float = 600

    @property
    def whole(self) -> float:
        """Until the end of a plain answer."""
        return min(self.plain, self.total)


class Transport:
    """The connections of the whole process."""

    def __init__(self, sender: Sender | None = None) -> None:
        self.facts = FactRow()
        """What small questions brought."""
        self._sender = sender or HttpClient()
        self._by_proxy: Sender | None = None

    def expect_proxy(self) -> None:
        """Be ready for requests by a proxy: few have one, and the library takes 0.4 s to import."""
        if self._by_proxy is None:
            from adapters.wire.transport.library import LibraryClient

            self._by_proxy = LibraryClient()

    def send(self, request: Outgoing, due: float) -> Awaitable[RawReply]:
        sender = self._by_proxy if request.proxy is not None else self._sender
        assert sender is not None
        return sender.send(request, due)

    async def close(self) -> None:
        await self._sender.close()
        if self._by_proxy is not None:
            await self._by_proxy.close()


@dataclass(frozen=True, slots=True)
class Link:
    """One upstream: where it is, what opens it, how long to wait."""

    name: str
    base_url: str
    transport: Transport
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeouts: Timeouts = Timeouts()
    proxy: str | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Never repeated in an error text."""
    key_from: str = ""
    """A sentence about its key, for when the upstream refuses it."""
    started_by: str = ""
    """The command that starts it, for when nobody is there."""
    opened_by: Literal["", "bearer", "x-api-key"] = ""
    """How it is opened by the key of each call: the client's own, or one of several of the config;
    empty: by a key of the config, or none.
    """

    def __post_init__(self) -> None:
        if self.proxy is not None:
            self.transport.expect_proxy()

    def opened_with(self, key: str) -> Link:
        """This link with the key of one call."""
        if not self.opened_by:
            return self
        if not key and self.headers.keys() & _KEY_HEADERS:
            return self
        if not key:
            raise Unauthorized(
                f"Upstream '{self.name}' is opened by the client's own key, and the request has "
                "none. Send the key you have for it as 'Authorization: Bearer KEY'."
            )
        name, value = "x-api-key", key
        if self.opened_by == "bearer":
            name, value = "authorization", f"Bearer {key}"
        return replace(self, headers={**self.headers, name: value}, secrets=(*self.secrets, key))

    def explained(self, error: GatewayError) -> GatewayError:
        """Say of a refused key which one it is; the upstream says only that it is wrong."""
        if error.code == "upstream_auth" and self.key_from:
            error.message = f"{error.message.rstrip('.')}. {self.key_from}"
        return error

    def url(self, path: str) -> str:
        return self.base_url.rstrip("/") + path

    def post(
        self, path: str, body: bytes, due: float, capture: Capture | None = None
    ) -> Awaitable[Reply]:
        """Send a body and return once the headers of a good answer are here."""
        url, contact = self.url(path), None
        if capture is not None:
            call = CapturedCall(self.name, url, self.headers, self.secrets, self.proxy, body)
            contact = capture.begin(call)
        return self._send("POST", url, body, due, contact)

    def tapped(
        self, source: Source, url: str, body: Mapping[str, Any], capture: Capture | None
    ) -> Source:
        """A source that is no connection of ours, captured as one is."""
        if capture is None:
            return source
        sent = orjson.dumps(body, default=str)
        call = CapturedCall(self.name, url, {}, self.secrets, None, sent)
        return Tap(source, capture.begin(call))

    async def ask(self, path: str, body: bytes, capture: Capture | None = None) -> Any:
        """Send a body and return the JSON of a plain answer."""
        due = asyncio.get_running_loop().time() + self.timeouts.whole
        reply = await self.post(path, body, due, capture)
        return load(await reply.whole(due))

    async def fetch(self, method: str, path: str, body: bytes | None, seconds: float) -> Any:
        """Ask a small question (a model list, a model's abilities) and return its JSON."""
        due = asyncio.get_running_loop().time() + seconds
        reply = await self._send(method, self.url(path), body, due)
        answer = await reply.whole(due)
        self.transport.facts.add(Fact(self.name, method, path, body, answer))
        return load(answer)

    async def _send(
        self,
        method: str,
        url: str,
        body: bytes | None,
        due: float,
        contact: CapturedCall | None = None,
    ) -> Reply:
        request = Outgoing(
            method,
            url,
            self.headers,
            body,
            self.proxy,
            self.timeouts.connect,
            noted=contact is not None and contact.chunks is not None,
            private=bool(self.opened_by),
        )
        try:
            answer = await self.transport.send(request, due)
        except (WireError, TimeoutError) as error:
            failure = self._unanswered(error)
            if contact is not None:
                contact.broke(failure)
            raise failure from error
        reply = Reply(answer, self.name, contact)
        return reply if reply.status < _REFUSED else await self.accepted(reply, due)

    async def accepted(self, reply: Reply, due: float) -> Reply:
        """A good answer; raise what a bad one says."""
        if reply.status >= _REFUSED:
            raise await self._refusal(reply, due)
        return reply

    def _unanswered(self, error: WireError | TimeoutError) -> GatewayError:
        if isinstance(error, NotConnected):
            return self._absent(unconnected(self.name, self.base_url, self.timeouts.connect))
        if isinstance(error, TimeoutError):
            return timed_out(self.name, "did not answer in time")
        return self._absent(unreachable(self.name, error))

    async def _refusal(self, reply: Reply, due: float) -> GatewayError:
        body = await reply.beginning(MAX_ERROR_BODY, due)
        error = from_status(reply.status, reply.headers, body, self.name, self.secrets)
        error.headers = for_client(reply.headers)
        return self.explained(error)

    def _absent(self, error: GatewayError) -> GatewayError:
        if self.started_by:
            error.message += f" If it does not run, start it: `{self.started_by}`."
        return error
