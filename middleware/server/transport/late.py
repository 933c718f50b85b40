"""An app that is loaded when it is first asked, and what lasts as long as its server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from threading import Lock

from starlette.types import ASGIApp, Receive, Scope, Send

Lasting = Callable[[], AbstractAsyncContextManager[None]]


class LateApp:
    """Loads in a thread, so that no stream stands meanwhile; once, however many ask at first."""

    def __init__(self, load: Callable[[], ASGIApp], lasting: Lasting) -> None:
        self._load = load
        self._lasting = lasting
        self._loading = Lock()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._last(receive, send)
            return
        app = self._app if self._app is not None else await asyncio.to_thread(self.loaded)
        await app(scope, receive, send)

    async def _last(self, receive: Receive, send: Send) -> None:
        """What fails here ends the server, as `serving.settings` says."""
        await receive()
        async with self._lasting():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    def loaded(self) -> ASGIApp:
        with self._loading:
            app = self._app = self._app or self._load()
        return app
