"""The socket a gateway listens on, and how long it goes on after it was told to end.

A module of its own: the process above several workers has little else.
"""

from __future__ import annotations

import socket

from middleware.cli.command import Failed
from middleware.config import Config

GRACE_SECONDS = 25


def listen(config: Config) -> socket.socket:
    host, port = config.server.host.strip("[]"), config.server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        from middleware.cli import describe

        reason = (error.strerror or str(error)).partition(" (")[0]
        raise Failed(
            f"Cannot listen on {describe.address(config.server)}: {reason}. Choose another "
            "address with --host and --port, or in [server] of the config."
        ) from error
