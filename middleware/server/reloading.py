"""Serves a changed config file from the next request on; a broken one is told and left out."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from middleware.cli import describe
from middleware.config import Config, ConfigError, stamp
from middleware.config.shape import Stamp
from middleware.server.app import Gateway

_POLL_SECONDS = 0.5
_LASTING = ("state", "recall", "ledger", "telemetry")
"""Sections of which the gateway keeps what it started with."""
_FIXED = ("workers", "ollama_port")
"""Keys of [server] of which it does so too; its address is what it was started with."""
_BEFORE = "the config is kept: what was served before still is."


@dataclass(frozen=True, slots=True)
class Reloader:
    """Looks at the file itself: notifications of the system do not reach into containers."""

    gateway: Gateway
    path: Path
    load: Callable[[], Config]
    say: Callable[[str], None]
    every: float = _POLL_SECONDS
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Load it again whether or not it looks changed."""
    _told: set[str] = field(default_factory=set)
    """What was said to wait for a restart."""
    _ending: set[asyncio.Task[None]] = field(default_factory=set)
    """Tools that the config no longer has, until they have stopped."""

    def heed_signals(self) -> None:
        """SIGHUP loads the file again, where there is such a signal."""
        if hasattr(signal, "SIGHUP"):
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, self._hung_up, os.isatty(2))

    def _hung_up(self, terminal: bool) -> None:
        if terminal and not os.isatty(2):  # the window was closed: what else it means
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            self.asked.set()

    async def catch_up(self) -> None:
        """Load what has changed since it was read."""
        if stamp(self.path) != self.gateway.chat.runtime.config.stamp:
            await self._reload_whatever_happens()

    async def watch(self) -> None:
        """Run until cancelled."""
        asked = self.asked
        # As it was when it was read: it may have changed while the gateway started.
        served = self.gateway.chat.runtime.config.stamp or stamp(self.path)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.every):
                    await asked.wait()
            now = stamp(self.path)
            if now != served and not asked.is_set():
                now = await self._settled(now)
            if now is not None and (now != served or asked.is_set()):
                served = now
                await self._reload_whatever_happens()
            asked.clear()

    async def _settled(self, seen: Stamp) -> Stamp:
        """Wait until nobody writes to the file any more."""
        while True:
            await asyncio.sleep(self.every)
            if (now := stamp(self.path)) == seen:
                return now
            seen = now

    async def _reload_whatever_happens(self) -> None:
        """A watcher that ended would leave a key that was removed valid for ever."""
        reloading = asyncio.create_task(self.reload())
        try:
            await asyncio.wait([reloading])
        finally:
            reloading.cancel()
        if error := reloading.exception():
            with suppress(OSError, ValueError):  # the terminal is gone
                name = type(error).__name__
                self.say(f"{self.path}: not loaded ({name}: {error}); {_BEFORE}")

    async def reload(self) -> None:
        try:
            found = await asyncio.to_thread(self.load)
            lasting = self._lasting(found)
            # Beside the requests: a config may import heavy packages.
            runtime = await asyncio.to_thread(self.gateway.prepare, lasting)
        except ConfigError as error:
            self.say(f"{error}\n{self.path}: not loaded; {_BEFORE}")
            return
        before, shelf = self.gateway.chat.runtime.shared.tools, runtime.shared.tools
        if shelf is not None:
            await shelf.begin()
        self.gateway.use(runtime)
        if before is not None:
            ending = asyncio.create_task(before.end(shelf))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
        entries = runtime.routes.listing()
        count = sum(entry.available for entry in entries)
        self.say(
            f"{self.path}: loaded again; {count} of {len(entries)} models available on "
            f"{describe.address(runtime.server)}/v1 ({self._waiting_for(found)} takes a restart)."
        )

    def _lasting(self, found: Config) -> Config:
        """With what cannot change while it runs."""
        kept = self.gateway.chat.runtime.config
        server = replace(found.server, **{name: getattr(kept.server, name) for name in _FIXED})
        return replace(found, server=server, **{name: getattr(kept, name) for name in _LASTING})

    def _waiting_for(self, found: Config) -> str:
        """What has changed and is not served: named once."""
        kept = self.gateway.chat.runtime.config
        changed = {f"[{name}]" for name in _LASTING if getattr(found, name) != getattr(kept, name)}
        changed |= {
            name for name in _FIXED if getattr(found.server, name) != getattr(kept.server, name)
        }
        news = sorted(changed - self._told)
        self._told.clear()
        self._told.update(changed)
        return f"what {', '.join(news)} says now" if news else "another host or port"
