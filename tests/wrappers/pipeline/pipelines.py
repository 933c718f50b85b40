"""A pipeline of two scripts, as the tests of it share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adapters.protocol import ChatRequest, Event, Json, Noted, Opened, ReasoningDelta, TextDelta
from adapters.receipts import Note
from middleware.wrappers.pipeline import Pipeline, ReasonThenAnswer
from middleware.wrappers.recall import MemoryStore, Recall
from tests.support.dialogue import (
    Model,
    answer,
    ask,
    assistant,
    request,
    result,
    user,
)

ASKED = user("沈阳天气")
CALLED = ("toolu_1", "weather", '{"city":"沈阳"}')
TOOLS = ({"type": "function", "function": {"name": "weather", "description": "Tells it."}},)


def with_tools(asked: ChatRequest, **params: Any) -> ChatRequest:
    return replace(asked, tools=TOOLS, params=params)


def pipeline(reasoner: Model, answerer: Model, **settings: Any) -> Recall:
    """A pipeline as the config builds it, with the recall around it."""
    return Recall(ReasonThenAnswer(reasoner, answerer, Pipeline(**settings)), MemoryStore())


def thoughts(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def text(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def receipt_of(events: Sequence[Event]) -> list[Note]:
    found: list[Note] = []
    for event in events:
        if isinstance(event, Opened | Noted):
            found += event.receipt
    return found


def notes(events: Sequence[Event]) -> list[str]:
    return [note.code for note in receipt_of(events)]


# Rounds of tools -------------------------------------------------------------------------------


ROUNDS = [
    [ASKED],
    [assistant("", CALLED), result("toolu_1", "5℃")],
    [assistant("", ("toolu_2", "weather", '{"city":"大连"}')), result("toolu_2", "7℃")],
]
ANSWERS = [
    answer(said=[CALLED]),
    answer(said=[("toolu_2", "weather", '{"city":"大连"}')]),
    answer(text="5 and 7"),
]


def after_rounds(**settings: Any) -> tuple[Model, Model, Recall]:
    reasoner = Model(*(answer(f"thought {number}") for number in range(9)))
    answerer = Model(*ANSWERS, answer(text="Bye."), answer(text="Bye."))
    adapter = pipeline(reasoner, answerer, **settings)
    messages: list[Json] = []
    for messages_of_round in ROUNDS:
        messages += messages_of_round
        ask(adapter, with_tools(request(*messages)))
    return reasoner, answerer, adapter
