"""What was recorded of a library that answers as a compatible server would: nothing is asked.

The library is not there where it is played, so what would be sent is not made and not compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import orjson

from adapters.compatible import PATH, encode, exchange
from adapters.compatible.dialect import Dialect
from adapters.compatible.vectors import read_vectors
from adapters.leaf import Leaf
from adapters.protocol import ChatRequest, Events, Json, Planned
from adapters.shared.embeddings import EmbeddingRequest
from adapters.wire.exchange import converse
from adapters.wire.framing import Framer, Sse
from adapters.wire.http import Link

# It says nothing of fields the library knows and OpenAI does not, and keeps thoughts.
_READ = Dialect(reasoning_echo=True)


@dataclass(frozen=True, slots=True)
class RecordedCompletions(Leaf):
    link: Link
    framing: Callable[[], Framer] = Sse
    always_streams: bool = False
    """It streams whatever the client wants."""

    def stream(self, request: ChatRequest) -> Events:
        call = request.call
        asked = exchange(encode(request, _READ), call)
        streamed = call.streamed or self.always_streams
        asked = replace(asked, body={}, receipt=(), framing=self.framing, streamed=streamed)
        return converse(self.link, asked, call)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        return (Planned(self.link.name, self.link.url(PATH), {}),)

    async def embed(self, request: EmbeddingRequest) -> Json:
        body = orjson.dumps({"model": request.model, "input": request.input})
        said = await self.link.ask("/embeddings", body, request.call.capture)
        return read_vectors(said, self.link)
