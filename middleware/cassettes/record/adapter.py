"""An adapter that keeps what passes: what is asked, sent, heard and answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from adapters.errors import GatewayError
from adapters.protocol import (
    Adapter,
    ChatRequest,
    Events,
    Finish,
    Json,
    Planned,
    RequestContext,
)
from adapters.wire.capture import Capture, CapturedCall, CapturedTool
from middleware.cassettes.asks import Heard, error_object, heard_more
from middleware.cassettes.cassette import RecordedAnswer
from middleware.cassettes.visitor import Visitor

_MANY = 8
"""Events that are folded as they come, even where they come at once: to wait, they are too many."""


class RawTurn(NamedTuple):
    """All that happened, as references to what is there anyway."""

    visitor: Visitor
    calls: Sequence[CapturedCall]
    heard: Heard | None = None
    """What the client was told; None: nothing."""
    status: int = 200
    error: Json | None = None
    left: bool = False
    """The client went away before the end."""
    body: Json | None = None
    """An answer that is no chat."""
    tools: Sequence[CapturedTool] = ()
    offered: Sequence[Json] = ()
    """Declarations of the server tools that could be called."""
    answer: RecordedAnswer | None = None
    """What all of it comes to, once that is known."""


class TurnKeeper(Protocol):
    """Whoever takes turns in."""

    def put(self, turn: RawTurn) -> None: ...


class RecordingAdapter(Adapter):
    """Made for one request, so it is none of the wrappers, which live long and are frozen."""

    __slots__ = ("inner", "keeper", "visitor")

    def __init__(self, inner: Adapter, keeper: TurnKeeper, visitor: Visitor) -> None:
        self.inner = inner
        self.keeper = keeper
        self.visitor = visitor

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        return self.inner.plan(request)

    async def stream(self, request: ChatRequest) -> Events:
        capture = request.call.capture  # of who looks at the last requests
        if capture is None:
            capture = Capture()
            request = replace(request, call=replace(request.call, capture=capture))
        capture.whole = True
        left, failure = True, None
        heard: Heard | None = None
        events = self.inner.stream(request)
        try:
            try:
                async for batch in events:
                    if type(batch[-1]) is Finish:  # whoever leaves now has had it all
                        left = False
                    at_once = heard is None and not left and len(batch) < _MANY
                    heard = batch if at_once else heard_more(heard, batch)
                    yield batch
            finally:
                await events.aclose()
            left = False
        except GatewayError as error:
            left, failure = False, error
            raise
        finally:
            status, told = 200, None
            if failure is not None:
                status = status if heard else failure.status
                told = error_object(failure)
            visitor, tools, offered = self.visitor, capture.tools, capture.offered
            turn = RawTurn(visitor, capture, heard, status, told, left, None, tools, offered)
            self.keeper.put(turn)


async def recorded_vectors(
    keeper: TurnKeeper, visitor: Visitor, live: Callable[[RequestContext], Awaitable[Json]]
) -> Json:
    call, capture = visitor.call, visitor.call.capture
    if capture is None:
        capture = Capture()
        call = replace(call, capture=capture)
    capture.whole = True
    turn = RawTurn(visitor, capture, left=True)
    try:
        vectors = await live(call)
        turn = turn._replace(left=False, body=vectors)
        return vectors
    except GatewayError as error:
        turn = turn._replace(left=False, status=error.status, error=error_object(error))
        raise
    finally:
        keeper.put(turn)
