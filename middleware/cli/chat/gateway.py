"""Finds the gateway of a config, or runs it inside this process for as long as a chat lasts."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from middleware.cli import describe
from middleware.cli.command import Failed
from middleware.cli.endpoint import GatewayAddress, models
from middleware.config import Config

_START_SECONDS, _STOP_SECONDS = 30.0, 5.0


@contextmanager
def running(config: Config, tell: Callable[[str], None]) -> Iterator[GatewayAddress]:
    """The gateway of this config: the one that runs, else one of our own."""
    server = config.server
    key = config.client_keys[0].value if config.asks_keys else ""
    endpoint = GatewayAddress(describe.own_address(server), key)
    try:
        models(endpoint)
    except Failed as error:
        gone = isinstance(error.__cause__, ConnectionRefusedError)
        why = "" if gone else f" ({error})"
        tell(f"This chat runs {config.source} itself: no gateway runs at {endpoint.url}{why}.")
        with _own(config, key) as own:
            yield own
    else:
        yield endpoint


@contextmanager
def _own(config: Config, key: str) -> Iterator[GatewayAddress]:
    import uvicorn

    from middleware.server.app import create
    from middleware.server.transport.address import listen
    from middleware.server.transport.serving import settings

    private = replace(config, server=replace(config.server, host="127.0.0.1", port=0))
    with listen(private) as listening:
        # Its log lines would fall into the conversation.
        server = uvicorn.Server(settings(create(private, io.StringIO()), "critical"))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        _wait(server, thread)
        try:
            yield GatewayAddress(f"http://127.0.0.1:{listening.getsockname()[1]}/v1", key)
        finally:
            server.should_exit = True
            thread.join(_STOP_SECONDS)


def _wait(server: object, thread: threading.Thread) -> None:
    until = time.monotonic() + _START_SECONDS
    while not getattr(server, "started", False):
        if not thread.is_alive() or time.monotonic() > until:
            raise Failed("The gateway could not be started inside the chat: try `usetool serve`.")
        time.sleep(0.01)
