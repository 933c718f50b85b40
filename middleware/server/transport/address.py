"""The socket a gateway listens on, and how long it goes on after it was told to end.

A module of its own: the process above several workers has little else.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from middleware.cli.command import Failed
from middleware.config import Config, Server

GRACE_SECONDS = 25


def listen(config: Config) -> socket.socket:
    return _listen(config.server)


@contextmanager
def listen_everywhere(config: Config) -> Iterator[list[socket.socket]]:
    """Also on the port where clients look for an Ollama, if the config has one."""
    server = config.server
    with ExitStack() as stack:
        sockets = [stack.enter_context(listen(config))]
        if server.ollama_port not in (None, server.port):
            second = replace(server, port=server.ollama_port)
            sockets.append(stack.enter_context(_listen(second, "ollama_port")))
        yield sockets


def _listen(server: Server, key: str = "port") -> socket.socket:
    host, port = server.host.strip("[]"), server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        from middleware.cli import describe

        reason = (error.strerror or str(error)).partition(" (")[0]
        other = "another address with --host and --port, or in [server] of the config."
        if key == "ollama_port":
            other = (
                "another ollama_port in [server] of the config, or remove it: is it an Ollama's?"
            )
        raise Failed(
            f"Cannot listen on {describe.address(server)}: {reason}. Choose {other}"
        ) from error
