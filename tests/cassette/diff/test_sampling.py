"""A live model asked what was recorded: what is asked, what is kept, where it stops."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pytest

from adapters.errors import RateLimited
from adapters.protocol import Adapter, Finish, Json, TextDelta, ToolCallDelta, ToolCallStart, Usage
from middleware.cassettes.cassette import Cassette, CassetteTurn, RecordedAnswer
from middleware.cassettes.diff.outcome import NOISE, TurnDiff
from middleware.cassettes.diff.rules import DiffRules
from middleware.cassettes.diff.samples import (
    AnswerCache,
    Answers,
    LiveQuestion,
    Survey,
    answers_to,
    ask_model,
    askable,
    failures,
)
from middleware.routing import Routes
from middleware.wrappers.route import Route
from tests.cassette.deciding import ASK, failed, said, turn
from tests.support.adapters import FakeAdapter, Wait
from tests.support.door import OPENED

BOOK, FIND = (said(None, (name, {"seat": 1, "words": "x"})) for name in ("book", "find"))


class Live:
    """Answers by a script for each model, over and over, and keeps what it was asked."""

    def __init__(self, **answers: Sequence[RecordedAnswer]) -> None:
        self.asked: list[Json] = []
        self._answers = {model: cycle(said) for model, said in answers.items()}

    async def ask(self, body: Json) -> RecordedAnswer:
        self.asked.append(body)
        await asyncio.sleep(0)
        return next(self._answers[body["model"]])


@dataclass
class Round:
    """One run of questions."""

    ask: Callable[[Json], Awaitable[RecordedAnswer]]
    cache: AnswerCache
    most_failed: float = math.inf
    answers: Answers = field(default_factory=dict)

    async def run(self, questions: Iterable[LiveQuestion]) -> None:
        self.answers = await answers_to(questions, self.ask, self.cache, self.most_failed)

    @property
    def failed(self) -> int:
        return failures(self.answers)


def texts(*texts: str) -> list[CassetteTurn]:
    return [
        turn(at, BOOK, messages=[{"role": "user", "content": text}])
        for at, text in enumerate(texts, 1)
    ]


def survey(turns: Sequence[CassetteTurn], count: int = 1, baseline: bool = False) -> Survey:
    return Survey(turns, "new", str.upper, count, baseline)


def outcome(asking: Round, asked: Survey) -> list[TurnDiff]:
    asyncio.run(asking.run(asked.questions()))
    return list(asked.outcome(asking.answers, DiffRules()))


def test_every_ask_is_asked_with_its_own_history(tmp_path: Path) -> None:
    live = Live(new=[BOOK])
    turns = texts("a", "b")
    found = outcome(Round(live.ask, AnswerCache(tmp_path)), survey(turns))
    assert live.asked == [each.body | {"model": "new"} for each in turns]
    assert [(each.turn, each.verdict.word, each.agreement) for each in found] == [
        (1, "same", "1/1"),
        (2, "same", "1/1"),
    ]


def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    live = Live(new=[BOOK], old=[FIND])
    turns = texts("a", "b", "a")
    for count, baseline, asked in (
        (1, False, 2),  # equal asks are one question
        (1, False, 2),
        (3, False, 6),
        (3, True, 12),
        (3, True, 12),
    ):
        outcome(Round(live.ask, AnswerCache(tmp_path)), survey(turns, count, baseline))
        assert len(live.asked) == asked


def test_another_upstream_behind_the_name_is_asked(tmp_path: Path) -> None:
    live = Live(new=[BOOK])
    for name, asked in (("one", 1), ("two", 2), ("one", 2)):
        one = Survey(texts("a"), "new", {"new": name}.__getitem__)
        outcome(Round(live.ask, AnswerCache(tmp_path)), one)
        assert len(live.asked) == asked


class PowerCut(Exception):
    """Something that nobody expects."""


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    live = Live(new=[BOOK])

    async def interrupted(body: Json) -> RecordedAnswer:
        if len(live.asked) == 6:
            raise PowerCut
        return await live.ask(body)

    asked = survey(texts("a"), 10)
    with pytest.raises(PowerCut):
        asyncio.run(Round(interrupted, AnswerCache(tmp_path)).run(asked.questions()))
    kept = AnswerCache(tmp_path)
    answered = [each for each in asked.questions() if kept.find(each.key)]
    assert 3 <= len(answered) <= 6
    live.asked.clear()
    outcome(Round(live.ask, kept), asked)
    assert len(live.asked) == 10 - len(answered)


@pytest.mark.parametrize("kept", [b"", b'{"status": 200, "mess', b"[]", b'{"key": 1}'])
def test_an_answer_that_was_cut_off_is_none(tmp_path: Path, kept: bytes) -> None:
    live = Live(new=[BOOK])
    outcome(Round(live.ask, AnswerCache(tmp_path)), survey(texts("a", "b")))
    next(tmp_path.iterdir()).write_bytes(kept)
    outcome(Round(live.ask, AnswerCache(tmp_path)), survey(texts("a", "b")))
    assert len(live.asked) == 3


def test_where_nothing_can_be_kept_it_is_asked_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    live = Live(new=[BOOK])
    (found,) = outcome(Round(live.ask, AnswerCache(tmp_path / "file")), survey(texts("a")))
    assert found.counted == "same"


def test_failures_are_not_kept_and_are_left_out(tmp_path: Path) -> None:
    live = Live(new=[BOOK, failed(), BOOK, failed()])
    asking = Round(live.ask, AnswerCache(tmp_path))
    (found,) = outcome(asking, survey(texts("a"), 4))
    assert (found.verdict.word, found.agreement, asking.failed) == ("same", "2/2", 2)
    outcome(Round(live.ask, AnswerCache(tmp_path)), survey(texts("a"), 4))
    assert len(live.asked) == 6


def test_a_turn_without_any_answer_is_broken(tmp_path: Path) -> None:
    (found,) = outcome(
        Round(Live(new=[failed()]).ask, AnswerCache(tmp_path)), survey(texts("a"), 2)
    )
    assert (found.counted, found.agreement) == ("broken", "0/2")


@pytest.mark.parametrize(
    ("most_failed", "asked"),
    [(0, 4), (6, 10)],
)
def test_it_stops_where_going_on_would_only_cost(
    tmp_path: Path, most_failed: int, asked: int
) -> None:
    """What is on its way then comes to its end."""
    live = Live(new=[failed()])
    asking = Round(live.ask, AnswerCache(tmp_path), most_failed)
    found = outcome(asking, survey(texts(*map(str, range(20)))))
    assert abs(len(live.asked) - asked) <= 1
    assert found[-1].counted == "broken"
    assert "not asked: too many" in str(found[-1].verdict.differences[0].now)
    assert asking.failed > most_failed


def test_only_a_few_are_asked_at_a_time(tmp_path: Path) -> None:
    running, most = 0, 0

    async def ask(_: Json) -> RecordedAnswer:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return BOOK

    outcome(Round(ask, AnswerCache(tmp_path)), survey(texts(*"abcdefghij"), 2))
    assert most == 4


def test_noise_of_the_old_model_is_no_change(tmp_path: Path) -> None:
    for at, (new, word, note) in enumerate(
        (([BOOK, FIND], "same", NOISE), ([FIND], "different", ""))
    ):
        live = Live(new=new, old=[FIND, BOOK])
        (found,) = outcome(
            Round(live.ask, AnswerCache(tmp_path / str(at))), survey(texts("a"), 10, True)
        )
        assert (found.counted, found.note, found.baseline) == (word, note, "5/10")
        assert found.verdict.word == "different"


def test_only_turns_with_a_decision_are_asked() -> None:
    vectors = CassetteTurn(3, {}, RecordedAnswer(body={}), operation="embeddings")
    assert [one.number for one in askable([turn(1, BOOK), turn(2, failed()), vectors])] == [1]


def through(adapter: Adapter) -> Callable[[Json], RecordedAnswer]:
    routes = Routes({"new": Route(adapter, "upstream")}, ())
    return lambda body: asyncio.run(ask_model(routes, Cassette(), {**ASK, "model": "new", **body}))


def test_answers_come_through_the_gateways_own_route() -> None:
    call = (ToolCallStart(0, "c", "book"), ToolCallDelta(0, '{"seat":1}'))
    fake = FakeAdapter((OPENED, *call, Finish("tool_calls", Usage(3, 4))))
    answer = through(fake)({"stream": True})
    assert (answer.status, answer.finish_reason) == (200, "tool_calls")
    assert answer.message is not None
    assert answer.message["tool_calls"][0]["function"]["arguments"] == '{"seat":1}'
    assert answer.usage is not None
    assert answer.usage["total_tokens"] == 7
    assert fake.asked[0].model == "upstream"
    assert fake.asked[0].call.streamed


@pytest.mark.parametrize(
    ("adapter", "body", "status"),
    [
        (FakeAdapter([RateLimited("slowly")]), {}, 429),
        (FakeAdapter((OPENED, TextDelta("half"), RateLimited("no more"))), {}, 200),
        (FakeAdapter(), {"messages": []}, 400),
        (FakeAdapter(), {"model": "none"}, 404),
    ],
)
def test_what_fails_is_an_answer(adapter: FakeAdapter, body: Json, status: int) -> None:
    answer = through(adapter)(body)
    assert answer.status == status
    assert answer.error is not None
    assert answer.error["message"]


def test_a_question_that_is_given_up_closes_its_stream() -> None:
    wait = Wait()
    fake = FakeAdapter((OPENED, wait))

    async def give_up() -> None:
        routes = Routes({"new": Route(fake, "upstream")}, ())
        task = asyncio.create_task(ask_model(routes, Cassette(), {**ASK, "model": "new"}))
        await wait.until_reached()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(give_up())
    assert fake.closed == 1
