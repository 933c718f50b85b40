"""A server over streamable HTTP: the official client's way, with answers that have a bound."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from httpx2 import AsyncByteStream, AsyncClient, Response, StreamError, Timeout
from mcp.client.streamable_http import streamable_http_client

_CONNECT = 30.0
_SILENCE = 300.0
"""Seconds without a word on a stream after which it is opened anew."""
_MOST_BYTES = 16 << 20
_REFUSED = (400, 404)
"""How a server says that it does not know a session; both are in use."""


@asynccontextmanager
async def web_streams(
    url: str, headers: Mapping[str, str], refused: Callable[[], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """What it says, and what it is told; `refused` is called when it has lost the session."""

    async def seen(response: Response) -> None:
        if response.status_code in _REFUSED and "mcp-session-id" in response.request.headers:
            refused()
        assert isinstance(response.stream, AsyncByteStream)
        if "event-stream" not in response.headers.get("content-type", ""):
            response.stream = _Bounded(response.stream)

    async with (
        AsyncClient(
            headers={"accept-encoding": "identity", **headers},
            timeout=Timeout(_CONNECT, read=_SILENCE),
            event_hooks={"response": [seen]},
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=_MOST_BYTES) as (
            read,
            write,
        ),
    ):
        yield read, write


class _Bounded(AsyncByteStream):
    def __init__(self, whole: AsyncByteStream) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = _MOST_BYTES
        async for piece in self._whole:
            left -= len(piece)
            if left < 0:
                raise StreamError(f"the answer has more than {_MOST_BYTES >> 20} MB")
            yield piece

    async def aclose(self) -> None:
        await self._whole.aclose()
