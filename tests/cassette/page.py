"""The page on cassettes, and who does what it says."""

from __future__ import annotations

import json
import re
import shlex
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError

import pytest

from adapters.protocol import Json
from middleware import config
from middleware.__main__ import main
from middleware.cli.chat.gateway import running
from tests.documents.test_documents import blocks, prose, text

PAGE = text("docs/cassettes.md")
NOWHERE = '[recall]\nstore = "off"\n[server]\nport = 1\n'
"""No gateway runs there, so that one is run."""
PROVIDER = """
[upstreams.s]
kind = "scripted"
[models]
old = { upstream = "s", options = { rules = [
  { when = "cancel", call = { name = "cancel", arguments = { order = 7 } } },
  { when = "", say = "Fine." },
] } }
new = { upstream = "s", options = { rules = [
  { when = "cancel", call = { name = "refund", arguments = { order = 7 } } },
  { when = "", say = "All is fine." },
] } }
"""
RELAY = """
[upstreams.relay]
kind = "compatible"
base_url = "{url}"
api_key = "a-key-that-is-secret"
[models]
sonnet = {{ upstream = "relay", name = "old" }}
sonnet-5 = {{ upstream = "relay", name = "new" }}
"""
ASKING = """
import json, os, sys, urllib.error, urllib.request

def ask(text, **more):
    body = {"model": "sonnet", "messages": [{"role": "user", "content": text}], **more}
    headers = {"content-type": "application/json",
               "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    try:
        asked = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(asked) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError:
        return "I am sorry."

for text in sys.argv[1:]:
    print(ask(text))
"""
"""A program that swallows its errors, as applications do."""


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any


def shown(language: str, word: str) -> str:
    """The one block of a language that has the word."""
    (found,) = [block for block in blocks(PAGE, language) if word in block]
    return found


def spans() -> list[str]:
    return re.findall(r"`([^`\n]+)`", prose(PAGE))


def commands(word: str = "usetool ") -> list[str]:
    """Lines that are shown as commands, or as steps of a job."""
    lines = "".join([*blocks(PAGE, "sh"), *blocks(PAGE, "yaml")]).splitlines()
    bare = [line.strip().removeprefix("- run: ") for line in lines]
    return [line for line in bare if line.startswith(word)]


@dataclass(frozen=True)
class Reader:
    path: Path
    captured: pytest.CaptureFixture[str]

    def write(self, name: str, words: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words, "utf-8")
        return path

    def usetool(self, command: str) -> Ran:
        """Run a line of the page here; `python` is this one."""
        words = shlex.split(command, comments=True)
        assert words[0] == "usetool"
        words = [sys.executable if word == "python" else word for word in words[1:]]
        self.captured.readouterr()
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Ran(code, *self.captured.readouterr())

    def has_relay(self, provider: str) -> None:
        """A config with two models of a provider, and a program that asks the first."""
        self.write("config.toml", NOWHERE + RELAY.format(url=provider))
        self.write("app.py", ASKING)

    def has_the_file(self, name: str = "shop") -> Path:
        """The cassette that the page shows."""
        return self.write(f"cassettes/{name}.yaml", shown("yaml", "turns:"))


@contextmanager
def served(settings: str) -> Iterator[str]:
    """The address of a gateway, without the version at its end."""
    with running(config.parse(NOWHERE + settings, environment={}), lambda _: None) as endpoint:
        yield endpoint.url.removesuffix("/v1")


def post(url: str, body: Json | bytes, **headers: str) -> Answered:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    asked = urllib.request.Request(url, sent, {"content-type": "application/json", **named})
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return Answered(answer.status, dict(answer.headers), json.load(answer))
    except HTTPError as error:
        return Answered(error.code, dict(error.headers), json.load(error))


FIRST: Json = {
    "model": "gpt",
    "messages": [
        {"role": "system", "content": "Today is 2026-12-24."},
        {"role": "user", "content": "How cold is it in 沈阳?"},
    ],
}
"""Asks of the cassette that the page shows, on another day."""
SECOND: Json = {
    "model": "gpt",
    "messages": [
        *FIRST["messages"],
        {"role": "assistant", "content": "-12 °C."},
        {"role": "user", "content": "And now?"},
    ],
}


def words_of(answer: Answered) -> str:
    return str(answer.body["choices"][0]["message"]["content"])
