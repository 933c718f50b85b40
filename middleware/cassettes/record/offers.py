"""Server tools in the routes of a cassette: what any of its turns could call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from adapters.protocol import Json

_KEY = "server_tools"


def with_offers(routes: Mapping[str, Json], model: str, offers: Sequence[Json]) -> dict[str, Json]:
    """Routes with what a turn of a model was offered."""
    if not offers or model not in routes:
        return {**routes}
    return {**routes, model: routes[model] | {_KEY: [*offers]}}


def joined_routes(old: Mapping[str, Json], new: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    """The newer ones, with the tools of both: not every turn is offered all."""
    routes = {**old}
    for name, route in new:
        before = routes.get(name)
        known = before.get(_KEY, ()) if isinstance(before, dict) else ()
        offers = {offer_name(one): one for one in (*known, *route.get(_KEY, ()))}
        routes[name] = route | ({_KEY: [*offers.values()]} if offers else {})
    return routes


def offer_name(offer: Json) -> str:
    """What the model calls it."""
    return str(offer.get("function", {}).get("name", ""))
