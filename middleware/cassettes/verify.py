"""What this version makes of a cassette, against what the recording one made: without a network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import NamedTuple

from adapters.protocol import Event, Json
from middleware.cassettes.asks import error_object, folded
from middleware.cassettes.cassette import Cassette, CassetteTurn, RecordedAnswer
from middleware.cassettes.match import read_rules
from middleware.cassettes.replay import Drift, Performance, Stage
from middleware.cassettes.replay.playback import playback
from middleware.cassettes.replay.wire import drift_of
from middleware.cassettes.routes import played_routes
from middleware.cassettes.secrets import Blotter, blotted

_LATER = ("logprobs", "system_fingerprint", "service_tier")
"""What the first recorders did not keep of an answer."""


class TurnDrift(NamedTuple):
    turn: int
    drift: Drift

    def __str__(self) -> str:
        kind, path, change = self.drift
        return f"{kind} drift turn {self.turn}: {path} {change}".rstrip()


class Verified(NamedTuple):
    cassette: Cassette
    """With the answers of this version."""
    drift: tuple[TurnDrift, ...] = ()


async def verified(cassette: Cassette, path: str) -> Verified:
    """Encode every ask and read every wire again."""
    if not any(turn.exchanges for turn in cassette.turns):
        return Verified(cassette)
    stage = Stage(cassette, played_routes(cassette, path))
    found: list[TurnDrift] = []
    turns: list[CassetteTurn] = []
    for position, turn in enumerate(cassette.turns):
        if turn.redacted or not turn.exchanges:
            turns.append(turn)
            continue
        performance = await stage.performance(position)
        answer = answered(performance, turn.answer)
        if turn.ended == "left":  # that it has no end is no error of its own
            answer = replace(answer, status=turn.answer.status, error=turn.answer.error)
        drift = [*performance.drift, *decode_drift(turn, answer)]
        found += [TurnDrift(turn.number, one) for one in drift]
        turns.append(replace(turn, answer=answer))
    return Verified(replace(cassette, turns=tuple(turns)), tuple(found))


def answered(performance: Performance, before: RecordedAnswer) -> RecordedAnswer:
    """What a performance comes to, with what only the recording knows."""
    events: list[Event] = [event for batch in performance.batches for event in batch.events]
    error = performance.error
    status = 200 if events or error is None else error.status
    found = folded(events, before.created) if events else RecordedAnswer(created=before.created)
    return replace(
        found,
        status=status,
        error=None if error is None else error_object(error),
        body=performance.body,
        created=before.created,
    )


def decode_drift(turn: CassetteTurn, now: RecordedAnswer) -> Iterator[Drift]:
    """Where an answer is read otherwise; a turn that its client left was not read to its end."""
    if turn.ended == "left":
        return
    was, told = _told(turn.answer), _told(now)
    known = {name: told[name] for name in told if name in was or name not in _LATER}
    yield from drift_of("decode", was, known)


def _told(answer: RecordedAnswer) -> Json:
    return {name: value for name, value in asdict(answer).items() if value is not None}


def too_old(cassette: Cassette, days: int, today: date) -> str:
    """Say so if it was recorded longer ago."""
    try:
        age = (today - date.fromisoformat(cassette.recorded)).days
    except ValueError:
        return ""
    return f"was recorded {age} days ago, on {cassette.recorded}" if age > days else ""


def problems_of(cassette: Cassette, path: Path) -> list[str]:
    """What is wrong whatever the version."""
    shapes = Blotter({})
    return [
        f"{path.name}, turn {turn.number} has what looks like a secret in clear"
        for turn in cassette.turns
        if blotted(turn, shapes.turn()) != turn
    ]


def remarks_of(cassette: Cassette, path: Path) -> list[str]:
    """Equal asks with other answers: one after the other they are told apart by their order."""
    rules = read_rules(cassette.match, f"{path.name}: match")
    equal: dict[tuple[bytes, str, str], list[CassetteTurn]] = {}
    for turn, key in zip(cassette.turns, playback(cassette, path, rules).keys, strict=True):
        equal.setdefault((key.digest, turn.session, turn.lane), []).append(turn)
    return [
        f"turns {', '.join(str(turn.number) for turn in turns)} are one ask with several answers: "
        "if an application sends them side by side, tell them apart by the header x-usetool-lane"
        for turns in equal.values()
        if any(_said(turn) != _said(turns[0]) for turn in turns)
    ]


def _said(turn: CassetteTurn) -> RecordedAnswer:
    return replace(turn.answer, usage=None, created=None)
