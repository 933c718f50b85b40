"""One structured line a request."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, TextIO

import orjson

from adapters.errors import GatewayError
from adapters.protocol import Finish, Json, Opened, Receipt, Usage

_FLUSH_SECONDS = 0.2


@dataclass(slots=True)
class Visit:
    """One request, as the log will tell it; prompts and answers are never in it."""

    id: str
    began: float
    model: str = ""
    streamed: bool = False
    upstream: str = ""
    upstream_model: str = ""
    upstream_request_id: str = ""
    status: int = 0
    first_event: float | None = None
    receipt: Receipt = ()
    finish: Finish | None = None
    error: GatewayError | None = None
    gone: bool = False
    """The client closed its connection before the end."""

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
        if self.first_event is not None:
            told["first_event"] = round(self.first_event - self.began, 4)
            told["upstream"] = self.upstream
            told["upstream_model"] = self.upstream_model
        if self.upstream_request_id:
            told["upstream_request_id"] = self.upstream_request_id
        if self.finish is not None:
            told["finish"] = self.finish.reason
            if self.finish.usage is not None:
                told["usage"] = _figures(self.finish.usage)
                if parts := self.finish.usage.parts:
                    told["usage_parts"] = {name: used and _figures(used) for name, used in parts}
        if self.receipt:
            told["warnings"] = [f"{note.code}: {note.field}: {note.text}" for note in self.receipt]
        if self.error is not None:
            told["error"] = {"code": self.error.code, "message": self.error.message}
        if self.gone:
            told["client_gone"] = True
        return told


def _figures(usage: Usage) -> list[int]:
    return [usage.prompt, usage.completion]


@dataclass(slots=True)
class Log:
    """Writes lines in batches: a system call a request would be a tenth of its cost."""

    out: TextIO
    _lines: list[bytes] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None

    def write(self, line: Json) -> None:
        said = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **line}
        self._lines.append(orjson.dumps(said))
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        self._timer = None
        lines, self._lines = self._lines, []
        if lines:
            self.out.write(b"\n".join(lines).decode() + "\n")
            self.out.flush()
