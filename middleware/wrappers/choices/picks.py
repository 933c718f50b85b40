"""In which order places are asked: what each `pick` means."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from hashlib import blake2b

from middleware.config.shape import Pick
from middleware.wrappers.choices.alternative import Alternative
from middleware.wrappers.choices.needs import Needs

_EXPLORED = 0.05
"""Of the requests that go to the quickest another one is asked, or nobody learns of a change."""
_SHARE, _MORE = 1.25, 2
"""Open calls a place may have of its share of all, and beside that."""
LASTING: frozenset[Pick] = frozenset(("order", "weight"))
"""Picks that say of a conversation what they said before; of others its place is remembered."""


async def picked(
    pick: Pick, places: Sequence[Alternative], needs: Needs, conversation: str, front: str = ""
) -> Sequence[Alternative]:
    """The places in the order in which they are asked; with a conversation it sticks to its own,
    or to the one in `front`, where it moved to.
    """
    match pick:
        case "weight" if conversation:
            return await _bounded(moved_to_front(rendezvous(places, conversation), front))
        case "weight":
            return _shared(places)
        case "latency":
            return _quickest(places)
        case "busy":
            return await _idlest(places)
        case "cost":
            return sorted(places, key=lambda place: _cost(place, needs))
        case _:
            return places


def moved_to_front(places: Sequence[Alternative], name: str) -> Sequence[Alternative]:
    if not name or places[0].name == name:
        return places
    return sorted(places, key=lambda place: place.name != name)


def as_expected(places: Sequence[Alternative], upstreams: Sequence[str]) -> Sequence[Alternative]:
    """In the order in which their upstreams will be asked, without those that will not be: they
    rested. Pipelines, which have upstreams of their own, stand behind.
    """
    turns = {name: at for at, name in reversed([*enumerate(upstreams)])}
    asked = [place for place in places if place.upstream in turns or not place.upstream]
    return sorted(asked or places, key=lambda place: turns.get(place.upstream, len(turns)))


def rendezvous(places: Sequence[Alternative], conversation: str) -> list[Alternative]:
    """The same order for whoever asks; a place that goes moves its own conversations alone."""

    def draw(place: Alternative) -> float:
        told = blake2b(f"{place.name}\n{conversation}".encode(), digest_size=8).digest()
        return (int.from_bytes(told) + 1) / ((1 << 64) + 1)

    return _by_weight(places, [draw(place) for place in places])


def _shared(places: Sequence[Alternative]) -> list[Alternative]:
    return _by_weight(places, [1.0 - random.random() for _ in places])


def _by_weight(places: Sequence[Alternative], drawn: Sequence[float]) -> list[Alternative]:
    """Each is first as often as its weight says; those without one are behind all others."""

    def rank(at: int) -> tuple[bool, float]:
        weight = places[at].weight
        return weight == 0, -math.log(drawn[at]) / (weight or 1.0)

    return [places[at] for at in sorted(range(len(places)), key=rank)]


async def _bounded(ordered: Sequence[Alternative]) -> Sequence[Alternative]:
    """Those that have more to do than their share are left to the end."""
    loads = [await place.load() for place in ordered]
    weights = sum(place.weight for place in ordered) or 1.0
    each = _SHARE * sum(loads) / weights
    later = [
        (place.weight == 0, load > each * place.weight + _MORE)
        for place, load in zip(ordered, loads, strict=True)
    ]
    return [ordered[at] for at in sorted(range(len(ordered)), key=later.__getitem__)]


def _quickest(places: Sequence[Alternative]) -> list[Alternative]:
    ordered = sorted(places, key=lambda place: (place.latency or 0.0, place.open))
    if random.random() < _EXPLORED:
        explored = random.choice(ordered)
        ordered.sort(key=lambda place: place is not explored)
    return ordered


def _cost(place: Alternative, needs: Needs) -> float:
    """Without a price it is the last to be asked."""
    return place.cost(needs.prompt(), needs.answer()) if place.cost else math.inf


async def _idlest(places: Sequence[Alternative]) -> list[Alternative]:
    loads = [(await place.load(), random.random()) for place in places]
    return [places[at] for at in sorted(range(len(places)), key=loads.__getitem__)]
