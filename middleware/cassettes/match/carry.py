"""The value of now in the place of the recorded one, in events that were collected."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from typing import NamedTuple

from adapters.protocol import Event, ReasoningDelta, TextDelta, ToolCallDelta
from middleware.cassettes.match.edits import Edit, edited

_MOST = 500
"""Values that are carried into one answer."""
# Of scripts that put spaces between words: in 订单T-1已发货 stands a whole `T-1`.
_LETTER = re.compile(r"[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_NUMBER_BEFORE, _NUMBER_AFTER = re.compile("[0-9][-.,:/]"), re.compile("[-.,:/][0-9]")
_ESCAPES = (r"\n", r"\r", r"\t")


class Substitution(NamedTuple):
    path: str
    recorded: str
    now: str


def carry_into(
    batches: Sequence[tuple[Event, ...]], values: Iterable[tuple[str, str]]
) -> tuple[tuple[tuple[Event, ...], ...], tuple[Substitution, ...]]:
    """Put values into an answer; every event stays where it was.

    A value that is cut over several pieces is put where it began; they keep the rest of theirs.
    """
    known: dict[str, str] = {}
    for recorded, now in islice(values, _MOST):
        known.setdefault(recorded, now)
    if not known:
        return tuple(batches), ()
    done = [list(batch) for batch in batches]
    made: dict[Substitution, None] = {}
    for path, places in _places(batches).items():
        pieces = [_said(done[batch][at])[1] for batch, at in places]
        text = "".join(pieces)
        edits = dict(_edits(text, path, known))
        made |= dict.fromkeys(edits.values())
        new = edited(text, edits, accumulate(map(len, pieces)))
        for (batch, at), old, piece in zip(places, pieces, new, strict=True):
            if piece != old:
                done[batch][at] = _saying(done[batch][at], piece)
    return tuple(map(tuple, done)), tuple(made)


def _places(batches: Iterable[tuple[Event, ...]]) -> Mapping[str, list[tuple[int, int]]]:
    """What is said → batch and place in it of each piece."""
    places = defaultdict(list)
    for number, batch in enumerate(batches):
        for at, event in enumerate(batch):
            if path := _said(event)[0]:
                places[path].append((number, at))
    return places


def _said(event: Event) -> tuple[str, str]:
    """What it is a piece of, and the piece."""
    match event:
        case TextDelta(text):
            return "content", text
        case ReasoningDelta(text):
            return "reasoning_content", text
        case ToolCallDelta(index, text):
            return f"tool_calls[{index}].function.arguments", text
    return "", ""


def _saying(event: Event, piece: str) -> Event:
    if isinstance(event, ToolCallDelta):
        return replace(event, arguments=piece)
    return replace(event, text=piece) if isinstance(event, TextDelta | ReasoningDelta) else event


def _edits(text: str, path: str, known: Mapping[str, str]) -> Iterator[tuple[Edit, Substitution]]:
    """Of two values that begin in one place the longer counts."""
    is_json = path.endswith("arguments")
    forms = {form: value for value in known for form in _forms(value, is_json)}
    found = ((start, -start - len(form), form) for form in forms for start in _starts(text, form))
    done = 0
    for start, minus_end, form in sorted(found):
        if start >= done:
            now, done = known[forms[form]], -minus_end
            edit = Edit(start, done, _forms(now, is_json)[0])
            yield edit, Substitution(path, forms[form], now)


def _forms(value: str, is_json: bool) -> Sequence[str]:
    """The ways it may be written there."""
    if not is_json:
        return [value]
    return [json.dumps(value, ensure_ascii=plain)[1:-1] for plain in (False, True)]


def _starts(text: str, value: str) -> Iterator[int]:
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        if _is_whole(text, start, end):
            yield start
        start = text.find(value, end)


def _is_whole(text: str, start: int, end: int) -> bool:
    """`T-1` is no token in `T-12`, `XT-1` and `T-1.5`; it is one behind JSON's `\\n`."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    letter = _LETTER.match(before[-1:]) and before not in _ESCAPES
    if letter or _LETTER.match(after):
        return False
    of_number = text[start].isdigit() and _NUMBER_BEFORE.fullmatch(before)
    return not (of_number or (text[end - 1].isdigit() and _NUMBER_AFTER.fullmatch(after)))
