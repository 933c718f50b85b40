"""What was heard of one answer of chat completions so far."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from adapters.protocol import Json
from adapters.wire.exchange import AnswerState


@dataclass(slots=True)
class Slot:
    """One streamed call, and what came of it before its name did."""

    key: int
    identity: str = ""
    early: list[str] = field(default_factory=list)
    started: bool = False


@dataclass(slots=True)
class State(AnswerState):
    slots: dict[Hashable, Slot] = field(default_factory=dict)
    """Where an upstream says its calls stand → the call; a new call may take over a place."""
    last: Hashable = 0
    count: int = 0
    logprobs: list[Json] = field(default_factory=list)
    """Of tokens that made no text yet: half a character, a token of a call."""
    native: str = ""
    stop: str | None = None
    usage: Json | None = None
    further: bool = False
    """It sent more choices than the one that was asked for."""
    cited: bool = False
    """It named its sources where OpenAI has no place for them."""
