"""One structured line a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TextIO

import orjson

from adapters.protocol import Json
from middleware.server.terminal import one_line
from middleware.server.visits import TOGETHER, Visit

_FLUSH_SECONDS = 0.2
_AT_ONCE = 4096
"""Bytes that a pipe takes as one, at the least; a line is nearly always ASCII."""
LEVELS: Mapping[str, int] = {"debug": 0, "info": 0, "warning": 400, "error": 500}
"""The log's level → the least status of a request that it tells of."""
_OF_NEWS = 400
"""What is told of no request is a warning."""
_COLOURS: Mapping[int, str] = {4: "\033[33m", 5: "\033[31m"}
_UNCOLOURED = "\033[0m"


@dataclass(slots=True)
class Log:
    """Writes lines in batches: a system call a request would be a tenth of its cost."""

    out: TextIO
    level: str = "info"
    readable: bool = False
    """For people at a terminal; else one JSON object a line."""
    _ended: list[tuple[Visit, float, int]] = field(default_factory=list)
    """Requests, when they ended by the event loop's time, and in seconds since 1970."""
    _lines: list[str] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None

    def end(self, visit: Visit, now: float) -> None:
        """Tell of a request that has ended."""
        self._ended.append((visit, now, int(time.time())))
        if len(self._ended) >= TOGETHER:
            self._catch_up()
        if self._timer is None:
            self._flush_soon()

    def write(self, line: Json) -> None:
        self._catch_up()
        self._add(line, int(time.time()))
        if self._timer is None:
            self._flush_soon()

    def follow(self, level: str) -> None:
        """From now on no line is told that is below this level."""
        self._catch_up()
        self.level = level

    def flush(self) -> None:
        self._timer = None
        self._catch_up()
        lines, self._lines = self._lines, []
        for piece in _pieces(lines):
            self.out.write(piece)
            self.out.flush()

    def _flush_soon(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_FLUSH_SECONDS, self.flush)

    def _catch_up(self) -> None:
        ended, self._ended = self._ended, []
        for visit, now, second in ended:
            self._add(visit.line(now), second)

    def _add(self, line: Json, second: int) -> None:
        least = LEVELS[self.level]
        if least and _weight(line) < least:
            return
        if self.readable:
            say = readable if "status" in line else _news
            self._lines.append(say(line, time.strftime("%H:%M:%S", time.localtime(second))))
        else:
            # The time stands before the line as text: within, it would mean another dict.
            self._lines.append(_timestamp(second) + orjson.dumps(line).decode()[1:])


def _pieces(lines: Sequence[str]) -> Iterator[str]:
    """Whole lines, few enough that other workers' are not written into them."""
    piece = ""
    for line in lines:
        if piece and len(piece) + len(line) >= _AT_ONCE:
            yield piece
            piece = ""
        piece += line + "\n"
    if piece:
        yield piece


@lru_cache(maxsize=2)
def _timestamp(second: int) -> str:
    """How a line begins that is never empty."""
    return time.strftime('{"time":"%Y-%m-%dT%H:%M:%SZ",', time.gmtime(second))


def readable(line: Json, clock: str) -> str:
    """The same line for people: what matters first, the id last."""
    said = [line["model"] or f"{line.get('method', '-')} {line.get('path', '')}".strip()]
    if line.get("upstream_model"):
        said.append(f"→ {line['upstream']} {line['upstream_model']}")
    first = line.get("first_event")
    said.append(f"{line['seconds']:.2f}s" + (f" (first {first:.2f}s)" if first else ""))
    if usage := line.get("usage"):
        said.append(f"{usage[0]}+{usage[1]} tokens")
    said += [line["finish"]] if "finish" in line else []
    if len(line.get("route", ())) > 1:
        said.append(", ".join(line["route"]))
    said += ["the client left"] if "client_gone" in line else []
    said += [f"{len(line['warnings'])} warnings"] if "warnings" in line else []
    said += ["{code}: {message}".format(**line["error"])] if "error" in line else []
    text = "  ".join([*said, line["id"]])
    # Nothing a client or an upstream wrote may steer the terminal.
    colour = _COLOURS.get(_weight(line) // 100, "")
    return f"{clock}  {colour}{line['status']}{_UNCOLOURED if colour else ''}  {one_line(text)}"


def _weight(line: Json) -> int:
    """The status, or what it would have been had a stream not begun with 200."""
    status: int = line.get("status", _OF_NEWS)
    return 500 if "error" in line and status < 400 else status


def _news(line: Json, clock: str) -> str:
    """A line that is about no request's end."""
    return f"{clock}  " + "  ".join(f"{name}: {value}" for name, value in line.items())
