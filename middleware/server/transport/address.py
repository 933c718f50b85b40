"""The socket a gateway listens on, and how long it goes on after it was told to end.

A module of its own: the process above several workers has little else.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from middleware.cli.command import Failed
from middleware.config import Config, Server

GRACE_SECONDS = 25
BACKLOG = 2048


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
    try:
        return _bound(server.host.strip("[]"), server.port)
    except OSError as error:
        from middleware.cli import describe

        other = "another address with --host and --port, or in [server] of the config."
        if key == "ollama_port":
            other = (
                "another ollama_port in [server] of the config, or remove it: is it an Ollama's?"
            )
        raise _unusable(describe.address(server), error, f"Choose {other}") from error


def _bound(host: str, port: int) -> socket.socket:
    """A socket that has its address, but refuses callers until its server listens: who is let in
    while the app is still being made would take its start for the time of an answer.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        found.bind((host, port))
    except OSError:
        found.close()
        raise
    return found


@contextmanager
def taken_addresses(sockets: Sequence[socket.socket]) -> Iterator[None]:
    """Say it where another process began to listen since the addresses were bound."""
    try:
        yield
    except OSError as error:
        names = ", ".join("{}:{}".format(*one.getsockname()) for one in sockets)
        raise _unusable(names, error, "Is this gateway running already?") from error


def _unusable(address: str, error: OSError, advice: str) -> Failed:
    reason = (error.strerror or str(error)).partition(" (")[0]
    return Failed(f"Cannot listen on {address}: {reason}. {advice}")
