"""What a session recorded and what was there before → the cassette that is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from adapters.protocol import Json
from middleware.cassettes.cassette import Cassette, CassetteTurn
from middleware.cassettes.match import MatchRules, key_of
from middleware.cassettes.record.offers import joined_routes
from middleware.cassettes.record.parts import lenient
from middleware.cassettes.replay.playback import form_of


class Policy(NamedTuple):
    """What becomes of turns that are not whole."""

    keep_errors: bool = False
    """They are meant."""
    only_good: bool = False
    """They are left out."""


USUAL = Policy()


class Merged(NamedTuple):
    cassette: Cassette | None
    """None: what was there stays."""
    not_whole: tuple[tuple[int, str], ...] = ()
    """Numbers of recorded turns, with how they ended."""


def merged(old: Cassette | None, new: Cassette, mode: str, policy: Policy) -> Merged:
    """`new` holds what was heard, in its order; a session that heard nothing good changes
    nothing, unless there was nothing.
    """
    turns = _wanted(new.turns, policy)
    if not turns or (old and not _is_good(turns, policy)):
        return Merged(None, () if policy.only_good else _endings(_numbered(new.turns)))
    if old is None or mode == "record":
        rules = old or new  # people wrote them
        whole = replace(
            new,
            turns=_numbered(turns),
            facts=_facts(new.facts, new.routes),
            match=rules.match,
            diff=rules.diff,
        )
    else:
        whole = _joined(old, new, turns, mode)
        if whole == replace(old, by=new.by):
            return Merged(None)
    heard = {turn.id for turn in turns}
    return Merged(whole, _endings([turn for turn in whole.turns if turn.id in heard]))


def _joined(old: Cassette, new: Cassette, turns: Sequence[CassetteTurn], mode: str) -> Cassette:
    known: Sequence[CassetteTurn] = old.turns
    if mode == "refresh":
        known, turns = _refreshed(new, known, turns)
    routes = joined_routes(old.routes, new.routes.items())
    return replace(
        old,
        turns=_numbered([*known, *turns]),
        routes=routes,
        facts=_facts((*old.facts, *new.facts), routes),
        by=new.by,
        server=lenient(old.server, new.server),
    )


def _is_good(turns: Sequence[CassetteTurn], policy: Policy) -> bool:
    return policy.keep_errors or any(turn.is_whole for turn in turns)


def _wanted(turns: Sequence[CassetteTurn], policy: Policy) -> list[CassetteTurn]:
    kept = [turn for turn in turns if turn.is_whole or not policy.only_good]
    if not policy.keep_errors:
        return kept
    return [turn if turn.is_whole else replace(turn, kept=True) for turn in kept]


def _numbered(turns: Sequence[CassetteTurn]) -> tuple[CassetteTurn, ...]:
    return tuple(replace(turn, number=number, at=0) for number, turn in enumerate(turns, 1))


def _endings(turns: Sequence[CassetteTurn]) -> tuple[tuple[int, str], ...]:
    return tuple(
        (turn.number, turn.ended if turn.ended != "whole" else f"status {turn.answer.status}")
        for turn in turns
        if not turn.is_whole
    )


def _facts(facts: Sequence[Json], routes: Mapping[str, Json]) -> tuple[Json, ...]:
    """Those of the upstreams that are used; of one question the newest."""
    used = {route.get("upstream", name) for name, route in routes.items()}
    found = {_question(fact): fact for fact in facts if fact["upstream"] in used}
    return tuple(found.values())


def _question(fact: Json) -> bytes:
    return orjson.dumps({name: fact[name] for name in fact if name != "answer"})


def _refreshed(
    new: Cassette, known: Sequence[CassetteTurn], turns: Sequence[CassetteTurn]
) -> tuple[tuple[CassetteTurn, ...], list[CassetteTurn]]:
    """Known turns with new answers where those differ; turns that nobody knew."""
    waiting: dict[bytes, list[int]] = defaultdict(list)
    for position, turn in enumerate(known):
        waiting[_key(new, turn)].append(position)
    fresh, added = [*known], []
    for turn in turns:
        equal = waiting[_key(new, turn)]
        if not equal:
            added.append(turn)
            continue
        position = equal.pop(0)
        if normal_form(known[position]) != normal_form(turn):
            old = known[position]
            fresh[position] = replace(turn, body=old.body, path=old.path, own=old.own)
    return tuple(fresh), added


def _key(cassette: Cassette, turn: CassetteTurn) -> bytes:
    form = form_of(cassette, turn)
    return key_of(form.operation, form.value, MatchRules()).digest


def normal_form(turn: CassetteTurn) -> Any:
    """What of an answer counts: no ids, times, usage or pieces."""
    answer = turn.answer
    exchanges = [(one.upstream, one.path, one.status, one.sent) for one in turn.exchanges]
    said = {**(answer.message or {})}
    said["tool_calls"] = [{**call, "id": ""} for call in said.get("tool_calls") or ()]
    told = (answer.status, answer.finish_reason, answer.error, answer.body, turn.ended)
    return exchanges, said, told
