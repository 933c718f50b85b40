"""`as: N`: what a body has in common with that of an earlier turn N is not written again.

    {as: 1, messages: [{as: 1}, {role: tool, …}], temperature: 0}

All fields of the base are there unless they are said anew; in front of a list, all its items. A
field that is called `as` itself is written as a list, `as: [value]`, and a list that begins with a
map like those gets nothing in front: `[{as: 0}, {as: value}]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from adapters.protocol import Json
from middleware.cassettes.file.bodies import packed
from middleware.cassettes.file.schema import Misshapen, shown

_AS = "as"
_MOST = 512 << 20
"""Bytes that all bodies of a file may have when they are whole again."""
_WORTH = 60
"""A reference to less saves nothing."""
_CANDIDATES = 8
"""Earlier turns that are looked at: agents and their helpers take turns."""
_LIST = b"["
_Parts: TypeAlias = Mapping[str, Sequence[bytes]]
"""Of each field its JSON; of a list a bracket, and that of each item."""
_Place: TypeAlias = int
"""-1 for the ask, -2 for it as its door had it, or the position of an exchange: bodies refer to
those of their own place.
"""


@dataclass(slots=True)
class Shortener:
    """Puts references into bodies, turn after turn; looks at each body once."""

    _latest: dict[_Place, list[tuple[int, _Parts]]] = field(default_factory=dict)
    _together: int = 0

    def shorten(self, turn: Json) -> Json:
        """Do it to the bodies of a turn, in place."""
        for place, holder, name in _bodies(turn):
            holder[name] = self.short(place, turn["turn"], holder[name])
        return turn

    def short(self, place: _Place, turn: int, body: Json) -> Json:
        parts = {name: _parts(value) for name, value in body.items()}
        self._together += len(packed(body))
        latest = self._latest.get(place, []) if self._together <= _MOST else []
        saved = [] if _AS in body else [(_saved(known, parts), at) for at, known in latest]
        most, base = max(saved, default=(0, 0))
        short: Json = {_AS: base} if most > _WORTH else {}
        known = dict(latest)[base] if short else {}
        for name, value in body.items():
            if name == _AS:
                short[name] = [value]
            elif known.get(name) != parts[name]:
                earlier = [(at, one.get(name, ())) for at, one in latest]
                short[name] = _behind(earlier, parts[name], value)
        self._latest[place] = [*latest, (turn, parts)][-_CANDIDATES:]
        return short


@dataclass(slots=True)
class Expander:
    """Undoes what `Shortener` did, or somebody by hand; turns come in their order."""

    _bodies: dict[tuple[_Place, int], Json] = field(default_factory=dict)
    _together: int = 0

    def expand(self, turn: object) -> None:
        """Do it to the bodies of a turn, in place; what else is wrong with it others say."""
        number = turn.get("turn") if isinstance(turn, dict) else None
        if type(number) is int:
            for place, holder, name in _bodies(turn):
                holder[name] = self.whole(place, number, holder[name])

    def whole(self, place: _Place, turn: int, body: Json) -> Json:
        base: Any = body.get(_AS, 0)
        own = {name: value for name, value in body.items() if name != _AS}
        if isinstance(base, list) and len(base) == 1:
            base, own = 0, body | {_AS: base[0]}
        whole = self._earlier(place, base) | own
        for name, value in own.items():
            if name != _AS and _is_reference(value):
                items = self._earlier(place, value[0][_AS]).get(name, [])
                if not isinstance(items, list):
                    raise Misshapen(f"as: {name} is no list in turn {value[0][_AS]}; expected one")
                whole[name] = [*items, *value[1:]]
        if whole != body:
            self._together += len(packed(whole))
        if self._together > _MOST:
            raise Misshapen(f"too much by `as`; expected at most {_MOST >> 20} MB in all")
        self._bodies[place, turn] = whole
        return whole

    def _earlier(self, place: _Place, turn: object) -> Json:
        if turn == 0:
            return {}
        if type(turn) is not int or (place, turn) not in self._bodies:
            raise Misshapen(f"as: {shown(turn)}; expected the number of an earlier turn")
        return self._bodies[place, turn]


def _bodies(turn: object) -> Iterator[tuple[_Place, Json, str]]:
    """Where a turn of a file has bodies that may refer to others: the map and the key of each."""
    ask = _map(turn, "ask")
    for place, name in ((-1, "body"), (-2, "own")):
        if isinstance(ask.get(name), dict):
            yield place, ask, name
    upstream = turn.get("upstream") if isinstance(turn, dict) else None
    for at, exchange in enumerate(upstream if isinstance(upstream, list) else ()):
        body = _map(_map(exchange, "request"), "body")
        if isinstance(body.get("json"), dict):
            yield at, body, "json"


def _map(value: object, name: str) -> Json:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _is_reference(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and first.keys() == {_AS}


def _parts(value: object) -> list[bytes]:
    return [_LIST, *map(packed, value)] if isinstance(value, list) else [packed(value)]


def _size(parts: Sequence[bytes]) -> int:
    return sum(map(len, parts))


def _saved(base: _Parts, parts: _Parts) -> int:
    """The bytes that stand in a base already; 0: it has fields that this one has not, in order."""
    if list(parts)[: len(base)] != list(base):
        return 0
    return sum(_size(found) for name, found in base.items() if parts[name] == found)


def _behind(
    earlier: Sequence[tuple[int, Sequence[bytes]]], parts: Sequence[bytes], value: Any
) -> object:
    """A list behind the longest of an earlier turn that it begins with."""
    if parts[0] != _LIST:
        return value
    fits = [(len(one), at) for at, one in earlier if one and parts[: len(one)] == one]
    count, turn = max(fits, default=(0, 0))
    if _size(parts[:count]) > _WORTH:
        return [{_AS: turn}, *value[count - 1 :]]
    return [{_AS: 0}, *value] if _is_reference(value) else value
