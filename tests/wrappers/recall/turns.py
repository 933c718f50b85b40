"""Turns with thoughts of Claude's and what goes up after them."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.protocol import (
    Event,
    Json,
)
from middleware.wrappers.recall import MemoryStore, Recall
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import answer, request, user
from tests.support.fold import ask

BLOCKS: Json = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "想", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "Zm9v"},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "沈阳"}},
    ],
}
ASKED = user("沈阳天气")
CALLED = ("toolu_1", "weather", '{"city":"沈阳"}')


def after_call(
    *turns: Json, first: Sequence[Event] | None = None, model: str = "m", client: str = "a"
) -> FakeAdapter:
    """Ask once, then send `turns` behind the question."""
    scripted = FakeAdapter(
        first or answer("need it", said=[CALLED], turn=BLOCKS), answer(text="5℃")
    )
    recall = Recall(scripted, MemoryStore())
    ask(recall, request(ASKED))
    ask(recall, request(ASKED, *turns, model=model, client=client))
    return scripted
