"""Recall by its edges: parallel calls, images, stores that fail, and what is left alone."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace

import orjson
import pytest

from adapters.protocol import TURN, ChatRequest, Event, Finish, Json, Noted, Opened
from adapters.receipts import Note
from adapters.shared.history import settle
from middleware.wrappers.recall import MemoryStore, Recall, fingerprint
from middleware.wrappers.recall.store import Entry, StoreFailure
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import answer, assistant, rebuilt, request, result, user
from tests.support.fold import ask
from tests.wrappers.recall.turns import ASKED, BLOCKS, CALLED, after_call


class Broken(MemoryStore):
    """A store that cannot be used."""

    def get(self, key: bytes) -> bytes | None:
        raise StoreFailure("the disk is gone")

    async def keep(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
        raise StoreFailure("the disk is gone")


def codes(events: Sequence[Event]) -> list[str]:
    (opened,) = (event for event in events if isinstance(event, Opened))
    return [note.code for note in opened.receipt]


PAIR = [("t1", "weather", '{"city":"沈阳"}'), ("t2", "weather", '{"city":"大连"}')]
ROUND = [assistant("", *PAIR), result("t1", "5℃"), result("t2", "7℃")]


def test_calls_of_one_name_come_back_with_their_own_inputs_and_results() -> None:
    model = FakeAdapter(answer("both", said=PAIR), answer("done", "5 and 7"), answer())
    recall = Recall(model, MemoryStore())
    mint = map(str, itertools.count())
    ask(recall, request(ASKED))
    ask(recall, request(ASKED, *ROUND))
    second = [*rebuilt([ASKED, *ROUND], lambda: next(mint)), assistant("5 and 7"), user("thanks")]
    assert second[1]["tool_calls"][0]["function"]["arguments"] == '{"city": "\\u5927\\u8fde"}'
    ask(recall, request(*second))
    assert model.last()[:4] == list(model.asked[1].messages)
    assert model.last()[4]["reasoning_content"] == "done"


def test_what_is_put_back_is_the_same_object_in_every_turn() -> None:
    before = [one for at in range(4) for one in (user(f"q{at}"), assistant(f"a{at}"))]
    model = FakeAdapter(answer("both", said=PAIR), answer("done", "5 and 7"), answer(), answer())
    recall = Recall(model, MemoryStore())
    mint = map(str, itertools.count())
    ask(recall, request(*before, ASKED))
    ask(recall, request(*before, ASKED, *ROUND))
    # The door gives a message that was settled before as the same object again.
    settled, _ = settle(rebuilt([*before, ASKED, *ROUND], lambda: next(mint)))
    sent = [*settled, assistant("5 and 7"), user("thanks")]
    ask(recall, request(*sent))
    ask(recall, request(*sent, assistant("a"), user("more")))
    first, second = model.asked[-2].messages, model.asked[-1].messages
    assert first[9]["reasoning_content"] == "both"
    assert [one["content"] for one in first[10:12]] == ["5℃", "7℃"]
    assert [*map(id, second[:12])] == [*map(id, first[:12])]
    assert second[12] is first[12]


def test_calls_and_results_are_the_clients_where_nothing_was_thought() -> None:
    model = FakeAdapter(answer(said=PAIR), answer(text="5 and 7"), answer())
    recall = Recall(model, MemoryStore())
    ask(recall, request(ASKED))
    ask(recall, request(ASKED, *ROUND))
    mint = map(str, itertools.count())
    second = [*rebuilt([ASKED, *ROUND], lambda: next(mint)), assistant("5 and 7")]
    events = ask(recall, request(*second, user("thanks")))
    assert model.last() == [*second, user("thanks")]
    assert codes(events) == []


def test_results_of_another_branch_are_not_put_back() -> None:
    model = FakeAdapter(answer("both", said=PAIR), answer(), answer())
    recall = Recall(model, MemoryStore())
    ask(recall, request(ASKED))
    ask(recall, request(ASKED, *ROUND))
    same = [assistant("", *PAIR), result("t1", "7℃"), result("t2", "7℃")]
    ask(recall, request(ASKED, *same))
    assert [message["content"] for message in model.last()[2:]] == ["7℃", "7℃"]


def test_a_repeated_conversation_is_told_apart_by_its_ids() -> None:
    model = FakeAdapter(
        answer("one", said=[("id1", "f", "{}")]),
        answer("two", said=[("id2", "f", "{}")]),
        *([answer()] * 3),
    )
    recall = Recall(model, MemoryStore())
    ask(recall, request(ASKED))
    ask(recall, request(ASKED))
    for sent, thought in (("id1", "one"), ("id2", "two"), ("new", "two")):
        ask(recall, request(ASKED, assistant(None, (sent, "f", "{}")), result(sent, "1")))
        assert model.last()[1]["reasoning_content"] == thought


def picture(url: str) -> Json:
    return user(
        [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": url}}]
    )


def test_an_image_may_be_replaced_by_a_word_but_not_by_another_image() -> None:
    model = FakeAdapter(answer("t", said=[("id", "f", "{}")]), *([answer()] * 3))
    recall = Recall(model, MemoryStore())
    ask(recall, request(picture("data:a")))
    for question, found in (
        (picture("data:a"), True),
        (user("What?\n[image]"), True),
        (picture("data:b"), False),
    ):
        ask(recall, request(question, assistant(None, ("id", "f", "{}")), result("id", "1")))
        assert ("reasoning_content" in model.last()[1]) is found


def test_nothing_is_kept_of_an_answer_the_client_can_say_whole() -> None:
    kept: list[Entry] = []

    class Counting(MemoryStore):
        async def keep(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
            kept.extend(entries)

    ask(Recall(FakeAdapter(answer(text="hello")), Counting()), request(user("hi")))
    assert not kept


def test_it_is_kept_before_the_end_is_told() -> None:
    store = MemoryStore()
    model = FakeAdapter(answer("t", said=[CALLED]), answer())

    async def second_while_first_ends() -> None:
        recall = Recall(model, store)
        async for batch in recall.stream(request(ASKED)):
            if isinstance(batch[-1], Finish):
                turn = request(ASKED, assistant(None, CALLED), result("toolu_1", "5"))
                async for _ in recall.stream(turn):
                    pass

    asyncio.run(second_while_first_ends())
    assert model.last()[1]["reasoning_content"] == "t"


def test_a_stream_without_end_is_not_kept() -> None:
    model = FakeAdapter([*answer("t", said=[CALLED])[:-1], ValueError("cut")], answer())
    recall = Recall(model, MemoryStore())
    with pytest.raises(ValueError, match="cut"):
        ask(recall, request(ASKED))
    turn = assistant(None, CALLED)
    ask(recall, request(ASKED, turn, result("toolu_1", "5")))
    assert model.last()[1] == turn


def test_a_store_that_fails_is_a_note() -> None:
    model = FakeAdapter(answer("t", said=[CALLED]))
    turn = assistant("x")
    events = ask(Recall(model, Broken()), request(ASKED, turn, user("b")))
    opened, noted = events[0], events[-2]
    assert isinstance(opened, Opened)
    assert [note.code for note in opened.receipt] == ["recall_unavailable"]
    assert isinstance(noted, Noted)
    assert [note.code for note in noted.receipt] == ["recall_not_kept"]
    assert isinstance(noted.receipt[0], Note)
    assert isinstance(events[-1], Finish)
    assert model.last()[1] == turn


def test_what_cannot_need_a_memory_passes_untouched() -> None:
    looked: list[bytes] = []

    class Looking(MemoryStore):
        def get(self, key: bytes) -> bytes | None:
            looked.append(key)
            return super().get(key)

    def looks(asked: ChatRequest, thinks: bool) -> int:
        looked.clear()
        ask(Recall(FakeAdapter(answer()), Looking(), thinks=lambda _: thinks), asked)
        return len(looked)

    first = request(user("a"))
    chat = request(user("a"), assistant("b"), user("c"))
    called = request(ASKED, assistant(None, CALLED), result("toolu_1", "5"))
    assert looks(first, thinks=False) == 0
    for asked in (chat, called):
        # Whether there was ever a thought nobody asked for.
        assert looks(asked, thinks=False) == 1
        assert looks(asked, thinks=True) > 1


def test_a_thought_nobody_asked_for_is_remembered_all_the_same() -> None:
    model = FakeAdapter(answer("need it", said=[CALLED]), answer(), answer())
    recall = Recall(model, MemoryStore(), thinks=lambda _: False)
    ask(recall, request(ASKED))
    ask(recall, request(ASKED, assistant(None, CALLED), result("toolu_1", "5")))
    assert model.last()[1]["reasoning_content"] == "need it"
    untouched = replace(request(ASKED, assistant(None, CALLED), result("toolu_1", "5")), model="b")
    ask(recall, untouched)
    assert model.last() == list(untouched.messages)


@pytest.mark.parametrize("surprised", [0, 1, 2])
def test_a_thought_nobody_asked_for_changes_no_other_conversation(surprised: int) -> None:
    said = [("up_1", "weather", "{}")]
    model = FakeAdapter()
    recall = Recall(model, MemoryStore(), thinks=lambda _: False)
    turn = assistant(None, ("up_1", "weather", "{}"))
    minted = assistant(None, ("new", "weather", "{}"))
    for step, (heard, messages) in enumerate(
        [
            (answer(text="Let me look.", said=said), [ASKED]),
            (answer(), [ASKED, turn, result("up_1", "5")]),
            (answer(), [ASKED, minted, result("new", "5")]),
        ]
    ):
        if step == surprised:
            model.answers.append(answer("unasked", "Hi."))
            ask(recall, request(user("hello")))
        model.answers.append(heard)
        assert codes(ask(recall, request(*messages))) == []
        assert model.last() == messages


def test_an_alike_conversation_that_thought_lends_nothing_to_one_that_did_not() -> None:
    for asked in (True, False):
        model = FakeAdapter(
            answer(said=[("id1", "f", "{}")]), answer("t", said=[("id2", "f", "{}")])
        )
        model.answers += [answer(), answer()]
        recall = Recall(model, MemoryStore(), thinks=[lambda _: False, lambda _: True][asked])
        ask(recall, request(ASKED))
        ask(recall, request(ASKED))
        for identity, thought in (("id1", None), ("id2", "t")):
            echo = (ASKED, assistant(None, (identity, "f", "{}")), result(identity, "1"))
            ask(recall, request(*echo))
            assert model.last()[1]["tool_calls"][0]["id"] == identity
            assert model.last()[1].get("reasoning_content") == thought


THINKING, BETWEEN = BLOCKS["content"][0], BLOCKS["content"][1]
CALL = BLOCKS["content"][2]
TEXT: Json = {"type": "text", "text": "Let me look."}


@pytest.mark.parametrize(
    ("blocks", "kept"),
    [
        ([THINKING, TEXT, CALL], [THINKING, CALL]),
        # Signed thoughts follow each other as they did, or they are refused.
        ([THINKING, TEXT, BETWEEN, TEXT, CALL], [THINKING, TEXT, BETWEEN, CALL]),
    ],
)
def test_text_that_the_client_left_out_stays_out(blocks: list[Json], kept: list[Json]) -> None:
    turn = {"role": "assistant", "content": blocks}
    text = "Let me look." * blocks.count(TEXT)
    for sent, expected in ((None, kept), ("", kept), (text, blocks)):
        first = answer(text=text, said=[CALLED], turn=turn)
        model = after_call(assistant(sent, CALLED), result("toolu_1", "5℃"), first=first)
        assert model.last()[1][TURN]["content"] == expected
        assert model.last()[1]["content"] == sent


@pytest.mark.parametrize("kind", ["text", "server_tool_use"])
def test_a_turn_of_its_own_shape_without_thoughts_is_the_clients(kind: str) -> None:
    turn = {"role": "assistant", "content": [CALL, {**TEXT, "type": kind}]}
    first = answer(text="Let me look.", said=[CALLED], turn=turn)
    echo = assistant(None, CALLED)
    assert after_call(echo, result("toolu_1", "5℃"), first=first).last()[1] == echo


def test_what_was_put_back_is_named() -> None:
    model = FakeAdapter(answer("one", said=[CALLED]), answer("two", "5℃"), *[answer()] * 2)
    recall = Recall(model, MemoryStore())
    ask(recall, request(ASKED))
    turns: list[Json] = [ASKED, assistant(None, CALLED), result("toolu_1", "5℃")]
    assert codes(ask(recall, request(*turns))) == ["thoughts_restored"]
    turns += [assistant("5℃"), user("thanks")]
    (opened, *_) = ask(recall, request(*turns))
    assert isinstance(opened, Opened)
    ((code, field, text),) = opened.receipt
    assert (code, field) == ("thoughts_restored", "")
    assert "messages[1], messages[3]" in text
    for position, thought in ((1, "mine"), (3, "mine too")):
        turns[position] = {**turns[position], "reasoning_content": thought}
    assert codes(ask(recall, request(*turns))) == []


def test_the_plan_shows_what_would_be_put_back() -> None:
    model = FakeAdapter(answer("need it", said=[CALLED]))
    recall = Recall(model, MemoryStore())
    ask(recall, request(ASKED))
    (planned,) = recall.plan(request(ASKED, assistant(None, CALLED), result("toolu_1", "5")))
    assert planned.body["messages"][1]["reasoning_content"] == "need it"


def test_the_request_is_not_changed() -> None:
    model = FakeAdapter(answer("t", said=[CALLED]), answer())
    recall = Recall(model, MemoryStore())
    ask(recall, request(ASKED))
    messages = (ASKED, assistant(None, ("new", *CALLED[1:])), result("new", "5"))
    before = orjson.dumps(messages)
    ask(recall, request(*messages))
    assert orjson.dumps(messages) == before


def test_long_arguments_are_read_and_not_remembered() -> None:
    before = fingerprint._remembered.cache_info()
    values = [
        fingerprint.argument_values(f'{{"b": 1.0, "a": "{number}{"x" * 3000}"}}')
        for number in range(20)
    ]
    assert values[7] == f'{{"a":"7{"x" * 3000}","b":1}}'
    assert fingerprint._remembered.cache_info() == before
    fingerprint.argument_values('{"a": 1}')
    assert fingerprint._remembered.cache_info() != before


@pytest.mark.parametrize("depth", [300, 1100, 100_000])
def test_arguments_of_any_depth_are_compared_as_they_are(depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    assert fingerprint.argument_values(deep) == deep


def test_a_long_conversation_is_looked_up_a_bounded_number_of_times() -> None:
    looked: list[bytes] = []

    class Looking(MemoryStore):
        def get(self, key: bytes) -> bytes | None:
            looked.append(key)
            return super().get(key)

    turns = [one for _ in range(1000) for one in (user("a"), assistant("b"))]
    ask(Recall(FakeAdapter(answer()), Looking()), request(*turns, user("c")))
    assert len(looked) < 200
