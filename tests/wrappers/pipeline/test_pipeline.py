"""One adapter thinks, another answers: who is asked what, when, and what the client sees."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from adapters.errors import BadRequest, GatewayError, Truncated, Unavailable
from adapters.protocol import (
    TURN,
    Aside,
    ChatRequest,
    Event,
    Events,
    Finish,
    Json,
    Note,
    Noted,
    Opened,
    Planned,
    ReasoningDelta,
    TextDelta,
    ToolCallStart,
    Upstream,
    Usage,
)
from middleware.wrappers.pipeline import Pipeline, ReasonThenAnswer
from middleware.wrappers.pipeline.request import Rethink
from middleware.wrappers.pipeline.search import Finding, SearchFailure, Tavily
from middleware.wrappers.recall import MemoryStore, Recall
from tests.support.dialogue import (
    OPENED,
    Model,
    answer,
    ask,
    assistant,
    rebuilt,
    request,
    result,
    user,
)

ASKED = user("沈阳天气")
CALLED = ("toolu_1", "weather", '{"city":"沈阳"}')
TOOLS = ({"type": "function", "function": {"name": "weather", "description": "Tells it."}},)
AWAY = Unavailable("Upstream 'r' is away.")


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


def test_the_thought_is_shown_and_stands_at_the_end_of_the_question() -> None:
    reasoner, answerer = Model(answer("Look it up.", "It is")), Model(answer(text="Sunny."))
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

    class Slow(Model):
        async def stream(self, request: ChatRequest) -> Events:
            yield (OPENED, ReasoningDelta("first"))
            reached.append("second")
            yield (ReasoningDelta("second"),)

    async def first() -> tuple[Event, ...]:
        adapter = ReasonThenAnswer(Slow(), Model(answer(text="x")))
        async for batch in adapter.stream(request(ASKED)):
            return batch
        return ()

    batch = asyncio.run(first())
    assert isinstance(batch[1], ReasoningDelta)
    assert not reached


@dataclass
class Watched:
    """An adapter that writes down when it is opened, left and ended."""

    name: str
    events: Sequence[Event]
    diary: list[str] = field(default_factory=list)

    async def stream(self, request: ChatRequest) -> Events:
        self.diary.append(f"{self.name} opened")
        try:
            for event in self.events:
                yield (event,)
                await asyncio.sleep(0)
            self.diary.append(f"{self.name} read to the end")
        finally:
            self.diary.append(f"{self.name} closed")

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        return (Planned(self.name, "", {}),)


def watched(thinking: Sequence[Event]) -> tuple[ReasonThenAnswer, list[str]]:
    diary: list[str] = []
    answerer = Watched("answerer", answer(text="x"), diary)
    return ReasonThenAnswer(Watched("reasoner", thinking, diary), answerer), diary


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
    events = ask(ReasonThenAnswer(Model(thinking), Model(answering)), request(ASKED))
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
    reasoner = Model(thinking)
    events = ask(ReasonThenAnswer(reasoner, Model(answering)), request(ASKED))
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


def test_an_image_is_not_counted_as_its_address() -> None:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 9000}"}}
    asked = user([{"type": "text", "text": "What is it?"}, picture])
    pipeline = ReasonThenAnswer(
        Model(answer("t", "answer")), Model(answer(text="x")), Pipeline(vision=True)
    )
    finish = ask(pipeline, request(asked))[-1]
    assert isinstance(finish, Finish)
    assert finish.usage is not None
    assert finish.usage.prompt < 500


def test_without_figures_of_the_answerer_those_of_the_reasoner_remain() -> None:
    reasoner, answerer = Model(answer("t", "answer")), Model(answer(text="x", usage=None))
    finish = ask(ReasonThenAnswer(reasoner, answerer), request(ASKED))[-1]
    assert isinstance(finish, Finish)
    assert finish.usage is not None
    assert finish.usage.parts[1] == ("answerer", None)


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
    reasoner, answerer = Model(), Model(answer(text="x"))
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
    answerer = Model(answer(text="x"))
    ask(ReasonThenAnswer(Model(answer("t")), answerer), request(user(parts)))
    (question,) = answerer.last()
    assert question["content"][0] == parts[0]
    assert question["content"][1]["text"].startswith("<thought>\nt\n</thought>")


# What goes to whom -----------------------------------------------------------------------------


def test_the_reasoner_has_its_own_parameters_and_the_client_s_effort() -> None:
    reasoner, answerer = Model(answer("t")), Model(answer(text="x"))
    adapter = ReasonThenAnswer(reasoner, answerer, Pipeline(reasoner_fields={"max_tokens": 99}))
    sent = {"max_tokens": 50, "temperature": 0.5}
    ask(adapter, with_tools(request(ASKED), **sent, reasoning_effort="high"))
    assert reasoner.asked[0].params == {"max_tokens": 99, "reasoning_effort": "high"}
    assert reasoner.asked[0].tools == ()
    assert reasoner.asked[0].call.streamed
    assert answerer.asked[0].params == sent
    assert answerer.asked[0].tools == TOOLS
    assert not answerer.asked[0].call.streamed


def test_the_reasoner_is_told_of_the_tools_behind_the_system_prompt() -> None:
    reasoner, system = Model(answer("t")), {"role": "system", "content": "Be kind."}
    ask(ReasonThenAnswer(reasoner, Model(answer(text="x"))), with_tools(request(system, ASKED)))
    first, second, third = reasoner.last()
    assert (first, third) == (system, ASKED)
    assert second["content"].endswith("- weather: Tells it.")


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        (with_tools(request(ASKED), reasoning_effort="none"), 0),
        (replace(request(ASKED), extra={"thinking": {"type": "disabled"}}), 0),
        (replace(request(ASKED), params={"max_tokens": 5}), 0),
        (replace(request(ASKED), params={"max_completion_tokens": 32}), 0),
        (replace(request(ASKED), params={"max_tokens": 33}), 1),
        (with_tools(request(ASKED), max_tokens=5), 1),
        (request({"role": "system", "content": "x"}), 0),
        (request(ASKED, assistant("It is")), 0),
    ],
)
def test_when_there_is_nothing_to_think_about(asked: ChatRequest, runs: int) -> None:
    reasoner, answerer = Model(answer("t")), Model(answer(text="x"))
    events = ask(ReasonThenAnswer(reasoner, answerer), asked)
    assert len(reasoner.asked) == runs
    assert text(events) == "x"


def test_no_effort_is_the_answerer_s_too() -> None:
    answerer = Model(answer(text="x"))
    ask(ReasonThenAnswer(Model(), answerer), with_tools(request(ASKED), reasoning_effort="none"))
    assert answerer.asked[0].params == {"reasoning_effort": "none"}


PICTURE = user(
    [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "data:a"}}]
)


def test_a_blind_reasoner_is_told_of_an_image() -> None:
    reasoner, answerer = Model(answer("t")), Model(answer(text="x"))
    events = ask(ReasonThenAnswer(reasoner, answerer), request(PICTURE))
    assert reasoner.last()[1]["content"][1] == {"type": "text", "text": "[image]"}
    assert answerer.last()[0]["content"][:2] == PICTURE["content"]
    assert notes(events) == ["image_not_seen"]


def test_a_seeing_reasoner_gets_the_image() -> None:
    reasoner = Model(answer("t"))
    adapter = ReasonThenAnswer(reasoner, Model(answer(text="x")), Pipeline(vision=True))
    assert notes(ask(adapter, request(PICTURE))) == []
    assert reasoner.last()[1] == PICTURE


def test_the_separator_stands_between_thought_and_answer() -> None:
    adapter = ReasonThenAnswer(
        Model(answer("t")), Model(answer(text="x")), Pipeline(separator="\n---\n")
    )
    events = ask(adapter, request(ASKED))
    assert thoughts(events) == "t\n---\n"
    assert text(events) == "x"


def test_both_receipts_are_told() -> None:
    def noting(where: str) -> list[Event]:
        return [Opened((Note("dropped", where, ""),), Upstream("u"))]

    reasoner = Model([*noting("temperature"), *answer("t")[1:]])
    answerer = Model([*noting("seed"), *answer(text="x")[1:]])
    events = ask(ReasonThenAnswer(reasoner, answerer), request(ASKED))
    fields = [
        note.field
        for event in events
        if isinstance(event, Opened | Noted)
        for note in event.receipt
    ]
    assert fields == ["reasoner.temperature", "seed"]


# Failures --------------------------------------------------------------------------------------


def test_a_reasoner_that_fails_once_is_asked_again() -> None:
    reasoner, answerer = Model([AWAY], answer("t")), Model(answer(text="x"))
    events = ask(ReasonThenAnswer(reasoner, answerer), request(ASKED))
    assert thoughts(events) == "t"
    assert notes(events) == []


@pytest.mark.parametrize(
    ("failure", "runs"), [(AWAY, 2), (BadRequest("no"), 1), (Truncated("cut"), 1)]
)
def test_without_a_reasoner_the_answerer_answers_alone(failure: GatewayError, runs: int) -> None:
    reasoner, answerer = Model([failure], [failure]), Model(answer(text="x"))
    events = ask(ReasonThenAnswer(reasoner, answerer), request(ASKED))
    assert len(reasoner.asked) == runs
    assert notes(events) == ["reasoner_failed"]
    assert text(events) == "x"
    assert answerer.last() == [ASKED]


def test_a_thought_that_breaks_off_is_used_as_far_as_it_came() -> None:
    reasoner, answerer = Model([*answer("half")[:-1], AWAY]), Model(answer(text="x"))
    events = ask(ReasonThenAnswer(reasoner, answerer), request(ASKED))
    assert "half" in answerer.last()[0]["content"]
    assert notes(events) == ["reasoner_failed", "usage_estimated"]


def test_a_failure_can_be_made_an_error() -> None:
    reasoner, answerer = Model([AWAY], [AWAY]), Model(answer(text="x"))
    with pytest.raises(Unavailable):
        ask(
            ReasonThenAnswer(reasoner, answerer, Pipeline(reasoner_failure="error")), request(ASKED)
        )
    assert not answerer.asked


def test_what_the_answerer_refuses_is_not_thought_about() -> None:
    class Refusing(Model):
        def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
            raise BadRequest("no such thing")

    reasoner = Model(answer("t"))
    with pytest.raises(BadRequest, match="no such thing"):
        ask(ReasonThenAnswer(reasoner, Refusing()), request(ASKED))
    assert not reasoner.asked


def test_a_failing_answerer_fails() -> None:
    with pytest.raises(Unavailable):
        ask(ReasonThenAnswer(Model(answer("t")), Model([AWAY])), request(ASKED))


# Search ----------------------------------------------------------------------------------------


class Found(Tavily):
    """Finds one thing, or nothing."""

    def __init__(self, *queries: str, fails: bool = False) -> None:
        super().__init__(None)
        self.asked: list[str] = []
        self.fails = fails

    async def search(self, query: str) -> tuple[Finding, ...]:
        self.asked.append(query)
        if self.fails:
            raise SearchFailure("away")
        return (Finding("Weather", "http://w", "5℃", 1.0),)


def test_findings_reach_the_reasoner_and_the_annotations() -> None:
    reasoner, answerer = Model(answer("t")), Model(answer(text="x"))
    search = Found()
    adapter = ReasonThenAnswer(reasoner, answerer, Pipeline(search=search))
    events = ask(adapter, with_tools(request(ASKED)))
    assert search.asked == ["沈阳天气"]
    assert reasoner.last()[-1]["content"].startswith("沈阳天气\n\n<search_results>\n[1] Weather")
    assert "search_results" not in answerer.last()[0]["content"]
    (cited,) = (event for event in events if isinstance(event, Aside))
    assert cited.value[0]["url_citation"]["url"] == "http://w"
    assert thoughts(events) == "t"


def test_findings_may_be_shown() -> None:
    search = Found()
    adapter = ReasonThenAnswer(
        Model(answer("t")), Model(answer(text="x")), Pipeline(search=search, search_show=True)
    )
    events = ask(adapter, with_tools(request(ASKED)))
    assert thoughts(events) == "[1] Weather\nhttp://w\n5℃\n\nt"
    assert [type(event) for event in events].count(Opened) == 1


@pytest.mark.parametrize(
    ("when", "tools", "asked"),
    [
        ("tools", True, 1),
        ("tools", False, 0),
        ("always", False, 1),
        ("never", True, 0),
    ],
)
def test_when_it_searches(when: Any, tools: bool, asked: int) -> None:
    search = Found()
    adapter = ReasonThenAnswer(
        Model(answer("t")), Model(answer(text="x")), Pipeline(search=search, search_when=when)
    )
    ask(adapter, with_tools(request(ASKED)) if tools else request(ASKED))
    assert len(search.asked) == asked


def test_it_does_not_search_for_results() -> None:
    search = Found()
    after_rounds(search=search, rethink="on-results")
    assert len(search.asked) == 1


def test_a_failing_search_is_a_note() -> None:
    adapter = ReasonThenAnswer(
        Model(answer("t")), Model(answer(text="x")), Pipeline(search=Found(fails=True))
    )
    events = ask(adapter, with_tools(request(ASKED)))
    assert notes(events) == ["search_failed"]
    assert thoughts(events) == "t"


# The plan --------------------------------------------------------------------------------------


def test_the_plan_shows_both_calls() -> None:
    reasoner, answerer = Model(), Model()
    planned = ReasonThenAnswer(reasoner, answerer).plan(with_tools(request(ASKED)))
    assert len(planned) == 2
    follow_up = with_tools(request(*ROUNDS[0], *ROUNDS[1]))
    assert len(ReasonThenAnswer(reasoner, answerer).plan(follow_up)) == 1
    assert not reasoner.asked


def test_calls_are_the_answerer_s() -> None:
    reasoner, answerer = Model(answer("t")), Model(answer("own", "Let me see.", [CALLED]))
    events = ask(ReasonThenAnswer(reasoner, answerer), with_tools(request(ASKED)))
    (start,) = (event for event in events if isinstance(event, ToolCallStart))
    assert (start.index, start.id, start.name) == (0, "toolu_1", "weather")
    assert thoughts(events) == "town"
