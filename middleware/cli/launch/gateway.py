"""A gateway in this process, for one command alone."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from middleware.cli.command import Failed
from middleware.config import Config

if TYPE_CHECKING:
    from middleware.cassettes.studio import Studio

_START_SECONDS, _STOP_SECONDS = 30.0, 30.0


@contextmanager
def private_gateway(
    config: Config, studio: Studio | None = None, log: TextIO | None = None
) -> Iterator[str]:
    """Serve on a port of its own, without a key; yields its address."""
    import uvicorn

    from middleware.server.app import create
    from middleware.server.transport.address import listen
    from middleware.server.transport.serving import settings

    server = replace(config.server, host="127.0.0.1", port=0, keys=())
    private = replace(config, server=server, clients={})
    with listen(private) as listening:
        running = uvicorn.Server(
            settings(create(private, log or io.StringIO(), studio), "critical")
        )
        thread = threading.Thread(target=running.run, args=([listening],), daemon=True)
        thread.start()
        until = time.monotonic() + _START_SECONDS
        while not running.started and thread.is_alive() and time.monotonic() < until:
            time.sleep(0.005)
        try:
            if not running.started:
                raise Failed("The gateway could not be started: try `usetool serve`.")
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join(_STOP_SECONDS)
