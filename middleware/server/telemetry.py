"""One structured line a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Protocol, TextIO

import orjson

from adapters.errors import GatewayError
from adapters.protocol import Finish, Journey, Json, Opened, Usage
from adapters.receipts import Receipt
from middleware.server.terminal import one_line

LIVE = "live"
"""What an answer says of its recording where it was asked in spite of one."""
Operation = Literal["chat", "embeddings"]
_FLUSH_SECONDS = 0.2
# A client may send as many strange fields as it likes, of any length.
_NOTES, _LONGEST_FIELD = 50, 200


@dataclass(slots=True)
class Visit:
    """One request, as the log will tell it; prompts and answers are never in it."""

    id: str
    began: float
    method: str = "POST"
    path: str = ""
    model: str = ""
    streamed: bool = False
    created: int = 0
    """Seconds since 1970, as the answer says them."""
    upstream: str = ""
    upstream_model: str = ""
    upstream_request_id: str = ""
    status: int = 0
    first_event: float | None = None
    receipt: Receipt = ()
    finish: Finish | None = None
    usage: Usage | None = None
    """Of an answer that has no finish."""
    error: GatewayError | None = None
    replay: str = ""
    """The turn of a cassette that answered."""
    client: str = "default"
    """The name of who asked."""
    operation: Operation = "chat"
    door: str = "chat"
    journey: Journey = field(default_factory=Journey)
    """Who was asked for it, and what came of that."""
    cost: float | None = None
    """USD; None: nothing was used, or no price is known."""
    spent: Usage | None = None
    """Tokens of all calls together, estimates included."""
    counted: bool = False
    """It was let in: the ledger has a row of it."""
    limit: str = ""
    """Which limit of the client refused it."""
    gone: bool = False
    """The client closed its connection before the end."""

    @property
    def played(self) -> bool:
        """It was answered from a recording: nobody pays for it."""
        return self.replay not in ("", LIVE)

    def opened(self, event: Opened, now: float) -> None:
        self.first_event = now
        self.upstream = event.upstream.name
        self.upstream_model = event.upstream.model
        self.upstream_request_id = event.upstream.request_id
        self.receipt += event.receipt

    def line(self, now: float) -> Json:
        told: dict[str, Any] = {
            "id": self.id,
            "model": self.model,
            "status": self.status,
            "seconds": round(now - self.began, 4),
            "stream": self.streamed,
        }
        if self.path:
            told["method"], told["path"] = self.method, self.path
        if self.first_event is not None:
            told["first_event"] = round(self.first_event - self.began, 4)
            told["upstream"] = self.upstream
            told["upstream_model"] = self.upstream_model
        if self.replay:
            told["replay"] = self.replay
        if self.upstream_request_id:
            told["upstream_request_id"] = self.upstream_request_id
        if self.finish is not None:
            told["finish"] = self.finish.reason
        if usage := self.finish.usage if self.finish else self.usage:
            told["usage"] = _figures(usage)
            if usage.parts:
                told["usage_parts"] = {name: used and _figures(used) for name, used in usage.parts}
        self._tell_trouble(told)
        return told

    def _tell_trouble(self, told: dict[str, Any]) -> None:
        if self.receipt:
            told["warnings"] = [
                f"{note.code}: {note.field[:_LONGEST_FIELD]}: {note.text}"
                for note in self.receipt[:_NOTES]
            ]
        if self.error is not None:
            told["error"] = {"code": self.error.code, "message": self.error.message}
        if self.gone:
            told["client_gone"] = True


class Observer(Protocol):
    """Takes in every request at its end: the ledger, metrics, traces."""

    def ended(self, visit: Visit, now: float) -> None:
        """Never waits and never fails; the visit is not changed any more."""


def _figures(usage: Usage) -> list[int]:
    return [usage.prompt, usage.completion]


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
    _lines: list[str] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None

    def write(self, line: Json) -> None:
        if _weight(line) < LEVELS[self.level]:
            return
        if self.readable:
            say = readable if "status" in line else _news
            self._lines.append(say(line, time.strftime("%H:%M:%S")))
        else:
            said = {"time": _timestamp(int(time.time())), **line}
            self._lines.append(orjson.dumps(said).decode())
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        self._timer = None
        lines, self._lines = self._lines, []
        if lines:
            self.out.write("\n".join(lines) + "\n")
            self.out.flush()


@lru_cache(maxsize=2)
def _timestamp(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


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
