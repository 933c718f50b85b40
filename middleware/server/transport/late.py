"""An app that is loaded when it is first asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Lock

from starlette.types import ASGIApp, Receive, Scope, Send


class LateApp:
    """Loads in a thread, so that no stream stands meanwhile; once, however many ask at first."""

    def __init__(self, load: Callable[[], ASGIApp]) -> None:
        self._load = load
        self._loading = Lock()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app if self._app is not None else await asyncio.to_thread(self._loaded)
        await app(scope, receive, send)

    def _loaded(self) -> ASGIApp:
        with self._loading:
            app = self._app = self._app or self._load()
        return app
