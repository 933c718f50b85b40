"""The port where clients look for an Ollama: one gateway on two."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from middleware import config
from middleware.cli.command import Failed
from middleware.config import Config
from middleware.server.transport.address import listen_everywhere

MODEL = '[upstreams.u]\nkind = "scripted"\n[models.one]\nupstream = "u"\n'


def two_free_ports() -> list[int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as other:
        return [int(free.getsockname()[1]) for free in (one, other)]


def on(port: int, ollama_port: int | None) -> Config:
    found = config.parse(MODEL, environment={})
    return replace(found, server=replace(found.server, port=port, ollama_port=ollama_port))


def test_it_listens_on_both_and_on_one_only_once() -> None:
    first, second = two_free_ports()
    for other, ports in ((second, [first, second]), (first, [first]), (None, [first])):
        with listen_everywhere(on(first, other)) as sockets:
            assert [one.getsockname()[1] for one in sockets] == ports
        assert all(one.fileno() < 0 for one in sockets)


def test_a_port_that_is_taken_is_named_with_its_key() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(Failed, match=f"{port}: .*ollama_port"),
            listen_everywhere(on(two_free_ports()[0], port)),
        ):
            pass
