"""Why no recorded turn answers an ask, for people: what is nearest, what differs, what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from middleware.cassettes.match.differences import NOTHING, Seen, Unequal, unequal
from middleware.cassettes.match.excerpts import excerpts, kinds_apart, shown
from middleware.cassettes.match.keys import set_aside
from middleware.cassettes.match.likeness import CandidateTurn, nearest
from middleware.cassettes.match.paths import mask_path, path_text
from middleware.cassettes.match.rules import MatchRules
from middleware.cassettes.match.values import Form, JsonValue

_LONGEST = 2000
"""Characters of a message."""
_MOST = 100
"""Differences that are told."""
_LONG, _SHORT = 400, 48
_KINDS: Mapping[str, str] = {
    "uuid": "a UUID",
    "ulid": "a ULID",
    "datetime": "a date and time",
    "hex": "a hex number",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One place; of texts the line that differs, None where there is nothing."""

    path: str
    recorded: JsonValue
    now: JsonValue
    hint: str = ""
    """The rule that would allow it."""


@dataclass(frozen=True, slots=True)
class Explanation:
    message: str
    nearest: int | None = None
    """The number of a turn."""
    differences: tuple[Difference, ...] = ()


def explain(
    now: Form, candidates: Sequence[CandidateTurn], rules: MatchRules, file: str, name: str
) -> Explanation:
    """Name the nearest turn of a cassette's file and what differs; it is never played."""
    turns, played = _count(len(candidates), "turn"), sum(one.played for one in candidates)
    head = f"{file} has no turn like this ({turns}, {played} played)"
    near = nearest(now, candidates, rules)[:3]
    if not near:
        return Explanation(f"{head}, and nothing close.\n{_record(name)}")
    asked = set_aside(now, rules)[0]
    found = islice(unequal(near[0].form, asked), _MOST)
    told = tuple(_difference(one, asked) for one in found)
    places = _count(len(told), "place")
    head = f"{head}. Nearest is {_place(near[0])}; it differs in {places}:"
    also = f"Also near: {' and '.join(map(_place, near[1:]))}.\n" if near[1:] else ""
    message = _fitting(head, [*map(_block, told)], also + _record(name))
    return Explanation(message, near[0].number, told)


def explain_exhausted(equal: Sequence[CandidateTurn], file: str, name: str) -> Explanation:
    """Every turn that answers this ask was played."""
    places = "; ".join(map(_place, equal))[:_LONG]
    message = (
        f"{file} has this ask in {_count(len(equal), 'turn')}, all played: {places}. It came more "
        "often than it was recorded: in a loop, or sent twice. If that is meant, repeats = "
        "\"last\" in 'match' gives the last answer again, and POST /v1/x_usetool/cassettes/"
        f"{name}/rewind begins anew.\n{_record(name)}"
    )
    return Explanation(message, equal[-1].number if equal else None)


def explain_left(turn: CandidateTurn, file: str, name: str) -> Explanation:
    """The turn that answers this ask has no end, because its client went away."""
    message = (
        f"{file}, {_place(turn)}, is this ask, but its client left before the answer ended, so "
        "there is no whole answer to play. Record it again, with --keep-errors if it is meant to "
        f"break off.\n{_record(name)}"
    )
    return Explanation(message, turn.number)


def _record(name: str) -> str:
    return f"Record it: usetool record {name} --mode auto -- COMMAND"


def _place(turn: CandidateTurn) -> str:
    return f"turn {turn.number}" + (f", line {turn.line}" if turn.line else "")


def _difference(found: Unequal, asked: Form) -> Difference:
    path, old, new = path_text(found.steps), found.recorded, found.now
    if not (isinstance(old, str) and isinstance(new, str)):
        return Difference(path, _told(old), _told(new))
    hints = ["allowed by {model: any}"] if path == "model" else []
    for kind in kinds_apart(old, new):
        at, named = mask_path(found.steps, asked), _KINDS.get(kind, f"a {kind}")
        hints.append(f"{named}: mask {{at: '{at}', what: {kind}}}")
    if max(len(old), len(new)) > _SHORT:
        old, new = excerpts(old, new)
    return Difference(path, shown(old), shown(new), "; ".join(hints))


def _told(value: Seen) -> JsonValue:
    if value is NOTHING:
        return None
    text = shown(json.dumps(value, ensure_ascii=False))
    return f"{text[:_LONG]}…" if len(text) > _LONG else value


def _fitting(head: str, blocks: Sequence[str], tail: str) -> str:
    """As many of the blocks as there is room for."""
    room = _LONGEST - len(f"{head}\n  … and 100 more\n{tail}")
    told = [
        block
        for block, end in zip(blocks, accumulate(len(one) + 1 for one in blocks), strict=True)
        if end <= room
    ]
    left = [f"  … and {len(blocks) - len(told)} more"] if len(told) < len(blocks) else []
    return "\n".join([head, *told, *left, tail])[:_LONGEST]


def _block(one: Difference) -> str:
    values = one.recorded, one.now
    old, new = ("nothing" if v is None else json.dumps(v, ensure_ascii=False) for v in values)
    hint = f"     {one.hint}" if one.hint else ""
    path = one.path[:_LONG]
    if max(len(old), len(new)) <= _SHORT:
        return f"  {path}   recorded {old}   now {new}{hint}"
    if isinstance(one.recorded, str) and isinstance(one.now, str):
        old, new = one.recorded, one.now
    return f"  {path}   recorded  {old}\n{' ' * min(len(path) + 5, _SHORT)}now       {new}{hint}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
