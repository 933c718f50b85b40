"""A cassette that is played: its turns by their keys, and what each session has had of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from adapters.errors import BadRequest
from adapters.protocol import Json, RequestContext
from middleware.cassettes.asks import parse_ask
from middleware.cassettes.cassette import Cassette, CassetteTurn
from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.match import (
    AskKey,
    CandidateTurn,
    Explanation,
    MatchRules,
    canonical,
    canonical_embeddings,
    key_of,
)
from middleware.cassettes.replay import Drift, Stage
from middleware.cassettes.replay.faults import FaultRule
from middleware.cassettes.routes import played_routes
from middleware.cassettes.visitor import Operation
from middleware.config import Config


class Missed(NamedTuple):
    """An ask that was not answered."""

    code: str
    told: Explanation


@dataclass(slots=True)
class Session:
    """What one run has had of a cassette."""

    name: str = ""
    used: dict[tuple[bytes, str], int] = field(default_factory=dict)
    """How many turns of each key, and of a lane where turns have any."""
    played: list[int] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    asks: dict[str, int] = field(default_factory=dict)
    """How often each model was asked."""
    fired: set[FaultRule] = field(default_factory=set)
    drift: dict[tuple[int, Drift], None] = field(default_factory=dict)
    """With the number of the turn, each once."""
    substitutions: list[Json] = field(default_factory=list)

    def note_drift(self, turn: int, drift: Sequence[Drift]) -> None:
        self.drift |= dict.fromkeys((turn, one) for one in drift)


class AskForm(NamedTuple):
    """An ask as it is compared."""

    operation: Operation
    value: Json


class Draw(NamedTuple):
    """The turn that answers an ask; `spent`: all equal ones are used up."""

    position: int | None
    spent: tuple[int, ...] = ()


@dataclass(slots=True)
class Playback:
    """One cassette under one set of rules."""

    cassette: Cassette
    path: Path
    rules: MatchRules
    forms: tuple[AskForm, ...]
    keys: tuple[AskKey, ...]
    config: Config | None = None
    """Answers are made by its routes instead of the cassette's own."""
    _by_digest: dict[bytes, list[int]] = field(default_factory=dict)
    _of_one_session: bool = True
    _stage: Stage | None = None

    def __post_init__(self) -> None:
        for position, key in enumerate(self.keys):
            self._by_digest.setdefault(key.digest, []).append(position)
        self._of_one_session = len({turn.session for turn in self.turns}) <= 1

    @property
    def turns(self) -> tuple[CassetteTurn, ...]:
        return self.cassette.turns

    def open_stage(self) -> Stage:
        if self._stage is None:
            routes = played_routes(self.cassette, str(self.path), self.config)
            self._stage = Stage(self.cassette, routes)
        return self._stage

    def take(self, session: Session, key: AskKey, lane: str) -> Draw:
        """The k-th equal ask of a session gets the k-th recorded turn."""
        equal = self._equal(session, key)
        if lane and any(self.turns[position].lane for position in equal):
            equal = [position for position in equal if self.turns[position].lane == lane]
        else:
            lane = ""
        count = session.used.get((key.digest, lane), 0)
        if count < len(equal):
            session.used[key.digest, lane] = count + 1
            return Draw(equal[count])
        if equal and self.rules.repeats == "last":
            return Draw(equal[-1])
        return Draw(None, tuple(self.turns[position].number for position in equal))

    def _equal(self, session: Session, key: AskKey) -> list[int]:
        """The session's own come first, where several were recorded."""
        equal = self._by_digest.get(key.digest, [])
        if self._of_one_session:
            return equal
        return sorted(equal, key=lambda one: self.turns[one].session != session.name)

    def give_back(self, session: Session, key: AskKey, lane: str) -> None:
        """The turn was not played after all."""
        for counted in ((key.digest, lane), (key.digest, "")):
            if session.used.get(counted):
                session.used[counted] -= 1
                return

    def candidates(self, session: Session, operation: Operation) -> list[CandidateTurn]:
        played = {*session.played}
        return [
            CandidateTurn(turn.number, turn.line, form.value, turn.number in played)
            for turn, form in zip(self.turns, self.forms, strict=True)
            if form.operation == operation
        ]

    def candidate(self, position: int) -> CandidateTurn:
        turn = self.turns[position]
        return CandidateTurn(turn.number, turn.line, self.forms[position].value, played=False)

    def under(self, rules: MatchRules) -> Playback:
        """The same cassette under other rules."""
        return replace(self, rules=rules, keys=keys_of(self.forms, rules), _by_digest={})


def playback(
    cassette: Cassette, path: Path, rules: MatchRules, config: Config | None = None
) -> Playback:
    forms: list[AskForm] = []
    for turn in cassette.turns:
        try:
            forms.append(form_of(cassette, turn))
        except BadRequest as error:
            text = f"turn {turn.number} has an ask that cannot be one: {error.message}"
            raise UnreadableCassette(str(path), text, turn.line) from error
    return Playback(cassette, path, rules, tuple(forms), keys_of(forms, rules), config)


def keys_of(forms: Sequence[AskForm], rules: MatchRules) -> tuple[AskKey, ...]:
    return tuple(key_of(form.operation, form.value, rules) for form in forms)


def form_of(cassette: Cassette, turn: CassetteTurn) -> AskForm:
    if turn.operation == "embeddings":
        return AskForm("embeddings", canonical_embeddings(turn.body))
    legacy = bool(turn.body.get("functions"))
    return AskForm("chat", canonical(parse_ask(cassette, turn, RequestContext()), legacy))
