"""The names metrics and traces may use: those of the config, so that clients make no series."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from middleware.config import Config, PublicNames, UpstreamConfig

OTHER = "other"
_REMEMBERED = 1000
_LONGEST = 100


class ProviderFacts(NamedTuple):
    name: str = ""
    address: str = ""
    port: int | None = None


class Vocabulary:
    """Follows the config; what was counted under a name that is gone stays."""

    def __init__(self, config: Config) -> None:
        self.follow(config)

    def follow(self, config: Config) -> None:
        self._own = {name: name for name in config.models if "*" not in name}
        self._meant = lru_cache(_REMEMBERED)(PublicNames(config.models).meant)
        self._models = config.models
        self._upstream_models = {model.name for model in config.models.values()}
        self._upstreams: Mapping[str, ProviderFacts] = {
            name: _provider_of(upstream) for name, upstream in config.upstreams.items()
        }

    def model(self, name: str) -> str:
        """The line of the config under which a name is answered."""
        return self._own.get(name) or self._patterned(name)

    def _patterned(self, name: str) -> str:
        meant = self._meant(name)
        return meant.id if meant else OTHER

    def asked_and_answered(self, place: str, asked: str, answered: str | None) -> tuple[str, str]:
        """The upstream's names for a model: the one it was asked for, the one it says it is.

        Behind a pattern both are the client's words.
        """
        if place in self._own:
            return asked, (answered or "")[:_LONGEST]
        line = self._models.get(self.model(place))
        name = line.name if line else OTHER
        return name, "" if answered is None else name

    def upstream_model(self, name: str) -> str:
        """An upstream's name for a model, if the config says it."""
        return name if name in self._upstream_models else OTHER

    def provider(self, upstream: str) -> ProviderFacts:
        return self._upstreams.get(upstream, _UNKNOWN)


_UNKNOWN = ProviderFacts()


def _provider_of(upstream: UpstreamConfig) -> ProviderFacts:
    kind = upstream.language
    place = urlsplit(upstream.base_url)
    return ProviderFacts(kind.provider or kind.name, place.hostname or "", place.port)
