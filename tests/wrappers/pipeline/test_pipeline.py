"""One adapter thinks, another answers: who is asked what, when, and what the client sees."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from adapters.protocol import (
    TURN,
    ChatRequest,
    Event,
    Finish,
    Opened,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from middleware.wrappers.pipeline import Pipeline, ReasonThenAnswer
from middleware.wrappers.pipeline.request import Rethink
from tests.support.adapters import FakeAdapter, Step
from tests.support.dialogue import OPENED, answer, assistant, rebuilt, request, user
from tests.support.fold import ask
from tests.wrappers.pipeline.pipelines import (
    ASKED,
    ROUNDS,
    after_rounds,
    notes,
    pipeline,
    receipt_of,
    text,
    thoughts,
    with_tools,
)


def test_the_thought_is_shown_and_stands_at_the_end_of_the_question() -> None:
    reasoner, answerer = (
        FakeAdapter(answer("Look it up.", "It is")),
        FakeAdapter(answer(text="Sunny.")),
    )
    events = ask(pipeline(reasoner, answerer), request(ASKED))
    assert thoughts(events) == "Look it up."
    assert text(events) == "Sunny."
    (question,) = answerer.last()
    assert question["content"].startswith("沈阳天气\n\n<thought>\nLook it up.\n</thought>\n")
    assert [type(event) for event in events].count(Opened) == 1
    assert isinstance(events[0], Opened)
    assert isinstance(events[-1], Finish)


def test_the_first_thought_leaves_as_soon_as_it_comes() -> None:
    reached: list[str] = []

    def slow(_: ChatRequest) -> Iterator[Step]:
        yield (OPENED, ReasoningDelta("first"))
        reached.append("second")
        yield ReasoningDelta("second")

    async def first() -> tuple[Event, ...]:
        adapter = ReasonThenAnswer(FakeAdapter(slow), FakeAdapter(answer(text="x")))
        async for batch in adapter.stream(request(ASKED)):
            return batch
        return ()

    batch = asyncio.run(first())
    assert isinstance(batch[1], ReasoningDelta)
    assert not reached


def told(name: str, events: Sequence[Event], diary: list[str]) -> FakeAdapter:
    """An adapter that writes down when it is opened, left and ended."""

    def tell(_: ChatRequest) -> Iterator[Step]:
        diary.append(f"{name} opened")
        try:
            for event in events:
                yield from (event, 0.0)
            diary.append(f"{name} read to the end")
        finally:
            diary.append(f"{name} closed")

    return FakeAdapter(usual=tell, name=name)


def watched(thinking: Sequence[Event]) -> tuple[ReasonThenAnswer, list[str]]:
    diary: list[str] = []
    answerer = told("answerer", answer(text="x"), diary)
    return ReasonThenAnswer(told("reasoner", thinking, diary), answerer), diary


def test_the_reasoner_is_closed_when_its_answer_begins_and_before_the_answerer_opens() -> None:
    adapter, diary = watched([*answer("t", "Answer")[:-1], TextDelta(" goes on"), Finish("stop")])
    ask(adapter, request(ASKED))
    assert diary[:3] == ["reasoner opened", "reasoner closed", "answerer opened"]


@pytest.mark.parametrize(("batches", "who"), [(1, "reasoner"), (3, "answerer")])
def test_leaving_closes_whoever_is_running(batches: int, who: str) -> None:
    adapter, diary = watched(answer("t"))

    async def leave() -> None:
        events = adapter.stream(request(ASKED))
        for _ in range(batches):
            await anext(events)
        await events.aclose()

    asyncio.run(leave())
    assert diary[-1] == f"{who} closed"
    assert f"{who} read to the end" not in diary


def test_usage_is_the_sum_and_its_parts() -> None:
    thinking = answer("t", usage=Usage(10, 20, cached=1, reasoning=20))
    answering = answer(text="x", usage=Usage(5, 7, extra={"a": 1}))
    events = ask(ReasonThenAnswer(FakeAdapter(thinking), FakeAdapter(answering)), request(ASKED))
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert finish.usage == Usage(
        15,
        27,
        1,
        None,
        20,
        {"a": 1},
        (("reasoner", thinking[-1].usage), ("answerer", answering[-1].usage)),  # type: ignore[union-attr]  # both end
    )
    assert notes(events) == []


@pytest.mark.parametrize(("thought", "tokens"), [("12345678", 2), ("123456789", 3), ("想一想", 3)])
def test_usage_of_a_reasoner_that_was_left_early_is_an_estimate(thought: str, tokens: int) -> None:
    thinking = answer(thought, "answer", usage=Usage(10, 20))
    answering = answer(text="x", usage=Usage(5, 7))
    reasoner = FakeAdapter(thinking)
    events = ask(ReasonThenAnswer(reasoner, FakeAdapter(answering)), request(ASKED))
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert finish.usage is not None
    asked = -(-sum(len(one["content"].encode()) for one in reasoner.last()) // 4)
    used = Usage(asked, tokens, reasoning=tokens)
    assert finish.usage.parts == (("reasoner", used), ("answerer", Usage(5, 7)))
    assert (finish.usage.prompt, finish.usage.completion) == (asked + 5, tokens + 7)
    assert finish.usage.reasoning == tokens
    (note,) = [note for note in receipt_of(events) if note.code == "usage_estimated"]
    assert f"{asked} and {tokens} tokens are estimates" in note.text


def test_an_answer_counts_the_same_however_much_of_it_is_read_at_once() -> None:
    thinking = answer("12345678", "answer", usage=Usage(10, 20))
    used = []
    for script in (thinking, [tuple(thinking)]):
        pair = FakeAdapter(script), FakeAdapter(answer(text="x", usage=Usage(5, 7)))
        finish = ask(ReasonThenAnswer(*pair), request(ASKED))[-1]
        assert isinstance(finish, Finish)
        used.append(finish.usage)
    assert used[0] == used[1]


def test_an_image_is_not_counted_as_its_address() -> None:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 9000}"}}
    asked = user([{"type": "text", "text": "What is it?"}, picture])
    pipeline = ReasonThenAnswer(
        FakeAdapter(answer("t", "answer")), FakeAdapter(answer(text="x")), Pipeline(vision=True)
    )
    finish = ask(pipeline, request(asked))[-1]
    assert isinstance(finish, Finish)
    assert finish.usage is not None
    assert finish.usage.prompt < 500


def test_without_figures_of_the_answerer_those_of_the_reasoner_remain() -> None:
    reasoner, answerer = (
        FakeAdapter(answer("t", "answer")),
        FakeAdapter(answer(text="x", usage=None)),
    )
    finish = ask(ReasonThenAnswer(reasoner, answerer), request(ASKED))[-1]
    assert isinstance(finish, Finish)
    assert finish.usage is not None
    assert finish.usage.parts[1] == ("answerer", None)


# Rounds of tools -------------------------------------------------------------------------------


def test_two_rounds_of_tools_are_one_run_of_the_reasoner() -> None:
    reasoner, answerer, _ = after_rounds()
    assert len(reasoner.asked) == 1
    assert answerer.asked[0].messages[0] == answerer.asked[2].messages[0]
    assert "thought 0" in answerer.last()[0]["content"]


def test_a_later_request_begins_with_the_earlier_one() -> None:
    reasoner, answerer, adapter = after_rounds()
    history = [message for messages in ROUNDS for message in messages]
    mint = iter(map(str, range(99)))
    for history_sent in (history, rebuilt(history, lambda: next(mint))):
        thanks = [*history_sent, assistant("5 and 7"), user("thanks")]
        ask(adapter, with_tools(request(*thanks)))
        assert list(answerer.asked[2].messages) == answerer.last()[:5]
    assert len(reasoner.asked) == 3
    assert "thought 2" in answerer.last()[-1]["content"]


@pytest.mark.parametrize(("rethink", "runs"), [("once", 1), ("on-results", 3), ("always", 3)])
def test_how_often_it_thinks(rethink: Rethink, runs: int) -> None:
    reasoner, answerer, _ = after_rounds(rethink=rethink)
    assert len(reasoner.asked) == runs
    assert (
        answerer.asked[1].messages == answerer.asked[2].messages[: len(answerer.asked[1].messages)]
    )
    last = answerer.last()[-1]
    assert last["role"] == ("tool" if runs == 1 else "user")
    if runs == 3:
        assert "thought 2" in last["content"]


def test_a_lost_thought_is_not_thought_again_but_named() -> None:
    reasoner, answerer = FakeAdapter(), FakeAdapter(answer(text="x"))
    events = ask(ReasonThenAnswer(reasoner, answerer), with_tools(request(*ROUNDS[0], *ROUNDS[1])))
    assert notes(events) == ["thought_lost"]
    assert not reasoner.asked
    assert answerer.last()[0] == ASKED


def test_the_answerer_is_not_sent_what_is_ours() -> None:
    _, answerer, _ = after_rounds()
    for message in answerer.last():
        assert not {TURN, "reasoning_content", "reasoning"} & message.keys()


def test_text_parts_get_the_thought_as_a_part() -> None:
    parts = [{"type": "text", "text": "What?"}]
    answerer = FakeAdapter(answer(text="x"))
    ask(ReasonThenAnswer(FakeAdapter(answer("t")), answerer), request(user(parts)))
    (question,) = answerer.last()
    assert question["content"][0] == parts[0]
    assert question["content"][1]["text"].startswith("<thought>\nt\n</thought>")
