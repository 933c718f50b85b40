"""Values in asks that look born today: no other run says them again, so its asks would miss."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

from middleware.cassettes.match.paths import Step, mask_path
from middleware.cassettes.match.patterns import pattern_of, tokens
from middleware.cassettes.match.values import Form, JsonValue

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TEMPORARY = re.compile(r"/(?:private/)?(?:tmp|var/tmp|var/folders)/.|.*[/\\\\]Temp[/\\\\].", re.I)
_HERE = ("localhost:", "127.0.0.1:", "[::1]:", "0.0.0.0:")
_LONG_HEX = 16


class Lint(NamedTuple):
    at: str
    what: str
    value: str
    rule: str
    """To be pasted."""


def lint(asks: Sequence[Form], day: str, own: Sequence[str]) -> tuple[Lint, ...]:
    """Look through the forms of asks, as far as they count; each value is told once a place.

    `own`: folders of the machine that asks were recorded on.
    """
    places = dict.fromkeys(place for ask in asks for place in _texts(ask, (), ask))
    found = (
        Lint(at, what, value, f"{{at: '{at}', what: {what}}}")
        for at, text in places
        for what, value in _born(text, date.fromisoformat(day), tuple(own))
    )
    return tuple(dict.fromkeys(found))


def _texts(value: JsonValue, steps: tuple[Step, ...], ask: Form) -> Iterator[tuple[str, str]]:
    """Each with where a mask of it goes."""
    if isinstance(value, str):
        yield mask_path(steps, ask), value
    elif isinstance(value, dict) and value.get("role") != "assistant":  # it will say it again
        for name, one in value.items():
            yield from _texts(one, (*steps, name), ask)
    elif isinstance(value, list):
        for position, one in enumerate(value):
            yield from _texts(one, (*steps, position), ask)


def _born(text: str, day: date, own: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Kinds and values."""
    today = any(_is_day(found[0], day) for found in pattern_of("date").finditer(text))
    for found in tokens().finditer(text):
        what, value = found.lastgroup, found[0]
        if what and (_is_born(what, found, today, day) or value.startswith(own)):
            yield what, value


def _is_born(what: str, found: re.Match[str], today: bool, day: date) -> bool:
    value = found[0]
    if what in ("date", "datetime"):
        return _is_day(pattern_of("time").sub("", value), day)
    if what == "time":  # 9:00 are opening hours
        return today or value.count(":") > 1
    if what == "hex":
        return len(value) >= _LONG_HEX and not value.isdigit()
    if what == "port":
        return found.string.endswith(_HERE, 0, found.start())
    return what in ("uuid", "ulid") or _TEMPORARY.match(value) is not None


def _is_day(text: str, day: date) -> bool:
    """Whether a date, in whatever order it is written, is this one."""
    numbers = sorted(map(int, re.findall(r"\d+", text)))
    named = _MONTHS[day.month - 1] in text.lower()
    return numbers == sorted([day.year, day.day, *([] if named else [day.month])])
