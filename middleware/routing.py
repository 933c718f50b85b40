"""The table of models: looked up by name on each request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from adapters.errors import BadRequest, UnknownModel
from adapters.leaf import Leaf
from middleware.config import Meant, PublicNames, suggest
from middleware.wrappers.calls import Guarded
from middleware.wrappers.key_ring import KeyRing
from middleware.wrappers.recall import Store
from middleware.wrappers.route import Absent, Route

_NAMES_SHOWN = 50
_NAME_SHOWN = 100
_HINTS = 3


class ModelEntry(NamedTuple):
    """A line of the model list."""

    id: str
    owned_by: str
    available: bool
    reason: str
    """Why it is not available."""
    upstream: str
    nesting: tuple[str, ...]
    """The adapters a request walks through, outermost first."""


class Routes:
    """Every model of a config, by name."""

    def __init__(
        self,
        routes: Mapping[str, Route | Absent],
        entries: Iterable[ModelEntry],
        store: Store | None = None,
        rings: Mapping[str, KeyRing] | None = None,
        may_ask: Callable[[str], bool] | None = None,
    ) -> None:
        self.store = store
        self.rings = rings or {}
        """Of every upstream: how its keys stand."""
        self._may_ask = may_ask
        self._routes = routes
        self._plain = {name: route for name, route in routes.items() if "*" not in name}
        self._entries = {entry.id: entry for entry in entries}
        self._names = PublicNames(routes)

    def limited_to(self, may_ask: Callable[[str], bool]) -> Routes:
        """The same for who may ask some of them only: the others do not exist."""
        return Routes(self._routes, self._entries.values(), self.store, self.rings, may_ask)

    def find(self, name: str) -> Route | Absent:
        """Return what answers for a model: an exact name wins, then the longest before a `*`."""
        if name in self._plain and self.opens(name):
            return self._plain[name]
        line, carried = self._meant(name)
        route = self._routes[line]
        if not carried:
            return route
        if isinstance(route, Absent):
            return Absent(name, route.reason)
        return replace(route, name=route.name.replace("*", carried))

    def _meant(self, name: str) -> Meant:
        meant = self._names.meant(name)
        if meant is None or not self.opens(name):
            raise self.unknown(name)
        return meant

    def opens(self, name: str) -> bool:
        return self._may_ask is None or self._may_ask(name)

    def listing(self) -> tuple[ModelEntry, ...]:
        return tuple(self._entries.values())

    def entry(self, name: str) -> ModelEntry:
        """The line of the model list under which a name is answered."""
        return self._entries[self._meant(name).id]

    def line(self, name: str) -> str:
        """The line of the config under which a name is answered; empty: it is not."""
        meant = self._names.meant(name)
        return meant.id if meant else ""

    def leaf(self, name: str) -> tuple[str, Leaf]:
        """Return the upstream's name of a model, and what speaks to that upstream."""
        found = self.find(name)
        if found.leaf is None:
            text = f"Model '{name}' is made of several models. Ask one of an upstream."
            raise BadRequest(text, param="model", code="unsupported_value")
        return found.name, found.leaf

    def guarded(self, name: str) -> tuple[str, Guarded]:
        """As `leaf`, through what guards it."""
        known, leaf = self.leaf(name)
        return known, self.find(name).guarded or leaf

    def unknown(self, name: str) -> UnknownModel:
        name = name if len(name) <= _NAME_SHOWN else name[:_NAME_SHOWN] + "…"
        names = [*filter(self.opens, self._entries)]
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
        hint = suggest(name, names) or self._carried(name)
        return UnknownModel(
            f"The model '{name}' does not exist here.{hint} There are: {shown}.", param="model"
        )

    def _carried(self, name: str) -> str:
        """The names under which upstreams with names of their own would be asked for this one."""
        there = {
            entry.id for entry in self._entries.values() if entry.available and self.opens(entry.id)
        }
        found = [
            f"'{one.before}{name}{one.after}'"
            for one in self._names.wildcards
            if one.id in there and one.before.endswith("/")
        ]
        return f" Did you mean {' or '.join(found[:_HINTS])}?" if found else ""
