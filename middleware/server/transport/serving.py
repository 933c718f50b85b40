"""Runs the app under uvicorn: the socket, the limits of the server, and its first words."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from middleware.cassettes.selection import Selection
from middleware.cli import describe
from middleware.cli.command import complain
from middleware.config import Config, load
from middleware.server.app import Gateway, create
from middleware.server.reloading import Reloader
from middleware.server.transport.address import (
    GRACE_SECONDS,
    listen_everywhere,
    taken_addresses,
)
from middleware.server.transport.listening import Protocol
from middleware.server.watchdog import Watchdog

if TYPE_CHECKING:
    from middleware.cassettes.studio import Studio
    from middleware.server.workers.member import Member

# Longer than the idle time of usual load balancers (60 s), so that they, not we, close first.
_KEEP_ALIVE_SECONDS = 75
# uvicorn's own news at start and end; the banner says it better.
_UVICORN_LEVEL: Mapping[str, str] = {"info": "warning"}
# A request leaves no cycles behind; looking for them every 700 objects is a tenth of its cost.
_COLLECT = (50_000, 20, 50)
_TURN = 0.0005
"""Seconds. A thread that waits for the interpreter is woken each time the loop lets go of it, in
vain: it has it back at once. Until its turn is forced, which Python does after ten times as long.
"""


class _Server(uvicorn.Server):
    """Says where it is once it really listens, and frees the collector of all that stays."""

    def __init__(
        self, settings: uvicorn.Config, app: Gateway, reloader: Reloader, member: Member | None
    ) -> None:
        super().__init__(settings)
        self._member = member
        self._runtime, self._vitals = app.chat.runtime, app.vitals
        self._reloader = reloader
        self._watchdog = Watchdog(app.chat.log)
        self._watching: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._member is not None:
            await self._member.join()
            await self._reloader.catch_up()
        sys.setswitchinterval(_TURN)
        gc.freeze()
        gc.set_threshold(*_COLLECT)
        gc.enable()
        # A loop notes every generator, to close at its end those that nobody did; ours are closed
        # by who reads them, and each request has several.
        sys.set_asyncgen_hooks(firstiter=None)
        with taken_addresses(sockets or ()):
            await super().startup(sockets)
        self._reloader.heed_signals()
        if self._member is None or self._member.seat.begins:
            await self._tell_where_it_is()
        if self._member is not None:
            self._member.receive(self._protocol)
        self._watching = asyncio.create_task(self._reloader.watch())
        self._watchdog.start()

    def _protocol(self) -> asyncio.Protocol:
        """As uvicorn makes one for each connection."""
        make = cast(Callable[..., asyncio.Protocol], self.config.http_protocol_class)
        return make(self.config, self.server_state, self.lifespan.state)

    async def _tell_where_it_is(self) -> None:
        statuses = await self._runtime.models.statuses(only_local=True)
        told: tuple[str, Sequence[str]] = ("", ())
        if (studio := self._runtime.studio) is not None:
            found = studio.recorded_models(Selection()) or ()
            told = (studio.told, [one["id"] for one in found])
        complain(describe.banner(self._runtime.config, statuses, *told))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._member is None:  # else who is above it says so
            complain("stopping")
        self._vitals.draining = True
        if self._watching is not None:
            self._watching.cancel()
        self._watchdog.stop()
        await super().shutdown(sockets)


def serve(config: Config, asked: Mapping[str, Any], studio: Studio | None = None) -> None:
    """Listen until a signal ends it; `asked` is what the command line says of [server]."""
    with listen_everywhere(config) as sockets:
        tell_of_work(config.server.log_level)
        serve_on(sockets, config, asked, studio)


def serve_on(
    sockets: list[socket.socket],
    config: Config,
    asked: Mapping[str, Any],
    studio: Studio | None = None,
    member: Member | None = None,
) -> None:
    """Without sockets a member is handed its connections."""
    app = create(config, studio=studio, member=member)
    server, source = config.server, config.source
    # Checked for the address that is listened on, whatever a changed file says of it.
    fixed = {**asked, "host": server.host, "port": server.port}
    say = complain if member is None or member.seat.speaks else _silent
    again = Reloader(app, Path(source), lambda: load(source, server=fixed), say)
    said = settings(app, server.log_level, member.closed if member else None)
    _Server(said, app, again, member).run(sockets)


def _silent(_: str) -> None:
    """Another worker says it."""


def tell_of_work(level: str) -> None:
    """What the adapters say of what is under way, such as the loading of a model."""
    told = logging.getLogger("usetool")
    told.setLevel(level.upper())
    if not told.handlers:
        told.addHandler(logging.StreamHandler())


def settings(app: Gateway, level: str, closed: Callable[[], None] | None = None) -> uvicorn.Config:
    class Listening(Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            if closed is not None:
                closed()

        @property
        def idle(self) -> float:
            return app.chat.runtime.config.timeouts.get("idle", super().idle)

    return uvicorn.Config(
        app,
        log_level=_UVICORN_LEVEL.get(level, level),
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=Listening,
        interface="asgi3",
        ws="none",
        lifespan="on",
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
