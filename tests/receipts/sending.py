"""What is sent to every upstream, and what of it is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from adapters.errors import BadRequest
from adapters.protocol import Adapter, Json
from adapters.receipts import Note
from middleware.doors.chat.parse import parse
from tests.support.recordings import upstreams

every_upstream = pytest.mark.parametrize(
    "upstream", upstreams(), ids=[upstream.name for upstream in upstreams()]
)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


@dataclass(frozen=True)
class Sent:
    """What became of a request: its body upstream, or who refused what."""

    body: bytes = b""
    notes: tuple[Note, ...] = ()
    refused: BadRequest | None = None

    def names(self, field: str) -> bool:
        return any(_is_part(note.field, field) for note in self.notes)


def _is_part(path: str, field: str) -> bool:
    return path == field or path.startswith((f"{field}.", f"{field}["))


def send(adapter: Adapter, body: Json) -> Sent:
    """Take a request through the door and the adapter, as far as its upstream."""
    try:
        asked = parse(orjson.dumps(body))
        (planned,) = adapter.plan(asked.request)
    except BadRequest as error:
        return Sent(refused=error)
    return Sent(orjson.dumps(planned.body), (*asked.receipt, *planned.receipt))


def tool(name: str = "get_weather", **members: Any) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA, **members}}
