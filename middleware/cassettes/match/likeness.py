"""Of many recorded asks those that are most alike one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from operator import eq

from middleware.cassettes.match.differences import alike_at_ends
from middleware.cassettes.match.keys import set_aside
from middleware.cassettes.match.rules import MatchRules
from middleware.cassettes.match.values import Form, JsonValue

_CLOSELY = 8
"""Asks that are compared as the rules say."""
_LONGEST = 500
"""Characters of a message whose words count."""
_WORD = re.compile(r"[A-Za-z0-9_]++|[^\s\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class CandidateTurn:
    """A recorded turn that may have been meant."""

    number: int
    line: int
    form: Form
    played: bool = False


def nearest(
    now: Form, candidates: Iterable[CandidateTurn], rules: MatchRules
) -> list[CandidateTurn]:
    """With what counts of their forms; none of which less than half is alike."""
    few = [one for _, one in _ranked(now, candidates)[:_CLOSELY]]
    counted = [replace(one, form=set_aside(one.form, rules)[0]) for one in few]
    found: list[CandidateTurn] = []
    for likeness, one in _ranked(set_aside(now, rules)[0], counted):
        if likeness >= 0.5 and all(one.form != other.form for other in found):
            found.append(one)
    return found


def _ranked(now: Form, candidates: Iterable[CandidateTurn]) -> list[tuple[float, CandidateTurn]]:
    """The longest equal beginning first, then the most alike, then one that was not played."""
    said = _parts(now)

    @cache
    def words(begin: int) -> frozenset[str]:
        return _words(said[begin:])

    ranked = []
    for one in candidates:
        then = _parts(one.form)
        begin, end = alike_at_ends(then, said)
        equal, longest = max(begin + end, sum(map(eq, then, said))), max(len(then), len(said)) or 1
        others = _words(then[begin:])
        alike = 2 * len(words(begin) & others) / (len(words(begin)) + len(others) or 1)
        likeness = (equal + alike * (longest - equal)) / longest
        ranked.append((-begin, -likeness, one.played, one.number, one))
    return [(-rank[1], rank[-1]) for rank in sorted(ranked, key=lambda rank: rank[:4])]


def _parts(form: Form) -> list[JsonValue]:
    """Its messages, or the texts of which vectors are asked."""
    parts = form.get("messages", form.get("input"))
    return [one for one in parts if one is not None] if isinstance(parts, list) else []


def _words(parts: list[JsonValue]) -> frozenset[str]:
    """Of the first part and of the last."""
    texts = []
    for part in (*parts[:1], *parts[1:][-1:]):
        said = part.get("content") or part.get("tool_calls") if isinstance(part, dict) else part
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        texts.append(text[:_LONGEST])
    return frozenset(_WORD.findall("\n".join(texts)))
