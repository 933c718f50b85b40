"""The whole vocabulary: a request goes in, a stream of events comes out.

Requests keep OpenAI's own shape all the way; answers are the handful of events below. Everything
that answers a chat is an `Adapter`, so features compose instead of interleaving.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, dataclass_transform, final

from adapters.errors import GatewayError
from adapters.outcomes import Outcome, PassedOver, RouteSummary, ServerCall, route_of_one
from adapters.receipts import Receipt
from adapters.wire.capture import Capture

Json = dict[str, Any]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]
CallKind = Literal["function", "custom"]
TURN = "turn"
"""Key of an assistant message under which an adapter gets a `Finish.turn` of its own back."""
RESULT_OF = "result_of"
"""Key of a tool message with images: the table of the server tool that gave them."""
CARRIER = "carrier"
"""Key of a message under which a leaf finds, as a `Carried`, what the client said there itself."""
THOUGHTS_OF = "thoughts_of"
"""Key of an assistant message: name of the upstream whose thoughts it has."""
CARRIED = frozenset((CARRIER, THOUGHTS_OF))
"""What only doors write, and no upstream is sent."""

_Class = TypeVar("_Class")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(cls: type[_Class]) -> type[_Class]:
    """A frozen dataclass to the type checker alone: at run time freezing would make each twice as
    dear, and a stream makes hundreds.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


@value_class
class RequestContext:
    """Who asked and how; never sent upstream."""

    id: str = "req_local"
    owner: str = ""
    """Digest of who the client is: all that is remembered is kept apart by it."""
    deadline: float | None = None
    """Event-loop time at which the whole request ends."""
    streamed: bool = False
    key: str = field(default="", repr=False, compare=False)
    """The client's key, for upstreams that are opened by it."""
    capture: Capture | None = field(default=None, repr=False, compare=False)
    """Keeps what upstreams are sent and answer."""
    client: str = "default"
    """The client's name in the config."""
    chosen: str = ""
    """Which of the upstream's keys it goes with, by name; empty: the one whose turn it is."""
    journey: Journey | None = field(default=None, repr=False, compare=False)
    """Who was asked, and what came of it."""
    size: int = field(default=0, compare=False)
    """Bytes of the client's body; 0: not known."""
    session: str = ""
    """What the client calls the session of its server tools."""
    secret: bytes = field(default=b"", repr=False, compare=False)
    """Signs what clients keep for us; a replay has one of its own."""
    headers: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Of the client's, those its door reads."""
    most_calls: int | None = None
    """Calls of server tools that the client allows; None: it does not say."""
    now: Callable[[], float] | None = field(default=None, repr=False, compare=False)
    """The event loop's time, as to ask for the loop takes longer; None: nobody has asked yet."""


@value_class
class Carried:
    """What a client said in a language that OpenAI's shape cannot say whole.

    A leaf of that language takes it as it is, as long as nobody changed what stands beside it; for
    any other it only says what is lost. It never goes up otherwise.
    """

    language: str
    """The wire's name: `anthropic`, `ollama`, `responses`."""
    value: Any
    lost: Receipt = ()
    """What to tell where no leaf of the language answers; empty: it is no loss."""
    refusal: GatewayError | None = None
    """Raised there instead, where its loss would change the meaning."""
    beside: Any = None
    """The same in OpenAI's shape: where that was changed since, the value does not count."""
    search: bool = False
    """A hosted search of the web is among it, `tool_dropped` about it: ours may stand for it."""
    marked: bool = True
    """Some block or tool of it may have a cache breakpoint."""


@value_class
class ChatRequest:
    """One chat, in OpenAI's shape. Below the door `model` is the upstream's name for it."""

    model: str
    messages: tuple[Json, ...]
    tools: tuple[Json, ...] = ()
    tool_choice: str | Json | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    """Every other OpenAI field, as given."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields OpenAI does not have."""
    configured: frozenset[str] = frozenset()
    """Fields that the config says, not the client: what of them is lost, is not the client's."""
    call: RequestContext = RequestContext()
    native: Carried | None = None
    """Members of the request itself, beside those of its messages."""


def renamed(request: ChatRequest, model: str) -> ChatRequest:
    """`replace`, which every request would pay for, as it looks at each field."""
    return ChatRequest(
        model, request.messages, request.tools, request.tool_choice, request.params, request.extra,
        request.configured, request.call, request.native,
    )  # fmt: skip


@value_class
class Usage:
    """Tokens as the upstream reported them; None where it did not."""

    prompt: int
    completion: int
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further members of OpenAI's usage object an upstream sent."""
    parts: tuple[tuple[str, Usage | None], ...] = ()
    """What each model of a pipeline reported; None: nothing."""


@value_class
class Upstream:
    """Who answered."""

    name: str
    model: str = ""
    request_id: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Response headers for the client (rate limits), already in OpenAI's names."""
    fingerprint: str | None = None
    tier: str | None = None


@final
@value_class
class Opened:
    """The point of no return: comes once, first, together with the first real event."""

    receipt: Receipt
    upstream: Upstream


@final
@value_class
class TextDelta:
    text: str
    logprobs: tuple[Json, ...] = ()


@final
@value_class
class RefusalDelta:
    text: str


@final
@value_class
class ReasoningDelta:
    text: str


@final
@value_class
class ToolCallStart:
    index: int
    id: str
    name: str
    kind: CallKind = "function"


@final
@value_class
class ToolCallDelta:
    """A piece of the arguments (of the input, for a custom tool) of the last call started."""

    index: int
    arguments: str


@final
@value_class
class Aside:
    """Another member of the assistant message: annotations, images; `thinking_blocks` come where
    each ends, `own_…` to clients that speak the leaf's language.
    """

    field: str
    value: Any


@final
@value_class
class Noted:
    """What was learned after `Opened`."""

    receipt: Receipt


@final
@value_class
class Finish:
    """The proper end; exactly one, last. A stream without it is broken."""

    reason: FinishReason
    usage: Usage | None = None
    native: str = ""
    """The upstream's own word for the reason."""
    turn: Json | None = None
    """The upstream's own assistant message, where OpenAI's shape cannot say it."""
    stop: str | None = None
    """The stop string that ended it, where the upstream says which."""


# Readers tell them apart to the end (`assert_never`): a new one is an error of mypy at each reader.
# They are final, so that `type(event) is Finish`, which costs less than `isinstance`, does it too.
Event = (
    Opened
    | TextDelta
    | RefusalDelta
    | ReasoningDelta
    | ToolCallStart
    | ToolCallDelta
    | Aside
    | Noted
    | Finish
)
Events = AsyncGenerator[tuple[Event, ...], None]


@final
@dataclass(slots=True)
class UpstreamCall:
    """One call of an upstream, as it goes."""

    place: str
    """Public name of the model it was made for."""
    upstream: str
    model: str
    """The upstream's own name for the model."""
    began: float
    """Event-loop time, as the others."""
    key: str = ""
    """Which of several keys, by its place in the config: `claude#2`."""
    outcome: Outcome | None = None
    """None while it is at work."""
    first_event: float | None = None
    ended: float | None = None
    opened: Opened | None = None
    finish: Finish | None = None
    error: GatewayError | None = None
    letters: int = 0
    """How long what came of it is, in case nobody says what was used for it."""

    @property
    def code(self) -> Outcome:
        """What to say of it: one that was left at work came as far as its first word, or not."""
        return self.outcome or ("ok" if self.opened else "client")


class Journey:
    """What became of a client's request below the door, its rounds and parts included."""

    __slots__ = ("before_next_ask", "pins", "queued", "rounds", "steps", "tools")

    def __init__(self, steps: list[UpstreamCall | PassedOver] | None = None) -> None:
        self.steps: list[UpstreamCall | PassedOver] = [] if steps is None else steps
        """In order; a place that was called twice stands there twice."""
        self.queued = 0.0
        """Seconds it waited for free slots."""
        self.pins: dict[str, str] = {}
        """Model of choices → the place that answered: what follows here asks it first."""
        self.rounds = 0
        """How often the model was asked, where server tools are; each time is an ask."""
        self.tools: list[ServerCall] = []
        self.before_next_ask: Callable[[int], Awaitable[None] | None] | None = None
        """To be told of each ask behind the first, with the bytes it has more."""

    def calls(self) -> list[UpstreamCall]:
        return [step for step in self.steps if type(step) is UpstreamCall]

    def answered(self) -> UpstreamCall | None:
        """The call the answer is of; with several parts, that of the last."""
        for step in reversed(self.steps):
            if type(step) is UpstreamCall and (step.opened or step.outcome == "ok"):
                return step
        return None

    def summary(self) -> RouteSummary:
        if len(self.steps) == 1 and type(step := self.steps[0]) is UpstreamCall:
            return route_of_one(step.place, step.code, step.key, step.opened is not None)
        told, answered = [], None
        for step in self.steps:
            if type(step) is UpstreamCall:
                code = step.code
                told.append(f"{step.place}={code}")
                if code == "ok" or step.opened is not None:
                    answered = step
            else:
                told.append(f"{step.place}={step.reason}")
        if answered is None:
            return RouteSummary(tuple(told), "", "")
        return RouteSummary(tuple(told), answered.place, answered.key)


@dataclass(frozen=True, slots=True)
class Planned:
    """A call an adapter would make."""

    upstream: str
    url: str
    body: Json
    receipt: Receipt = ()
    configured: frozenset[str] = frozenset()
    """Fields that the config says, not the client."""


class Adapter(Protocol):
    """Whatever answers a chat: a leaf that talks to an upstream, or a wrapper around adapters."""

    __slots__ = ()

    def stream(self, request: ChatRequest) -> Events:
        """Yield one non-empty tuple of events per upstream read, or raise a `GatewayError`."""
        ...

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        """Say what `stream` would send, sending nothing."""
        ...
