"""What models cost: what the config says, nothing on one's own machine, else LiteLLM's data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from adapters.kind import Kind
from adapters.protocol import Usage
from middleware.config import Config, PublicNames
from middleware.server import catalog

_MILLION = 1e6
_DIGITS = 12
"""Of a USD: what is behind them is of the sum, not of the prices."""
_MOST_NAMES = 4096


class Price(NamedTuple):
    """USD a token."""

    input: float
    output: float
    cached: float
    cache_write: float
    reasoning: float

    def cost(self, usage: Usage) -> float:
        """What is cached and written stands within the prompt, thoughts within the answer."""
        given, answered, cached, written, thought = self
        plain, cost = usage.prompt, usage.completion * answered
        if usage.cached:
            plain -= usage.cached
            cost += usage.cached * cached
        if usage.cache_write:
            plain -= usage.cache_write
            cost += usage.cache_write * written
        if usage.reasoning:
            cost += min(usage.reasoning, usage.completion) * (thought - answered)
        return round(cost + max(0, plain) * given, _DIGITS)


FREE = Price(0.0, 0.0, 0.0, 0.0, 0.0)


class Prices:
    """By the public name of a model that was asked."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._names = PublicNames(config.models)
        self._found: dict[str, Price | None] = {}
        self.watched = bool(config.clients or (config.ledger.url or "off") != "off")
        """Somebody keeps accounts here, who has to know what is missing in them."""
        for name in config.models:
            self.of(name)  # reads the data now, not while somebody waits

    def of(self, name: str) -> Price | None:
        """None: nobody knows."""
        try:
            return self._found[name]
        except KeyError:
            if len(self._found) >= _MOST_NAMES:
                self._found.clear()
            price = self._found[name] = self._price(name)
            return price

    def expected(self, name: str) -> Price:
        """Of who is likely to answer."""
        return self._found.get(name) or self._of_first(name)

    def _of_first(self, name: str) -> Price:
        """Of a model that is made of others."""
        for _ in range(len(self._config.models)):
            meant = self._names.meant(name)
            model = self._config.models[meant.id] if meant else None
            if model is None or not (model.choices or model.pipeline):
                break
            name = model.choices[0] if model.choices else model.pipeline["answerer"]
        return self.of(name) or FREE

    def _price(self, name: str) -> Price | None:
        meant = self._names.meant(name)
        if meant is None:
            return None
        model = self._config.models[meant.id]
        if model.price is not None:
            return _of_million(model.price)
        upstream = self._config.upstreams.get(model.upstream)
        upstreams_name = model.name.replace("*", meant.carried) if meant.carried else model.name
        return _known(upstream.language, upstreams_name) if upstream else None


def _known(kind: Kind, name: str) -> Price | None:
    if kind.free or kind.loads:
        return FREE
    told = catalog.prices(kind, name)
    return None if told is None else _price(told)


def _of_million(said: Mapping[str, float]) -> Price:
    return _price({name: figure / _MILLION for name, figure in said.items()}, whole=True)


def _price(told: Mapping[str, float], whole: bool = False) -> Price:
    """A missing price of the cache is the input's, of thoughts the output's.

    In the data a 0 for writing is missing too; in the config (`whole`) it is meant.
    """
    given, answered = told.get("input", 0.0), told.get("output", 0.0)
    written = told.get("cache_write", given)
    return Price(
        input=given,
        output=answered,
        cached=told.get("cached", given),
        cache_write=written if written or whole else given,
        reasoning=told.get("reasoning", answered),
    )
