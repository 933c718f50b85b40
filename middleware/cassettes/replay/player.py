"""Answers an ask from a cassette, or says why none of its turns does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from shlex import quote
from typing import NamedTuple
from urllib.parse import quote as percent_encoded

import orjson

from adapters.errors import UpstreamError
from adapters.protocol import Adapter
from middleware.cassettes.cassette import CassetteTurn
from middleware.cassettes.errors import CassetteMiss, UnreadableCassette
from middleware.cassettes.match import (
    AskKey,
    Explanation,
    carry_into,
    explain,
    explain_exhausted,
    explain_left,
    key_of,
    substitutions,
)
from middleware.cassettes.names import CassetteName
from middleware.cassettes.replay import FAST, Performance, Performer, Timing, altered, stored
from middleware.cassettes.replay.faults import (
    Applied,
    FaultMistake,
    FaultRule,
    applied,
    find_fault,
    read_faults,
)
from middleware.cassettes.replay.playback import AskForm, Missed, Playback, Session
from middleware.cassettes.replay.shelf import OpenSession, Shelf
from middleware.cassettes.replay.stage import answered_by
from middleware.cassettes.selection import Selection

_MOST_TOLD = 1000
"""Misses a session tells of: an app may ask for ever."""


class Staged(NamedTuple):
    """What answers a request, and how the answer is headed."""

    adapter: Adapter
    replay: str = ""
    """`x-usetool-replay`; empty: there is nothing to say."""
    id: str = ""
    created: int | None = None
    performance: Performance = Performance()


class Question(NamedTuple):
    """One ask as it is looked for."""

    name: CassetteName
    form: AskForm
    model: str
    selection: Selection
    must: bool = True
    """It is not asked live where nothing answers it."""


class _Search(NamedTuple):
    """A question with what it is looked for in."""

    question: Question
    playback: Playback
    session: Session
    faults: tuple[FaultRule, ...]
    key: AskKey
    written: str
    """How a command is told of the cassette."""

    @property
    def lane(self) -> str:
        return self.question.selection.lane

    def give_back(self) -> None:
        self.playback.give_back(self.session, self.key, self.lane)


@dataclass(slots=True)
class Player:
    shelf: Shelf
    timing: Timing = FAST
    serves_answers: bool = False
    """Stored answers, not the wire."""
    strict_wire: bool = False
    """A change in what would be sent is an error."""

    async def play(self, question: Question) -> Staged:
        """Raise `CassetteMiss` where nothing answers it."""
        playback, session, faults = self._opened(question)
        faults = _own_faults(question.selection.fault) or faults
        key = key_of(question.form.operation, question.form.value, playback.rules)
        written = quote(self.shelf.written(question.name.name))
        search = _Search(question, playback, session, faults, key, written)
        taken = playback.take(session, key, search.lane)
        if taken.position is None:
            raise _missed(search, taken.spent)
        turn = playback.turns[taken.position]
        if turn.ended == "left" and not turn.kept:
            search.give_back()
            raise _noted(search, _left(search, taken.position))
        return await self._staged(search, taken.position)

    def _opened(self, question: Question) -> OpenSession:
        try:
            return self.shelf.session(question.name)
        except CassetteMiss as error:
            if question.must and len(self.shelf.lost) < _MOST_TOLD:
                self.shelf.lost[question.name] = Missed(
                    error.code or "", Explanation(error.message)
                )
            raise

    async def _staged(self, search: _Search, position: int) -> Staged:
        playback, session = search.playback, search.session
        turn = playback.turns[position]
        fault = _fault(search, turn)
        try:
            performance = await self._performance(playback, position, fault)
        except UnreadableCassette as error:  # its routes are read when they are needed
            search.give_back()
            told = Explanation(str(error))
            raise _noted(search, told, "cassette_unreadable") from error
        performance = _carried(search, position, performance)
        if fault is not None and fault.first and performance.error is not None:
            search.give_back()  # the same ask once more gets the turn
            performance = replace(performance, drift=())
        else:
            session.played.append(turn.number)
        session.note_drift(turn.number, performance.drift)
        if self.strict_wire and any(drift.kind == "encode" for drift in performance.drift):
            performance = Performance(error=_strict(turn, performance))
        timing = replace(self.timing, factor=1.0) if fault and fault.real else self.timing
        resets = fault is not None and fault.door_cut is not None
        return Staged(
            Performer(performance, timing, resets),
            _heading(search.question.name.name, turn, len(playback.turns), performance),
            turn.identity,
            turn.answer.created or turn.number,
            performance,
        )

    async def _performance(
        self, playback: Playback, position: int, fault: Applied | None
    ) -> Performance:
        turn = playback.turns[position]
        if fault is not None and fault.exchanges and not (fault.finish or fault.refuse):
            if not turn.exchanges:
                return await answered_by(fault.exchanges[0])
            return await playback.open_stage().rehearse(turn, fault.exchanges)
        if self.serves_answers or not turn.exchanges:
            found = stored(turn)
        else:
            found = await playback.open_stage().performance(position)
        return altered(found, fault.finish, fault.refuse) if fault is not None else found


def _own_faults(said: str) -> tuple[FaultRule, ...]:
    """A request's own rule; it is refused before a turn is taken for it."""
    if not said:
        return ()
    try:
        return read_faults(orjson.loads(said), "x-usetool-fault")
    except (orjson.JSONDecodeError, FaultMistake) as error:
        text = f"x-usetool-fault is no fault: {error}"
        raise CassetteMiss(text, code="invalid_value", status=400) from error


def _fault(search: _Search, turn: CassetteTurn) -> Applied | None:
    """What is done to this answer, by the request's own rule or by the session's."""
    session, model = search.session, search.question.model
    nth = session.asks[model] = session.asks.get(model, 0) + 1
    rule = find_fault(search.faults, turn.number, model, nth, session.fired)
    found = applied(rule, turn.exchanges) if rule else None
    if rule is not None and found is not None:
        session.fired.add(rule)
    return found


def _carried(search: _Search, position: int, performance: Performance) -> Performance:
    found = substitutions(search.playback.keys[position], search.key)
    if not found:
        return performance
    batches, made = carry_into([batch.events for batch in performance.batches], found)
    turn = search.playback.turns[position].number
    search.session.substitutions += [{"turn": turn, **one._asdict()} for one in made]
    return performance.with_events(batches)


def _heading(name: str, turn: CassetteTurn, of: int, performance: Performance) -> str:
    kinds = dict.fromkeys(drift.kind for drift in performance.drift)
    drift = f" drift={','.join(kinds)}" if kinds else ""
    return f"{percent_encoded(name)} turn={turn.number} of={of}{drift}"


def _strict(turn: CassetteTurn, performance: Performance) -> UpstreamError:
    told = ", ".join(f"{one.path} {one.change}" for one in performance.drift)
    text = f"What would be sent is not what was recorded in turn {turn.number}: {told}."
    return UpstreamError(text, code="cassette_drift", status=422)


def _left(search: _Search, position: int) -> Explanation:
    playback = search.playback
    return explain_left(playback.candidate(position), playback.path.name, search.written)


def _missed(search: _Search, spent: tuple[int, ...]) -> CassetteMiss:
    question, playback = search.question, search.playback
    candidates = playback.candidates(search.session, question.form.operation)
    file, name = playback.path.name, search.written
    if spent:
        equal = [one for one in candidates if one.number in spent]
        return _noted(search, explain_exhausted(equal, file, name), "cassette_exhausted")
    return _noted(search, explain(question.form.value, candidates, playback.rules, file, name))


def _noted(search: _Search, told: Explanation, code: str = "cassette_miss") -> CassetteMiss:
    if search.question.must and len(search.session.missed) < _MOST_TOLD:
        search.session.missed.append(Missed(code, told))
    return CassetteMiss(told.message, code=code)
