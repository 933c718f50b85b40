"""A pipeline of two scripts, as the tests of it share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adapters.protocol import (
    ChatRequest,
    Event,
    Json,
)
from adapters.receipts import Note
from middleware.wrappers.pipeline import Pipeline, ReasonThenAnswer
from middleware.wrappers.recall import MemoryStore, Recall
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import answer, assistant, request, result, user
from tests.support.fold import ask, folded

ASKED = user("沈阳天气")
CALLED = ("toolu_1", "weather", '{"city":"沈阳"}')
TOOLS = ({"type": "function", "function": {"name": "weather", "description": "Tells it."}},)


def with_tools(asked: ChatRequest, **params: Any) -> ChatRequest:
    return replace(asked, tools=TOOLS, params=params)


def pipeline(reasoner: FakeAdapter, answerer: FakeAdapter, **settings: Any) -> Recall:
    """A pipeline as the config builds it, with the recall around it."""
    return Recall(ReasonThenAnswer(reasoner, answerer, Pipeline(**settings)), MemoryStore())


def thoughts(events: Sequence[Event]) -> str:
    return folded(events).reasoning


def text(events: Sequence[Event]) -> str:
    return folded(events).text


def receipt_of(events: Sequence[Event]) -> list[Note]:
    return folded(events).receipt


def notes(events: Sequence[Event]) -> list[str]:
    return folded(events).notes


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


def after_rounds(**settings: Any) -> tuple[FakeAdapter, FakeAdapter, Recall]:
    reasoner = FakeAdapter(*(answer(f"thought {number}") for number in range(9)))
    answerer = FakeAdapter(*ANSWERS, answer(text="Bye."), answer(text="Bye."))
    adapter = pipeline(reasoner, answerer, **settings)
    messages: list[Json] = []
    for messages_of_round in ROUNDS:
        messages += messages_of_round
        ask(adapter, with_tools(request(*messages)))
    return reasoner, answerer, adapter
