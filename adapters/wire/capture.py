"""What was said to upstreams and what they said, kept as it was to be looked at later."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from adapters.errors import Again, GatewayError

MOST = 256 << 10
"""Bytes of an answer from which on nothing more is kept."""
MOST_FACTS = 64
Chunks = tuple[float, Sequence[int]]
"""Of a piece, as it was read: when it came, and how long the chunks in it are."""


class CapturedFailure(NamedTuple):
    """What broke a call on the way, without the error, which would keep all its frames; a refusal
    by the upstream is an answer.
    """

    code: str
    status: int
    again: Again
    message: str
    retry_after: str | None


class Chunking(Protocol):
    """In which chunks an answer is sent."""

    sizes: Sequence[int]
    """Of those in what was read last; empty: it was sent in one, or nobody notes it."""


class _Unnoted:
    sizes: Sequence[int] = ()


UNNOTED: Chunking = _Unnoted()


@dataclass(slots=True)
class CapturedCall:
    """One call of an upstream: references to bytes that are there anyway."""

    upstream: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    proxy: str | None = field(repr=False)
    body: bytes = field(repr=False)
    began: float = field(default_factory=time.monotonic)
    answered: float | None = None
    """When its headers came."""
    ended: float | None = None
    status: int = 0
    """0: nothing was answered."""
    answer_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    pieces: list[bytes] = field(default_factory=list, repr=False)
    size: int = 0
    chunks: list[Chunks] | None = None
    """Of each piece; where they are kept, all pieces are."""
    chunking: Chunking = field(default=UNNOTED, repr=False)
    failure: CapturedFailure | None = None

    @property
    def kept(self) -> int:
        """Bytes of the answer that are held."""
        return min(self.size, MOST) if self.chunks is None else self.size

    def broke(self, error: GatewayError) -> None:
        told = error.code or "", error.status, error.again, error.message, error.retry_after
        self.failure = CapturedFailure(*told)

    def heard(self, piece: bytes) -> None:
        """What came at once."""
        size = len(piece)
        if self.chunks is not None:
            if size or not self.pieces:  # an end behind something says nothing more
                self.chunks.append((time.monotonic(), self.chunking.sizes or (size,)))
                self.pieces.append(piece)
        elif self.size < MOST:
            self.pieces.append(piece[: MOST - self.size])
        self.size += size

    def let_go(self) -> None:
        """Hold nothing any more, and keep nothing that is still to come."""
        self.body, self.pieces, self.size = b"", [], MOST


class CapturedTool(NamedTuple):
    """What a call of a server tool came to."""

    name: str
    """As the model calls it."""
    arguments: str
    content: str | list[dict[str, Any]]
    failed: bool = False
    sources: Sequence[dict[str, Any]] = ()
    """What the client's message cites because of it."""
    cut: int = 0
    """How many characters it had, if it was cut."""
    seconds: float = 0.0
    """How long it took, and what it said meanwhile: where clients are shown that."""
    pieces: Sequence[str] = ()
    order: int = 0
    """How many calls of its round were over before it."""


class Capture(list[CapturedCall]):
    """All calls made for one request, in their order."""

    __slots__ = ("_over", "offered", "tools", "whole")

    def __init__(self) -> None:
        self._over = False
        self.whole = False
        """All pieces are kept, and when each of their chunks came: somebody records."""
        self.tools: list[CapturedTool] = []
        self.offered: Sequence[dict[str, Any]] = ()
        """Declarations of the server tools that its client may have, with their ids."""

    def offer(self, tools: Sequence[dict[str, Any]]) -> None:
        self.offered = tools

    def known_result(self, name: str, arguments: str) -> CapturedTool | None:
        """What a recorded call came to, where tools are not to be run; None: run it."""
        return None

    def begin(self, call: CapturedCall) -> CapturedCall:
        if self.whole:
            call.chunks = []
        elif self._over:
            call.let_go()
        self.append(call)
        return call

    def let_go(self) -> None:
        """Nobody looks at the request any more, unless it is recorded: it may go on for long."""
        if self.whole:
            return
        self._over = True
        self.tools, self.offered = [], ()
        for call in self:
            call.let_go()

    def expected(self) -> Sequence[str]:
        """Upstreams that are to be asked, in this order; empty: nobody knows."""
        return ()


class Source(Protocol):
    """Where the bytes of one answer come from."""

    async def read(self, due: float) -> bytes:
        """Return the next piece, b"" at the end."""
        ...


class Tap:
    """A source that is no connection, such as a library: what is read of it is kept as well."""

    def __init__(self, source: Source, call: CapturedCall) -> None:
        self._source = source
        self._call = call

    async def read(self, due: float) -> bytes:
        try:
            piece = await self._source.read(due)
        except GatewayError as error:
            self._call.broke(error)
            raise
        self._call.heard(piece)
        return piece


class Fact(NamedTuple):
    """A small question to an upstream that belongs to no request: what models it has, say."""

    upstream: str
    method: str
    path: str
    ask: bytes | None
    answer: bytes


class FactRow:
    """The last answer to each small question; bounded, as upstreams choose what they say."""

    def __init__(self) -> None:
        self.added = 0
        """How many have come; who has seen so many has seen all."""
        self._known: OrderedDict[tuple[str, str, str, bytes | None], Fact] = OrderedDict()

    def add(self, fact: Fact) -> None:
        if len(fact.answer) > MOST:
            return
        key = fact[:4]
        self.added += 1
        self._known[key] = fact
        self._known.move_to_end(key)
        if len(self._known) > MOST_FACTS:
            self._known.popitem(last=False)

    def __iter__(self) -> Iterator[Fact]:
        return iter([*self._known.values()])
