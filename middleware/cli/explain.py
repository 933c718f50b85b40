"""`usetool explain`: what a request becomes."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from middleware.cli.command import FINE, LACKING, WRONG, Failed, add_configured, complain, say

if TYPE_CHECKING:
    from adapters.protocol import Planned
    from middleware.config import Config
    from middleware.doors.door import Door
    from middleware.tools.shelf import ToolShelf

_ABOUT = """\
Takes a request as a client would send it, and prints what would be sent upstream: address, body,
and a receipt of all that is not as the client said it. Sends nothing, and needs no keys. With --id
the request is one that the running gateway keeps (see `usetool last`). Of which protocol a body is
its members tell; where they do not, as a body of Anthropic's without tools, say it with --door.

Exit code: 0, or 1 if the request would be refused (with the reason), 2 if the config has mistakes.
"""

_DOORS = "its protocol: chat, responses, messages or ollama"
_ANY = "http://not-set"
"""Stands for a variable that is not set; fit for a proxy too."""


def add(commands: Any) -> None:
    explain = add_configured(commands, "explain", "show what a request becomes", _ABOUT, run)
    explain.add_argument("--model", help="public name of the model, instead of the request's")
    explain.add_argument("--stream", action="store_true", help="as a streamed request")
    explain.add_argument("--door", metavar="NAME", help=_DOORS)
    which = explain.add_mutually_exclusive_group()
    which.add_argument("--id", metavar="ID", help="a request the running gateway keeps")
    which.add_argument(
        "request", nargs="?", help="file with the JSON body of a request; - is stdin"
    )


def run(options: argparse.Namespace) -> int:
    from adapters.errors import GatewayError
    from adapters.wire.http import Transport
    from middleware.building import Shared, build
    from middleware.cli import describe
    from middleware.cli.tools import with_shelf
    from middleware.machine.memory import MemoryBoard
    from middleware.state.memory import MemoryState

    config = load_without_keys(options.config)
    try:
        body, path = _body(options)
    except OSError as error:
        complain(f"{options.request}: cannot be read: {error.strerror}")
        return WRONG
    try:
        server, door = config.server, _door(options.door or "", body, path)
        parsed = door.parse(body, repair=server.history_repair, strict=server.strict)
        if parsed.ready is not None:
            say("It is answered here: no upstream is asked.")
            return FINE

        async def plan(shelf: ToolShelf | None) -> tuple[Planned, ...]:
            shared = Shared(MemoryBoard(), MemoryState(), shelf)
            routes = build(config, Transport(), shared=shared)
            return routes.find(parsed.request.model).plan(parsed.request)

        planned = with_shelf(config, plan)
    except GatewayError as error:
        where = f" at {error.param}" if error.param else ""
        complain(f"{error.status} {error.code}{where}: {error.message}")
        return LACKING
    say(describe.plan(planned, parsed.receipt))
    return FINE


def _door(name: str, body: bytes, path: str) -> Door:
    from middleware.config.values import ALL_DOORS
    from middleware.doors import DOORS

    if name and name not in ALL_DOORS:
        raise Failed(f"--door {name}: there is none. There are: {', '.join(ALL_DOORS)}.")
    return DOORS.at.get(path) or DOORS.reading(_members(body), name)


def load_without_keys(path: str, server: Mapping[str, Any] | None = None) -> Config:
    """Read the config as if every variable was set: nothing will be sent."""
    from middleware.config import load

    text = ""
    with suppress(OSError):  # said when it is read
        text = Path(path).read_text("utf-8", errors="replace")
    needed = re.findall(r"env:(\w+)", text)
    environment = {name: os.environ.get(name) or _ANY for name in needed}
    return load(path, server=server, environment=environment)


def _body(options: argparse.Namespace) -> tuple[bytes, str]:
    """The request with what the command line says of it, and where it came to, if that is known."""
    import orjson

    body, path = _given(options)
    changes = {"model": options.model} if options.model else {}
    changes |= {"stream": True} if options.stream else {}
    data = _members(body)
    return (orjson.dumps({**data, **changes}) if data else body), path


def _members(body: bytes) -> dict[str, Any]:
    """None where it is no object: the door says what is wrong with it."""
    import orjson

    with suppress(orjson.JSONDecodeError):
        data = orjson.loads(body)
        return data if isinstance(data, dict) else {}
    return {}


def _given(options: argparse.Namespace) -> tuple[bytes, str]:
    if options.id:
        from middleware.cli import kept_requests
        from middleware.config import load

        gateway = kept_requests.endpoints(load(options.config), "", "")
        kept = kept_requests.fetch(gateway, options.id)
        return kept["body"].encode(), kept["path"]
    if options.request in (None, "-"):
        if sys.stdin.isatty():
            complain("Type the JSON body of a request, then Ctrl-D on a line of its own.")
        return sys.stdin.buffer.read(), ""
    return Path(options.request).read_bytes(), ""
