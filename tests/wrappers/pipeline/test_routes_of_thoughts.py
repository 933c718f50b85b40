"""What goes to the reasoner and what to the answerer; failures, searches and the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adapters.errors import BadRequest, GatewayError, Truncated, Unavailable
from adapters.protocol import (
    Aside,
    ChatRequest,
    Event,
    Noted,
    Opened,
    Planned,
    ToolCallStart,
    Upstream,
)
from adapters.receipts import Note, OwnCode
from adapters.shared.search import Finding, SearchFailure
from adapters.tavily import Tavily
from middleware.wrappers.pipeline import Pipeline, ReasonThenAnswer
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import answer, assistant, request, user
from tests.support.fold import ask
from tests.wrappers.pipeline.pipelines import (
    ASKED,
    CALLED,
    ROUNDS,
    TOOLS,
    after_rounds,
    notes,
    text,
    thoughts,
    with_tools,
)

AWAY = Unavailable("Upstream 'r' is away.")


# What goes to whom -----------------------------------------------------------------------------


def test_the_reasoner_has_its_own_parameters_and_the_client_s_effort() -> None:
    reasoner, answerer = FakeAdapter(answer("t")), FakeAdapter(answer(text="x"))
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
    reasoner, system = FakeAdapter(answer("t")), {"role": "system", "content": "Be kind."}
    ask(
        ReasonThenAnswer(reasoner, FakeAdapter(answer(text="x"))),
        with_tools(request(system, ASKED)),
    )
    first, second, third = reasoner.last()
    assert (first, third) == (system, ASKED)
    assert second["content"].endswith("- weather: Tells it.")


def test_a_question_is_one_with_words_of_the_system_behind_it() -> None:
    """Claude Code says there which skills it has."""
    reasoner, answerer = FakeAdapter(answer("t")), FakeAdapter(answer(text="x"))
    behind = {"role": "system", "content": "Skills: none."}
    ask(ReasonThenAnswer(reasoner, answerer), request(ASKED, behind))
    assert reasoner.last()[-2:] == [ASKED, behind]
    asked, last = answerer.last()
    assert asked["content"].startswith(ASKED["content"])
    assert "<thought>\nt\n</thought>" in asked["content"]
    assert last == behind


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
    reasoner, answerer = FakeAdapter(answer("t")), FakeAdapter(answer(text="x"))
    events = ask(ReasonThenAnswer(reasoner, answerer), asked)
    assert len(reasoner.asked) == runs
    assert text(events) == "x"


def test_no_effort_is_the_answerer_s_too() -> None:
    answerer = FakeAdapter(answer(text="x"))
    ask(
        ReasonThenAnswer(FakeAdapter(), answerer),
        with_tools(request(ASKED), reasoning_effort="none"),
    )
    assert answerer.asked[0].params == {"reasoning_effort": "none"}


PICTURE = user(
    [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "data:a"}}]
)


def test_a_blind_reasoner_is_told_of_an_image() -> None:
    reasoner, answerer = FakeAdapter(answer("t")), FakeAdapter(answer(text="x"))
    events = ask(ReasonThenAnswer(reasoner, answerer), request(PICTURE))
    assert reasoner.last()[1]["content"][1] == {"type": "text", "text": "[image]"}
    assert answerer.last()[0]["content"][:2] == PICTURE["content"]
    assert notes(events) == ["image_not_seen"]


def test_a_seeing_reasoner_gets_the_image() -> None:
    reasoner = FakeAdapter(answer("t"))
    adapter = ReasonThenAnswer(reasoner, FakeAdapter(answer(text="x")), Pipeline(vision=True))
    assert notes(ask(adapter, request(PICTURE))) == []
    assert reasoner.last()[1] == PICTURE


def test_the_separator_stands_between_thought_and_answer() -> None:
    adapter = ReasonThenAnswer(
        FakeAdapter(answer("t")), FakeAdapter(answer(text="x")), Pipeline(separator="\n---\n")
    )
    events = ask(adapter, request(ASKED))
    assert thoughts(events) == "t\n---\n"
    assert text(events) == "x"


def test_both_receipts_are_told() -> None:
    def noting(where: str) -> list[Event]:
        return [Opened((Note(OwnCode("dropped"), where, ""),), Upstream("u"))]

    reasoner = FakeAdapter([*noting("temperature"), *answer("t")[1:]])
    answerer = FakeAdapter([*noting("seed"), *answer(text="x")[1:]])
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
    reasoner, answerer = FakeAdapter([AWAY], answer("t")), FakeAdapter(answer(text="x"))
    events = ask(ReasonThenAnswer(reasoner, answerer), request(ASKED))
    assert thoughts(events) == "t"
    assert notes(events) == []


@pytest.mark.parametrize(
    ("failure", "runs"), [(AWAY, 2), (BadRequest("no"), 1), (Truncated("cut"), 1)]
)
def test_without_a_reasoner_the_answerer_answers_alone(failure: GatewayError, runs: int) -> None:
    reasoner, answerer = FakeAdapter([failure], [failure]), FakeAdapter(answer(text="x"))
    events = ask(ReasonThenAnswer(reasoner, answerer), request(ASKED))
    assert len(reasoner.asked) == runs
    assert notes(events) == ["reasoner_failed"]
    assert text(events) == "x"
    assert answerer.last() == [ASKED]


def test_a_thought_that_breaks_off_is_used_as_far_as_it_came() -> None:
    reasoner, answerer = FakeAdapter([*answer("half")[:-1], AWAY]), FakeAdapter(answer(text="x"))
    events = ask(ReasonThenAnswer(reasoner, answerer), request(ASKED))
    assert "half" in answerer.last()[0]["content"]
    assert notes(events) == ["reasoner_failed", "usage_estimated"]


def test_a_failure_can_be_made_an_error() -> None:
    reasoner, answerer = FakeAdapter([AWAY], [AWAY]), FakeAdapter(answer(text="x"))
    with pytest.raises(Unavailable):
        ask(
            ReasonThenAnswer(reasoner, answerer, Pipeline(reasoner_failure="error")), request(ASKED)
        )
    assert not answerer.asked


def test_what_the_answerer_refuses_is_not_thought_about() -> None:
    class Refusing(FakeAdapter):
        def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
            raise BadRequest("no such thing")

    reasoner = FakeAdapter(answer("t"))
    with pytest.raises(BadRequest, match="no such thing"):
        ask(ReasonThenAnswer(reasoner, Refusing()), request(ASKED))
    assert not reasoner.asked


def test_a_failing_answerer_fails() -> None:
    with pytest.raises(Unavailable):
        ask(ReasonThenAnswer(FakeAdapter(answer("t")), FakeAdapter([AWAY])), request(ASKED))


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
    reasoner, answerer = FakeAdapter(answer("t")), FakeAdapter(answer(text="x"))
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
        FakeAdapter(answer("t")),
        FakeAdapter(answer(text="x")),
        Pipeline(search=search, search_show=True),
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
        FakeAdapter(answer("t")),
        FakeAdapter(answer(text="x")),
        Pipeline(search=search, search_when=when),
    )
    ask(adapter, with_tools(request(ASKED)) if tools else request(ASKED))
    assert len(search.asked) == asked


def test_it_does_not_search_for_results() -> None:
    search = Found()
    after_rounds(search=search, rethink="on-results")
    assert len(search.asked) == 1


def test_a_failing_search_is_a_note() -> None:
    adapter = ReasonThenAnswer(
        FakeAdapter(answer("t")), FakeAdapter(answer(text="x")), Pipeline(search=Found(fails=True))
    )
    events = ask(adapter, with_tools(request(ASKED)))
    assert notes(events) == ["search_failed"]
    assert thoughts(events) == "t"


# The plan --------------------------------------------------------------------------------------


def test_the_plan_shows_both_calls() -> None:
    reasoner, answerer = FakeAdapter(), FakeAdapter()
    planned = ReasonThenAnswer(reasoner, answerer).plan(with_tools(request(ASKED)))
    assert len(planned) == 2
    follow_up = with_tools(request(*ROUNDS[0], *ROUNDS[1]))
    assert len(ReasonThenAnswer(reasoner, answerer).plan(follow_up)) == 1
    assert not reasoner.asked


def test_calls_are_the_answerer_s() -> None:
    reasoner, answerer = (
        FakeAdapter(answer("t")),
        FakeAdapter(answer("own", "Let me see.", [CALLED])),
    )
    events = ask(ReasonThenAnswer(reasoner, answerer), with_tools(request(ASKED)))
    (start,) = (event for event in events if isinstance(event, ToolCallStart))
    assert (start.index, start.id, start.name) == (0, "toolu_1", "weather")
    assert thoughts(events) == "town"
