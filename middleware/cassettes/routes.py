"""What a cassette keeps of a config: enough to answer for its models, no address, header or key."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

from adapters.kind import Kind, all_kinds, usable_kind
from adapters.options import PATH, TABLE
from adapters.protocol import Json
from adapters.wire.http import Transport
from middleware.building import Means, build_with
from middleware.cassettes.cassette import Cassette
from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.file.schema import ANY, EACH, Misshapen, checked
from middleware.cassettes.record.offers import offer_name
from middleware.cassettes.replay.tools import PlayedTools, played_offer
from middleware.cassettes.replay.wire import PlayedLink, fact_key, repeat_as_recorded
from middleware.config import (
    Config,
    ConfigError,
    Meant,
    ModelConfig,
    PublicNames,
    UpstreamConfig,
    keys,
    kind_keys,
    read,
)
from middleware.machine.memory import MemoryBoard
from middleware.routing import Routes
from middleware.state.memory import MemoryState
from middleware.wrappers.recall import MemoryStore
from middleware.wrappers.retry import Retry

_FIELDS = ("tools", "defaults", "override", "drop", "retry", "abilities", "recall", "reasoning")
_OF_TOOLS = ("max_rounds", "steps", "takeover")
_SERVER_TOOLS = ("server_tools", *_OF_TOOLS)
"""What a route says of server tools; their declarations are the recorder's to say."""
_SHAPE: Mapping[str, Any] = {
    "server_tools": [
        {EACH: ANY, "function": {EACH: ANY, "name": str}, "id": str, "takeover": bool}
    ],
    "max_rounds": int,
    "steps": ANY,
    "takeover": [str],
}
_PARTS = ("reasoner", "answerer")


def routes_of(config: Config, model: str) -> Iterator[tuple[str, Json]]:
    """What is needed to answer for a model, its parts included, by public name."""
    meant = PublicNames(config.models).meant(model)
    if meant is None:
        return
    found = config.models[meant.id]
    tools = _tools(found)
    if not found.pipeline:
        alone = {} if found.choices else _route(config, found, _name(found, meant))
        yield model, alone | _choices(found) | tools
        for other in (*found.choices, *found.fallback):
            yield from routes_of(config, other)
        return
    route = {name: value for name, value in found.pipeline.items() if value is not None}
    yield model, route | _changed(found, None) | tools
    for part in _PARTS:
        yield from routes_of(config, route[part])
    if search := route.get("search"):
        yield search, {"kind": config.upstreams[search].kind}


def reading_of(config: Config) -> dict[str, bool]:
    """What of [server] changes how asks are read."""
    said = {"strict": config.server.strict, "history_repair": config.server.history_repair}
    return {name: value for name, value in said.items() if value}


def _route(config: Config, model: ModelConfig, name: str) -> Json:
    upstream = config.upstreams[model.upstream]
    route: Json = {"kind": upstream.kind, "upstream": upstream.id, "name": name}
    if _is_public(upstream):
        route["base_url"] = upstream.base_url
    if upstream.api_version != upstream.language.api_version:
        route["api_version"] = upstream.api_version
    options = _portable(upstream.kind, {**upstream.options, **model.options})
    return route | _changed(model, upstream.language) | ({"options": options} if options else {})


def _name(model: ModelConfig, meant: Meant) -> str:
    return model.name.replace("*", meant.carried)


def _choices(model: ModelConfig) -> Json:
    """Those it is made of, or falls back to; who of them is asked is what was recorded."""
    said = {name: [*getattr(model, name)] for name in ("choices", "fallback")}
    route = {name: names for name, names in said.items() if names}
    return route | _changed(model, None) if model.choices else route


def _tools(model: ModelConfig) -> Json:
    said = {name: getattr(model, name) for name in _OF_TOOLS}
    changed = {name: value for name, value in said.items() if value != keys.MODEL[name].default}
    return {name: [*value] if name == "takeover" else value for name, value in changed.items()}


def _is_public(upstream: UpstreamConfig) -> bool:
    """Whether it is a service people know by name, whose language may depend on its address."""
    services = {one.base_url for kind in all_kinds() for one in kind.services.values()}
    return bool(upstream.base_url) and upstream.base_url in {*services, upstream.language.base_url}


def _portable(kind: str, options: Mapping[str, Any]) -> Json:
    """Without paths of this machine, and tables in which a library's keys may stand."""
    known = kind_keys.option_keys(kind)
    return {
        name: value
        for name, value in options.items()
        if name in known and known[name].allowed not in (PATH, TABLE)
    }


def _changed(model: ModelConfig, kind: Kind | None) -> Json:
    """What the config says that is not as usual."""
    usual: Json = {name: keys.MODEL[name].default for name in _FIELDS}
    usual["recall"] = kind is None or kind.remembers
    said: Json = {name: getattr(model, name) for name in _FIELDS}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in said.items()
        if value != usual[name] and value is not None
    }


def played_routes(cassette: Cassette, path: str, config: Config | None = None) -> Routes:
    """The routes of a cassette, or of a config, over what was recorded."""
    facts = {
        fact_key(fact["upstream"], fact["method"], fact["path"], fact.get("ask")): fact["answer"]
        for fact in cassette.facts
    }

    def link(upstream: UpstreamConfig) -> PlayedLink:
        compares = upstream.language.recorded is None
        # It has no pool of connections and no key, and makes none.
        return PlayedLink(
            upstream.id, upstream.base_url, Transport(), facts=facts, compares=compares
        )

    never_open, retry = MemoryBoard(math.inf), partial(Retry, wait_or_raise=repeat_as_recorded)
    routes = _tools_in(cassette, path)
    means = Means(link, never_open, MemoryState(), _played_tools(routes), retry, recorded=True)
    played = _with_tools(config or _config_of(cassette, path), routes)
    return build_with(means, played, MemoryStore())


def _tools_in(cassette: Cassette, path: str) -> Mapping[str, Json]:
    """What the routes say of server tools."""
    try:
        return {
            name: checked({key: route[key] for key in _SERVER_TOOLS if key in route}, _SHAPE, name)
            for name, route in cassette.routes.items()
            if isinstance(route, dict)
        }
    except Misshapen as error:
        raise UnreadableCassette(path, f"its routes cannot be meant: {error}") from None


def _offers_of(route: Json) -> Iterator[Json]:
    return (one for one in route.get("server_tools", ()) if offer_name(one))


def _played_tools(routes: Mapping[str, Json]) -> PlayedTools:
    every = [(model, one) for model, route in routes.items() for one in _offers_of(route)]
    return PlayedTools(
        {f"{model}:{offer_name(one)}": played_offer(one) for model, one in every},
        {offer_name(one): played_offer(one) for _, one in every},
    )


def _with_tools(config: Config, routes: Mapping[str, Json]) -> Config:
    """With the server tools that were recorded, and no others: those of a config are not run."""
    models = {}
    for name, model in config.models.items():
        route = routes.get(name, {})
        offers = [*_offers_of(route)]
        known = [*map(offer_name, offers)]
        models[name] = replace(
            model,
            server_tools=tuple(
                f"{name}:{offer_name(one)}" for one in offers if not one.get("takeover")
            ),
            takeover=tuple(one for one in route.get("takeover", ()) if one in known),
            max_rounds=route.get("max_rounds", model.max_rounds),
            steps=route.get("steps", model.steps),
        )
    return replace(config, models=models)


def _config_of(cassette: Cassette, path: str) -> Config:
    upstreams: Json = {}
    models: Json = {}
    for name, recorded in cassette.routes.items():
        route = recorded
        if isinstance(route, dict):
            route = {key: route[key] for key in route if key not in _SERVER_TOOLS}
        if "kind" not in route:
            models[name] = route
            continue
        kind = usable_kind(str(route["kind"]))
        answers = kind is None or kind.connect is not None
        upstream = str(route.get("upstream", route["kind"]) if answers else name)
        upstreams[upstream] = _upstream(upstream, route)
        if answers:
            rest = route.keys() - {"kind", "base_url", "api_version"}
            models[name] = {part: route[part] for part in rest} | {"upstream": upstream}
    said: Json = {"server": {**cassette.server}, "upstreams": upstreams, "models": models}
    said |= {"recall": {"store": "memory"}, "cassettes": {"mode": "replay"}}
    try:
        return read(said, path)
    except ConfigError as error:
        told = "; ".join(f"{one.key}: {one.text}" for one in error.mistakes)
        raise UnreadableCassette(path, f"its routes cannot be meant: {told}") from error


def _upstream(name: str, route: Json) -> Json:
    said = {"kind": route["kind"], "api_key": "replayed"}
    said["base_url"] = route.get("base_url") or f"http://{quote(name, safe='')}.test"
    return said | ({"api_version": route["api_version"]} if "api_version" in route else {})
