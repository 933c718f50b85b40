"""A live model asked what was recorded: every ask with its recorded history, a few at a time."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import orjson

from adapters.errors import GatewayError
from adapters.protocol import Json, RequestContext
from middleware.cassettes.asks import collected, error_object, parse_ask
from middleware.cassettes.cassette import Cassette, CassetteTurn, RecordedAnswer
from middleware.cassettes.diff.outcome import TurnDiff, agreement, judge
from middleware.cassettes.diff.rules import WORDS, DiffRules
from middleware.cassettes.diff.verdict import Verdict, has_failed, verdict
from middleware.routing import Routes

_SIDE_BY_SIDE = 4
Answers = Mapping[str, RecordedAnswer]
"""By the key of the question."""


class LiveQuestion(NamedTuple):
    turn: CassetteTurn
    model: str
    key: str
    """Equal questions have one answer."""


def tokens_of(answer: RecordedAnswer) -> int:
    return int((answer.usage or {}).get("total_tokens") or 0)


@dataclass(frozen=True, slots=True)
class Survey:
    """Each turn asked `count` times of a model, and as often of the one that was recorded."""

    turns: Sequence[CassetteTurn]
    model: str
    identify: Callable[[str], str]
    """All that decides who answers to a model's name."""
    count: int = 1
    baseline: bool = False

    def questions(self) -> Iterator[LiveQuestion]:
        for turn in self.turns:
            yield from self._of(turn, self.model)
            if self.baseline:
                yield from self._of(turn, turn.model)

    def _of(self, turn: CassetteTurn, model: str) -> Iterator[LiveQuestion]:
        said = json.dumps([turn.body, model, self.identify(model)], sort_keys=True)
        digest = hashlib.sha256(said.encode()).hexdigest()
        for sample in range(self.count):
            yield LiveQuestion(turn, model, f"{digest}-{sample}")

    def outcome(self, answers: Answers, rules: DiffRules) -> Iterator[TurnDiff]:
        for turn in self.turns:
            found = self._verdicts(turn, self.model, answers, rules)
            before = self._verdicts(turn, turn.model, answers, rules) if self.baseline else []
            words, old = ([each.word for each in side] for side in (found, before))
            worst = max(found, key=lambda each: WORDS.index(each.word))
            word, note = judge(words, old)
            yield TurnDiff(
                turn.number, worst, word, agreement(words), agreement(old) if old else "", note
            )

    def _verdicts(
        self, turn: CassetteTurn, model: str, answers: Answers, rules: DiffRules
    ) -> list[Verdict]:
        """Questions that failed are left out, unless all of them did."""
        said = [answers[question.key] for question in self._of(turn, model)]
        whole = [answer for answer in said if not has_failed(answer)]
        return [verdict(turn.body, turn.answer, each, rules) for each in whole or said]


def askable(turns: Iterable[CassetteTurn]) -> list[CassetteTurn]:
    """Turns with a decision to compare with: chats that were answered."""
    return [turn for turn in turns if turn.operation == "chat" and not has_failed(turn.answer)]


@dataclass(frozen=True, slots=True)
class AnswerCache:
    """A file for each answer, so that nothing is paid twice."""

    folder: Path

    def find(self, key: str) -> RecordedAnswer | None:
        with suppress(OSError, ValueError, TypeError):  # one that was cut off is none
            return RecordedAnswer(**orjson.loads((self.folder / key).read_bytes()))
        return None

    def keep(self, key: str, answer: RecordedAnswer) -> None:
        with suppress(OSError):  # it costs a question the next time
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self.folder / key).write_bytes(orjson.dumps(answer))


async def answers_to(
    questions: Iterable[LiveQuestion],
    ask: Callable[[Json], Awaitable[RecordedAnswer]],
    cache: AnswerCache,
    most_failed: float = math.inf,
) -> Answers:
    """Ask a few at a time; beyond so many failures nothing more, it would only cost."""
    waiting = iter({question.key: question for question in questions}.values())
    answers: dict[str, RecordedAnswer] = {}

    async def work() -> None:
        for turn, model, key in waiting:
            answer = cache.find(key)
            if answer is None and failures(answers) > most_failed:
                answer = RecordedAnswer(0, error={"message": "not asked: too many failed"})
            elif answer is None:
                answer = await ask(turn.body | {"model": model})
                if not has_failed(answer):
                    cache.keep(key, answer)
            answers[key] = answer

    await asyncio.gather(*[work() for _ in range(_SIDE_BY_SIDE)])
    return answers


def failures(answers: Answers) -> int:
    return sum(map(has_failed, answers.values()))


async def ask_model(routes: Routes, cassette: Cassette, body: Json) -> RecordedAnswer:
    """Ask one of the gateway's own models, without a server."""
    turn = CassetteTurn(0, body, RecordedAnswer())
    try:
        request = parse_ask(cassette, turn, RequestContext())
        async with aclosing(routes.find(request.model).stream(request)) as events:
            return await collected(events)
    except GatewayError as error:
        return RecordedAnswer(error.status, error=error_object(error))
