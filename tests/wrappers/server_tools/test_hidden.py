"""Rounds the client never sees come back in its later requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from adapters.protocol import Json
from middleware.wrappers.recall import Limits, MemoryStore, Store
from middleware.wrappers.recall.store import Entry, StoreFailure
from middleware.wrappers.server_tools import ServerTools
from tests.support.adapters import FakeAdapter, Script
from tests.support.fold import Answer
from tests.support.tools import FakeShelf
from tests.wrappers.recall.stores import Clock
from tests.wrappers.server_tools.rounds import (
    CLIENT_TOOL,
    USER,
    answer,
    asked,
    calling,
    echo,
    result,
    said,
    saying,
    wrapped,
)

BOTH = calling(("c1", "now", "{}"), ("c2", "mine", '{"x": 7}'), ("c3", "now", '{"b": 1}'))
MORE: Json = {"role": "user", "content": "and now?"}


def first_turn(store: Store, *answers: Script, **fields: Any) -> Answer:
    model = FakeAdapter(*answers)
    return answer(wrapped(model, FakeShelf(w__now="sunny"), store), asked(**fields))


def next_turn(store: Store, *messages: Json, owner: str = "me", **settings: Any) -> list[Json]:
    """What the model is asked in the next turn."""
    model = FakeAdapter(saying("Next."))
    shelf = FakeShelf(w__now="another")
    answer(wrapped(model, shelf, store, **settings), asked(USER, *messages, owner=owner))
    assert shelf.ran("w.now") == []
    return model.last()


def test_hidden_rounds_stand_before_the_answer_they_led_to() -> None:
    store = MemoryStore()
    got = first_turn(store, calling(("c1", "now", "{}"), text="Wait."), saying("It is sunny."))
    assert said(next_turn(store, echo(got), MORE)) == [
        ("user", "what is it like?"),
        ("assistant", ("Wait.", "now")),
        ("tool", "sunny"),
        ("assistant", "It is sunny."),
        ("user", "and now?"),
    ]


def test_they_are_told_by_the_words_not_by_their_white_space() -> None:
    store = MemoryStore()
    first_turn(store, calling(("c1", "now", "{}")), saying("It is sunny.\n"))
    later = {"role": "assistant", "content": [{"type": "text", "text": "It is sunny."}]}
    system = {"role": "system", "content": "Today is another day."}
    assert len(next_turn(store, system, later, MORE)) == 6


def test_other_words_are_another_turn() -> None:
    store = MemoryStore()
    first_turn(store, calling(("c1", "now", "{}")), saying("It is sunny."))
    changed = {"role": "assistant", "content": "It rains."}
    assert next_turn(store, changed, MORE) == [USER, changed, MORE]


def test_other_words_beside_calls_are_another_turn_too() -> None:
    store = MemoryStore()
    got = first_turn(store, BOTH, tools=(CLIENT_TOOL,))
    changed = {**echo(got), "content": "I was never told that."}
    assert len(next_turn(store, changed, result("c2", "seven"))) == 3


def test_what_is_needed_again_stays_young() -> None:
    clock = Clock()
    store = MemoryStore(Limits(max_age=100), clock)
    got = echo(first_turn(store, calling(("c1", "now", "{}")), saying("It is sunny.")))
    clock.now += 60
    model = FakeAdapter(calling(("c2", "now", "{}")), saying("Still."))
    answer(wrapped(model, FakeShelf(w__now="sunny"), store), asked(USER, got, MORE))
    clock.now += 60
    assert len(next_turn(store, got, MORE)) == 5


def test_another_client_does_not_get_them() -> None:
    store = MemoryStore()
    got = first_turn(store, calling(("c1", "now", "{}")), saying("It is sunny."))
    assert len(next_turn(store, echo(got), MORE, owner="you")) == 3


def test_calls_of_both_kinds_go_up_together_in_the_order_of_the_model() -> None:
    store = MemoryStore()
    got = first_turn(store, BOTH, tools=(CLIENT_TOOL,))
    assert (got.reason, got.text) == ("tool_calls", "")
    assert got.calls == [("c2", "mine", "function", '{"x": 7}')]
    told = next_turn(store, echo(got), result("c2", "seven"))
    assert said(told) == [
        ("user", "what is it like?"),
        ("assistant", (None, "now", "mine", "now")),
        ("tool", "sunny"),
        ("tool", "seven"),
        ("tool", "sunny"),
    ]
    assert [message["tool_call_id"] for message in told[2:]] == ["c1", "c2", "c3"]


def test_a_client_that_makes_ids_of_its_own_is_recognised() -> None:
    store = MemoryStore()
    first_turn(store, BOTH, tools=(CLIENT_TOOL,))
    call = {
        "id": "own",
        "type": "function",
        "function": {"name": "mine", "arguments": '{ "x" : 7.0 }'},
    }
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    told = next_turn(store, turn, result("own", "seven"))
    assert [message.get("tool_call_id") for message in told] == [None, None, "c1", "c2", "c3"]


def test_conversations_that_are_alike_are_told_apart_by_ids() -> None:
    store = MemoryStore()
    turns = []
    for identity, weather in (("a", "sunny"), ("b", "rainy")):
        model = FakeAdapter(calling((f"s{identity}", "now", "{}"), (identity, "mine", "{}")))
        adapter = wrapped(model, FakeShelf(w__now=weather), store)
        turns.append(echo(answer(adapter, asked(tools=(CLIENT_TOOL,)))))
    told = next_turn(store, turns[0], result("a", "C"))
    assert [message["content"] for message in told[2:]] == ["sunny", "C"]


def test_a_round_of_tools_before_a_client_s_call_comes_back_too() -> None:
    store = MemoryStore()
    answers = calling(("c1", "now", "{}")), calling(("c2", "mine", "{}"))
    got = first_turn(store, *answers, tools=(CLIENT_TOOL,))
    turn, back = echo(got), result("c2", "C")
    names = [told for _, told in said(next_turn(store, turn, back))]
    assert names == ["what is it like?", (None, "now"), "sunny", (None, "mine"), "C"]
    # And once more behind the answer to that.
    model = FakeAdapter(calling(("c3", "now", "{}")), saying("Done."))
    done = answer(wrapped(model, FakeShelf(w__now="x"), store), asked(USER, turn, back))
    names = [told for _, told in said(next_turn(store, turn, back, echo(done), MORE))]
    assert names[4:] == ["C", (None, "now"), "x", "Done.", "and now?"]


def test_a_call_that_nobody_answered_does_not_come_back() -> None:
    store, last = MemoryStore(), calling(("c2", "now", "{}"), text="Enough.")
    model = FakeAdapter(calling(("c1", "now", "{}")), last)
    got = answer(wrapped(model, FakeShelf(w__now="sunny"), store, max_rounds=1))
    told = [what for _, what in said(next_turn(store, echo(got), MORE))]
    assert told == ["what is it like?", (None, "now"), "sunny", "Enough.", "and now?"]


def test_thoughts_that_were_shown_do_not_come_back_as_words_of_the_model() -> None:
    store = MemoryStore()
    got = first_turn(store, calling(("c1", "now", "{}")), saying("It is sunny."))
    shown = {**echo(got), "reasoning_content": "[now {}]"}
    assert "reasoning_content" not in orjson.dumps(next_turn(store, shown, MORE)).decode()
    strange = {"role": "assistant", "content": "Never said.", "reasoning_content": "[now {}]"}
    assert next_turn(store, strange, MORE)[1] == strange
    told = next_turn(store, strange, MORE, steps="reasoning")
    assert told[1] == {"role": "assistant", "content": "Never said."}


class Broken(MemoryStore):
    def get(self, key: bytes) -> bytes | None:
        raise StoreFailure("the disk is full")

    async def keep(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
        raise StoreFailure("the disk is full")


@pytest.mark.parametrize("store", [None, Broken()], ids=["off", "broken"])
def test_without_a_memory_it_is_told_that_nothing_is_kept(store: Store | None) -> None:
    model = FakeAdapter(calling(("c1", "now", "{}")), saying("It is sunny."))
    adapter = wrapped(model, FakeShelf(w__now="sunny"))
    adapter = ServerTools(model, adapter.shelf, adapter.settings, store)
    got = answer(adapter, asked())
    assert (got.text, got.reason) == ("It is sunny.", "stop")
    assert got.notes == ["recall_not_kept"]
