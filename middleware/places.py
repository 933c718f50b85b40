"""Models of several places, or of several keys: who they are made of, and what is known of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from adapters.kind import CommonAbilities
from adapters.leaf import Leaf
from adapters.options import made
from adapters.protocol import Usage
from adapters.shared.traits import Traits
from adapters.wire.http import Timeouts
from middleware.accounts.prices import Price, Prices
from middleware.config import Config, Meant, ModelConfig, PublicNames
from middleware.links import Connected
from middleware.server import catalog
from middleware.state.store import State
from middleware.wrappers.choices import Alternative, Choices, ChoiceSettings
from middleware.wrappers.choices.alternative import CostOf
from middleware.wrappers.recall import Recall
from middleware.wrappers.route import Absent, Route, changes
from middleware.wrappers.strict import Strict

MakeRoute = Callable[[ModelConfig], Route | Absent]
_NAMES_KNOWN = 256


def counted(config: Config) -> set[str]:
    """Upstreams whose open calls somebody compares."""
    names, found = PublicNames(config.models), set()
    for model in config.models.values():
        if model.pick == "busy" or (model.pick == "weight" and model.sticky):
            meant = [names.meant(name) for name in model.choices]
            found |= {config.models[one.id].upstream for one in meant if one}
    return found & config.upstreams.keys()


@dataclass(frozen=True, slots=True)
class PlaceBuilder:
    config: Config
    upstreams: Mapping[str, Connected]
    state: State
    make: MakeRoute
    """A model of an upstream, or a pipeline, by itself."""
    strict: bool
    played: bool = False
    """What was recorded is: nobody rests, and nothing is waited for."""
    apart: frozenset[str] = frozenset()
    """Upstreams whose thoughts others of their kind must not see."""
    asked: str = ""
    """What those places are asked by: what stands there for a `*` stands for theirs too."""

    def are_several(self, model: ModelConfig) -> bool:
        """Whether there is anything to choose: places, or keys of one."""
        return bool(model.choices or model.fallback) or self._has_keys(model)

    def route(self, model: ModelConfig) -> Route | Absent:
        return replace(self, apart=self._rivals(model), asked=model.name)._route(model)

    def _route(self, model: ModelConfig) -> Route | Absent:
        own = Absent(model.id, "") if model.choices else self.make(model)
        choices = tuple(self._all(model.choices, model.weights))
        places = choices or (self._place(model.id, Meant(model.id), own),)
        fallback = tuple(self._all(model.fallback))
        if model.pick == "cost":
            places = _priced(places, Prices(self.config))
        if all(place.absent for place in (*places, *fallback)):
            return own if not model.choices else _nobody(model, (*places, *fallback))
        sticky = model.sticky and len(places) > 1 and not self.played
        settings = ChoiceSettings(
            model.pick,
            sticky,
            native=model.tools == "native",
            times=0 if self.played else model.retry,
            total=self._total(model),
            keyed=any(place.several_keys for place in places),
        )
        adapter = Choices(model.id, places, fallback, settings, self.state)
        if model.choices:
            return Route(adapter, model.name, changes(model))
        # What the config changes about its requests is for its own place.
        return Route(adapter, model.name, None, own.leaf, own.guarded)

    def _has_keys(self, model: ModelConfig) -> bool:
        upstream = self.upstreams.get(model.upstream)
        return upstream is not None and len(upstream.ring.secrets) > 1

    def _all(self, names: Sequence[str], weights: Sequence[float] = ()) -> Iterator[Alternative]:
        for name, weight in zip(names, weights or (1.0,) * len(names), strict=True):
            yield from self._named(name, weight)

    def _named(self, name: str, weight: float) -> Iterator[Alternative]:
        """The place of a name; of a model of choices all of its own, by their shares."""
        meant = self._meant(name)
        model = self.config.models[meant.id]
        if not model.choices:
            yield replace(self._place(name, meant, self.make(model)), weight=weight)
            return
        whole, changed = sum(model.weights) or len(model.choices), changes(model)
        names = [one.replace("*", meant.carried or "*") for one in model.choices]
        for place in self._all(names, model.weights):
            adapter = Route(place.adapter, "", changed) if changed else place.adapter
            yield replace(place, adapter=adapter, weight=weight * place.weight / whole)

    def _place(self, name: str, meant: Meant, route: Route | Absent) -> Alternative:
        model = self.config.models[meant.id]
        if isinstance(route, Absent):
            return Alternative(name, route, absent=route.reason)
        upstreams_name = model.name.replace("*", meant.carried or "*")
        inner = route.inner
        if isinstance(inner, Recall) and model.upstream in self.apart:
            inner = replace(inner, apart=True)
        inner = Strict(inner) if self.strict else inner
        renamed = route.name.replace("*", meant.carried or "*")
        adapter = replace(route, inner=inner, name=renamed, asked=self.asked)
        upstream = self.upstreams.get(model.upstream)
        if upstream is None or route.leaf is None:
            return self._of_pipeline(Alternative(name, adapter), model)
        return Alternative(
            name,
            adapter,
            upstreams_name,
            ready=None if self.played else upstream.ring,
            upstream=upstream.config.id,
            budget=upstream.budget,
            queues=upstream.ring.limit is not None,
            several_keys=self._has_keys(model),
            emulates=_emulates(model, upstream),
            asked=self.asked,
            traits=_traits(model, upstream, route.leaf, upstreams_name),
        )

    def _of_pipeline(self, place: Alternative, model: ModelConfig) -> Alternative:
        """It can do what its answerer can."""
        first = next(self._named(model.pipeline["answerer"], 1.0))
        traits = first.traits(first.model)
        return replace(place, emulates=first.emulates, traits=lambda _: traits)

    def _rivals(self, model: ModelConfig) -> frozenset[str]:
        """Upstreams of its places that have others of their kind beside them."""
        upstreams = self._upstreams(model)
        kinds = [self.upstreams[name].config.kind for name in upstreams]
        return frozenset(
            name for name in upstreams if kinds.count(self.upstreams[name].config.kind) > 1
        )

    def _upstreams(self, model: ModelConfig) -> set[str]:
        found = {model.upstream} if model.upstream else set()
        for name in (*model.choices, *model.fallback):
            other = self.config.models[self._meant(name).id]
            found |= self._upstreams(other) if other.choices else {other.upstream} - {""}
        return found

    def _total(self, model: ModelConfig) -> float:
        """Whoever of them may take the longest."""
        found = [self.upstreams[name].link.timeouts.total for name in self._upstreams(model)]
        return max(found, default=Timeouts().total)

    def _meant(self, name: str) -> Meant:
        """What a name of the config means; it was checked."""
        meant = PublicNames(self.config.models).meant(name)
        assert meant is not None
        return meant


def _nobody(model: ModelConfig, places: Sequence[Alternative]) -> Absent:
    return Absent(model.id, "; ".join(f"{place.name}: {place.absent}" for place in places))


def _priced(places: Sequence[Alternative], prices: Prices) -> tuple[Alternative, ...]:
    found = [(place, prices.of(place.name)) for place in places]
    return tuple(replace(place, cost=_cost(price)) if price else place for place, price in found)


def _cost(price: Price) -> CostOf:
    return lambda asked, answered: price.cost(Usage(asked, answered))


def _emulates(model: ModelConfig, upstream: Connected) -> bool:
    has_tools = made(CommonAbilities, model.abilities).tools
    if has_tools is None:
        has_tools = upstream.config.language.native_tools
    return model.tools == "emulated" or (model.tools == "auto" and has_tools is False)


def _traits(
    model: ModelConfig, upstream: Connected, leaf: Leaf, name: str
) -> Callable[[str], Traits]:
    """What is known of a model now, asking nobody: the config before the leaf, the catalogue."""
    said, kind = catalog.configured(model), upstream.config.language
    joined: dict[str, tuple[Traits, Traits]] = {}
    """The upstream's name → what the leaf said, and what came of that."""

    def known(asked: str) -> Traits:
        told, found = leaf.known(asked), joined.get(asked)
        if found is None or (found[0] is not told and found[0] != told):
            if len(joined) >= _NAMES_KNOWN:
                joined.clear()
            found = joined[asked] = told, said.over(told).over(catalog.known(kind, asked))
        return found[1]

    known(name)  # reads the data now, not while somebody waits
    return known
