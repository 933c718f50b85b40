"""`usetool cassette show`: a cassette, or one of its turns, as a conversation."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from middleware.cli import command
from middleware.cli.cassettes.files import readable
from middleware.cli.cassettes.options import add_folder
from middleware.cli.command import FINE, Failed, say

if TYPE_CHECKING:
    from adapters.protocol import Json
    from middleware.cassettes.cassette import CassetteTurn, RecordedAnswer, RecordedExchange

_ABOUT = """\
Prints what was asked and answered, turn by turn; --wire what upstreams were sent and said, --curl
the commands that repeat it, with the address and key to be put in.
"""
_SHOWN = 400


def add(commands: Any) -> None:
    show = command.add(commands, "show", "print turns as a conversation", _ABOUT, run)
    show.add_argument("name", metavar="NAME", help="a cassette, or a .yaml file")
    show.add_argument("turn", metavar="TURN", nargs="?", type=int, help="one turn, whole")
    show.add_argument("--wire", action="store_true", help="what upstreams were sent, and said")
    show.add_argument("--curl", action="store_true", help="commands that repeat it")
    add_folder(show)


def run(options: argparse.Namespace) -> int:
    with readable(options) as (path, cassette):
        turns = [one for one in cassette.turns if options.turn in (None, one.number)]
        if not turns:
            raise Failed(f"{path.name} has no turn {options.turn}: it has {len(cassette.turns)}.")
        longest = _SHOWN if options.turn is None else None
        for turn in turns:
            say("\n".join(_lines(turn, options, longest)))
    return FINE


def _lines(turn: CassetteTurn, options: argparse.Namespace, longest: int | None) -> Iterator[str]:
    marks: list[str] = [turn.ended] if turn.ended != "whole" else []
    marks += ["redacted"] if turn.redacted else []
    yield f"turn {turn.number}  {turn.model}  {'  '.join([*marks, turn.session])}".rstrip()
    if options.curl:
        yield from (_curl(exchange) for exchange in turn.exchanges)
        return
    for message in turn.body.get("messages") or [{"role": "input", "content": turn.body}]:
        yield from _said(message, longest)
    for exchange in turn.exchanges if options.wire else ():
        yield from _wire(exchange)
    yield from _answer(turn.answer, longest)


def _answer(answer: RecordedAnswer, longest: int | None) -> Iterator[str]:
    if answer.message is not None:
        yield from _said(answer.message, longest, "→ ")
    if answer.error is not None:
        yield f"  → error {answer.status} {answer.error.get('code')}: {answer.error.get('message')}"
    elif answer.body is None:
        yield f"  → {answer.finish_reason}  {answer.usage or ''}".rstrip()


def _said(message: Json, longest: int | None, arrow: str = "") -> Iterator[str]:
    role = message.get("role", "")
    for name in ("reasoning_content", "content", "refusal"):
        if text := message.get(name):
            told = text if isinstance(text, str) else str(text)
            short = told if longest is None or len(told) <= longest else f"{told[:longest]}…"
            yield f"  {arrow}{role}: " + short.replace("\n", "\n    ")
    for call in message.get("tool_calls") or ():
        function = call.get(call.get("type", "function")) or {}
        given = function.get("arguments", function.get("input"))
        yield f"  {arrow}{role} calls {function.get('name')} {given}"


def _wire(exchange: RecordedExchange) -> Iterator[str]:
    yield f"  {exchange.upstream} {exchange.method} {exchange.path}"
    yield "    " + exchange.sent.decode("utf-8", "replace")
    pieces = len(exchange.pieces)
    yield f"  {exchange.status}, {pieces} pieces, {len(exchange.body)} bytes, {exchange.ended}"
    yield "    " + exchange.body.decode("utf-8", "replace").replace("\n", "\n    ")


def _curl(exchange: RecordedExchange) -> str:
    from middleware.server.last.reports import curl

    headers = {"content-type": "application/json", "authorization": "Bearer $KEY"}
    url = f"http://{exchange.upstream}.test{exchange.path}"
    return curl(url, headers, exchange.sent.decode("utf-8", "replace"))
