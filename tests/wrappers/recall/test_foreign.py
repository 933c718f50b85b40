"""Thoughts of another upstream of the same kind: left out, named, and there again on return."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.protocol import (
    Event,
    Finish,
    Noted,
    Opened,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
)
from adapters.receipts import Note
from middleware.wrappers.recall import MemoryStore, Recall
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import assistant, request, result, user
from tests.support.fold import ask

BLOCKS = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]
TURN = {"role": "assistant", "content": [*BLOCKS, {"type": "text", "text": "yes"}]}
OPENED = Opened((), Upstream("up"))
DROPPED = Note("reasoning_dropped", "messages[1].reasoning_content", "not signed")
_CALL = ("id_1", "f", "{}")
CALLS = (
    (OPENED, ReasoningDelta("hm"), ToolCallStart(0, "id_1", "f"), ToolCallDelta(0, "{}")),
    Finish("tool_calls", turn={**TURN, "content": [*BLOCKS, {"type": "tool_use", "id": "id_1"}]}),
)
ANSWER = ((OPENED, TextDelta("well")), Finish("stop"))
DROPPING = ((Opened((DROPPED,), Upstream("up")), TextDelta("well")), Finish("stop"))


def codes(events: Sequence[Event]) -> list[str]:
    told = [event for event in events if isinstance(event, (Opened, Noted))]
    return [note.code for event in told for note in event.receipt]


def test_signed_thoughts_stay_with_who_signed_them() -> None:
    store = MemoryStore()
    one, two = FakeAdapter(CALLS, ANSWER), FakeAdapter(ANSWER)
    first, second = (
        Recall(fake, store, name, apart=True) for fake, name in ((one, "one"), (two, "two"))
    )
    question = user("go")
    ask(first, request(question))
    echoed = {**assistant(None, _CALL), "thinking_blocks": BLOCKS, "reasoning_content": "hm"}
    later = request(question, echoed, result("id_1", "r"))
    assert "thoughts_left" in codes(ask(second, later))
    assert "thinking_blocks" not in two.last()[1]
    assert "thoughts_left" not in codes(ask(first, later))
    assert one.last()[1]["thinking_blocks"] == BLOCKS


def test_what_only_the_leaf_leaves_out_is_named_too() -> None:
    recall = Recall(FakeAdapter(DROPPING), MemoryStore(), "two", apart=True)
    echoed = {**assistant("yes"), "reasoning_content": "hm"}
    assert "thoughts_left" in codes(ask(recall, request(user("go"), echoed, user("on"))))


def test_a_model_alone_is_sent_what_the_client_sends() -> None:
    fake = FakeAdapter(ANSWER)
    echoed = {**assistant("yes"), "thinking_blocks": BLOCKS}
    heard = ask(Recall(fake, MemoryStore(), "one"), request(user("go"), echoed, user("on")))
    assert fake.last()[1]["thinking_blocks"] == BLOCKS
    assert codes(heard) == []


def test_who_does_not_think_about_it_gets_no_thoughts() -> None:
    fake = FakeAdapter(ANSWER)
    recall = Recall(fake, MemoryStore(), "two", lambda _: False, apart=True)
    echoed = {**assistant("yes"), "thinking_blocks": BLOCKS}
    ask(recall, request(user("go"), echoed, user("on")))
    assert "thinking_blocks" not in fake.last()[1]
