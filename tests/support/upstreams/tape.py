"""An upstream that is a list of bytes, at the seam of `adapters/wire/http.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from adapters.wire.capture import Capture
from adapters.wire.http import Link, Transport
from adapters.wire.json_text import load
from adapters.wire.reply import Reply, unheard

T = TypeVar("T")


class TapeReply(Reply):
    """Gives its pieces one read at a time, then the end of input."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: Sequence[bytes], headers: Mapping[str, str]) -> None:
        self.pieces = [piece for piece in pieces if piece]
        self.headers = headers
        self.status = 200
        self.heard = unheard

    async def arriving(self, due: float) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    def is_whole(self) -> bool:
        return not self.pieces

    async def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Tape(Link):
    deliveries: Iterator[Sequence[bytes]] = field(default_factory=lambda: iter(()))
    """The pieces of each answer in turn."""
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, bytes] = field(default_factory=dict)
    """To small questions, by path."""

    async def post(self, path: str, body: bytes, due: float, kept: Capture | None = None) -> Reply:
        return TapeReply(next(self.deliveries), self.answer_headers)

    async def fetch(self, method: str, path: str, body: bytes | None, seconds: float) -> Any:
        return load(self.answers.get(path, b"null"))


def tape(pieces: Sequence[bytes], **headers: str) -> Tape:
    return Tape(
        "tape", "http://tape", Transport(), deliveries=iter([pieces]), answer_headers=headers
    )
