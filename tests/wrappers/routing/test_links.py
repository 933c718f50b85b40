"""What an upstream is told: its address, headers and keys."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adapters.compatible import Compatible
from adapters.errors import UnknownModel
from adapters.wire.http import Link, Timeouts, Transport
from middleware import config
from middleware.building import build
from middleware.config import ConfigError
from middleware.wrappers.route import Route
from tests.wrappers.routing.routes import routes

KEY = "sk-secret-of-ours-0123456789"


# What an upstream is told ----------------------------------------------------------------------


def link_of(text: str) -> Link:
    given = f'[upstreams.up]\n{text}\n[models.m]\nupstream = "up"\n'
    found = config.parse(given, environment={"MY_KEY": "sk-a-key-of-mine"})
    _, leaf = build(found, Transport()).leaf("m")
    assert isinstance(leaf, Compatible)
    return leaf.link


OPEN = 'kind = "compatible"\nbase_url = "http://127.0.0.1:1/v1"\n'


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (f'api_key = "{KEY}"', "authorization", f"Bearer {KEY}"),
        (f'api_key = "{KEY}"\nauth = "x-api-key"', "x-api-key", KEY),
        ('headers = {X-Team = "a"}', "x-team", "a"),
        ('headers = {User-Agent = "b"}', "user-agent", "b"),
        ("", "content-type", "application/json"),
        ("", "accept-encoding", "identity"),
        ("", "authorization", None),
    ],
)
def test_headers_of_every_call(text: str, name: str, value: str | None) -> None:
    assert link_of(OPEN + text).headers.get(name) == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            'api_key = "env:MY_KEY"',
            "The key comes from env:MY_KEY. `usetool check --live` tries it.",
        ),
        (f'api_key = "{KEY}"', "The key comes from 'api_key' in the config. `usetool check"),
        ('headers = {Authorization = "env:MY_KEY"}', "The key comes from env:MY_KEY."),
        ('headers = {X-Team = "env:MY_KEY"}', 'No key is sent: write api_key = "env:NAME" under'),
        ('api_key = "client"', "The key is the one that the client sent."),
        ("", "No key is sent"),
    ],
)
def test_a_key_that_is_refused_is_told_by_its_place(text: str, told: str) -> None:
    link = link_of(OPEN + text)
    assert link.key_from.startswith(told)
    assert not any(secret in link.key_from for secret in link.secrets)


def test_timeouts_reach_the_transport() -> None:
    link = link_of(OPEN + "timeouts = {idle = 7, first_event = 8}")
    assert link.timeouts == Timeouts(idle=7, idle_open=7, first_event=8, plain=8)


def test_secrets_are_known_to_the_transport_and_shown_by_nothing() -> None:
    link = link_of(OPEN + f'api_key = "{KEY}"\nheaders = {{a = "k"}}')
    assert link.secrets == (KEY,)
    assert KEY not in repr(link)


def test_a_name_of_any_length_is_no_key_of_what_is_learned() -> None:
    found = routes('[models."*"]\nupstream = "up"')
    assert isinstance(found.find("x" * 256), Route)
    with pytest.raises(UnknownModel) as caught:
        found.find("x" * 257)
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("kind", ["text", "database", "folder", "pipe"])
def test_memories_are_not_put_into_a_file_of_somebody_else(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mine"
    match kind:
        case "text":
            path.write_text("a letter")
        case "database":
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("CREATE TABLE orders (id)")
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path) if hasattr(os, "mkfifo") else path.mkdir()
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ConfigError) as caught:
        routes(f'[models.m]\nupstream = "up"\n[recall]\npath = "{path}"')
    ((key, why, _),) = caught.value.mistakes
    assert key == "recall.path"
    assert str(path) in why
    assert "name another file" in why
    assert (path.read_bytes() if path.is_file() else None) == before
