"""A JSON array that grows at its end: what is older in it is text, and not written again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from adapters.protocol import Json


def frozen(values: Sequence[Json]) -> bytes:
    """Values that nothing changes any more, for `array`."""
    return orjson.dumps(values)[1:-1] + b","


def array(older: Sequence[bytes], younger: list[Json]) -> list[Json] | orjson.Fragment:
    """All of them: as they are, or, where some are text, as text that is copied into a body.

    Behind older ones there is a younger one.
    """
    if not older:
        return younger
    return orjson.Fragment(b"".join((b"[", *older, orjson.dumps(younger)[1:])))


@dataclass(slots=True)
class JsonArray:
    """Such an array, of which the last value alone may still be changed."""

    older: tuple[bytes, ...] = ()
    younger: list[Json] = field(default_factory=list)

    def copy(self) -> JsonArray:
        """One that goes on from here; all but the last value is text from now on."""
        if done := self.younger[:-1]:
            self.older, self.younger = (*self.older, frozen(done)), self.younger[-1:]
        return JsonArray(self.older, [*self.younger])

    def array(self) -> list[Json] | orjson.Fragment:
        return array(self.older, self.younger)
