"""When a gateway's port lets callers in, and what is said where it is another's."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from middleware.cli.command import Failed
from middleware.config import Config, read
from middleware.server.transport.address import listen, taken_addresses

ANY = 0


def at(port: int) -> Config:
    config = read({"cassettes": {"mode": "replay"}}, "test")
    return replace(config, server=replace(config.server, host="127.0.0.1", port=port))


def test_nobody_is_let_in_before_the_server_listens() -> None:
    with listen(at(ANY)) as bound:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(bound.getsockname(), 5)
        bound.listen()
        socket.create_connection(bound.getsockname(), 5).close()


def test_who_comes_second_is_told_where_and_what_to_do() -> None:
    with listen(at(ANY)) as first:
        port = first.getsockname()[1]
        with listen(at(port)) as second:
            first.listen()
            told = pytest.raises(Failed, match=f"127.0.0.1:{port}: .* Is this gateway running")
            with told, taken_addresses([second]):
                second.listen()
        with pytest.raises(Failed, match=f":{port}: .* Choose another address"):
            listen(at(port))
