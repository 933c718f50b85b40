"""The upstreams and models of a new config, as they are found in LiteLLM's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from middleware.cli.importers import toml
from middleware.cli.importers.collecting import Lost, Surroundings, Table, Taking, table_of
from middleware.cli.importers.deployment import CarriedOver, NotCarried, Usual, carry
from middleware.cli.importers.prices import SHARES
from middleware.config import PublicNames

_ALIAS = "router_settings.model_group_alias"
_NO_RATES = "an upstream has no rates here: one that answers 429 rests, and clients have limits"
_ONE = "there is only one deployment of this name"
_KEYS = "keys of one upstream serve equal shares"
_PICKED = "the deployments are not picked by it"


@dataclass(frozen=True, slots=True)
class Deployment:
    """One of perhaps several that serve a name."""

    carried: CarriedOver
    params: Taking
    about: Taking

    @property
    def order(self) -> float:
        return self.carried.shares.get("order", float("inf"))

    @property
    def alike(self) -> tuple[str, Table, Table]:
        """What is the same where only the keys differ."""
        carried = self.carried
        return carried.upstream, {**carried.service, "api_key": None}, carried.model

    def lose_shares(self, why: str, *used: str) -> None:
        for key in self.carried.shares:
            if key not in used:
                self.params.lose(key, _NO_RATES if key in ("rpm", "tpm") else why)


@dataclass(slots=True)
class ModelTables:
    around: Surroundings
    usual: Usual
    pick: str
    upstreams: dict[str, Table] = field(default_factory=dict)
    models: dict[str, Table] = field(default_factory=dict)
    found: dict[str, list[Deployment]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    aliased: dict[str, str] = field(default_factory=dict)
    """Another name → the model it is of."""
    places: set[str] = field(default_factory=set)
    """Models that only others are made of."""
    lost: list[Lost] = field(default_factory=list)

    def add(self, place: int, entry: Table, credentials: Mapping[str, Table]) -> None:
        name = str(entry.get("model_name") or "")
        if not name:
            self.lose(f"model_list[{place}]", "it has no model_name: clients could not ask for it")
            return
        given = table_of(entry.get("litellm_params"))
        shared = credentials.get(str(given.pop("litellm_credential_name", "")), {})
        beside = {key: entry[key] for key in (*SHARES, "order") if key in entry}
        params = Taking(name, "litellm_params.", {**shared, **beside, **given}, self.around)
        about = Taking(name, "model_info.", table_of(entry.get("model_info")), self.around)
        try:
            carried = carry(params, about, self.usual)
            _check_stars(name, str(carried.model["name"]))
        except NotCarried as error:
            self.lose(name, str(error))
            return
        self.found.setdefault(name, []).append(Deployment(carried, params, about))

    def settle(self) -> None:
        """Make models of what was found: of one deployment, of keys, of several places."""
        for name, deployments in self.found.items():
            merged = self.with_keys(deployments)
            if len(merged) > 1 and "*" in name:
                self.lose(name, "a second deployment: a name with a * has one upstream here")
                merged = merged[:1]
            if len(merged) == 1:
                merged[0].lose_shares(_ONE if len(deployments) == 1 else _KEYS)
                self.models[name] = self.written(name, merged[0].carried)
            else:
                self.several(name, merged)
            for each in deployments:
                self.lost += [*each.params.lost, *each.about.lost]

    def with_keys(self, deployments: Sequence[Deployment]) -> list[Deployment]:
        """Those that differ in their keys alone become one with all of them."""
        merged: list[Deployment] = []
        for each in deployments:
            twin = next((one for one in merged if one.alike == each.alike), None)
            if twin is None:
                merged.append(each)
                continue
            each.lose_shares(_KEYS)
            _join_keys(twin.carried.service, each.carried.service["api_key"])
        return merged

    def several(self, name: str, deployments: Sequence[Deployment]) -> None:
        ordered = sorted(deployments, key=lambda each: each.order)
        names = [self.place(name, each.carried) for each in ordered]
        orders = [each.order for each in ordered]
        one_by_one = len(set(orders)) == len(orders)
        chosen = len(orders) if one_by_one else orders.count(orders[0])
        pick = "order" if one_by_one else self.pick
        weights = _weights(ordered[:chosen], pick)
        for each in ordered[chosen:]:
            each.lose_shares(_PICKED, "order")
        self.models[name] = {
            "choices": names[:chosen],
            "pick": pick,
            "weights": weights,
            "retry": self.usual.retries,
            "fallback": names[chosen:] or None,
        }

    def place(self, name: str, carried: CarriedOver) -> str:
        """A model for one of several deployments, under a name that is free."""
        wanted = f"{name}-{self.upstream(carried)}"
        free, number = wanted, 1
        while free in self.models or free in self.found:
            number += 1
            free = f"{wanted}-{number}"
        self.models[free] = self.written(free, carried)
        self.places.add(free)
        return free

    def written(self, name: str, carried: CarriedOver) -> Table:
        model = {"upstream": self.upstream(carried), **carried.model}
        return model | ({"name": None} if model["name"] == name else {})

    def upstream(self, carried: CarriedOver) -> str:
        """The upstream that is already there, or a new one under a name that is free."""
        name, number = carried.upstream, 1
        while self.upstreams.setdefault(name, carried.service) != carried.service:
            number += 1
            name = f"{carried.upstream}-{number}"
        return name

    def name_again(self, aliases: Mapping[str, Any]) -> None:
        for alias, said in aliases.items():
            target = str(said.get("model", "")) if isinstance(said, dict) else str(said)
            if alias in self.models:
                self.lose(alias, "is a model already", _ALIAS)
            elif "*" in alias or not self.copy(alias, target):
                self.lose(alias, f"there is no model '{target}' for it", _ALIAS)
            else:
                self.aliased[alias] = target
                self.notes[alias] = [f"Another name for {target}."]
                if isinstance(said, dict) and said.get("hidden"):
                    self.lose(alias, "is hidden there; GET /v1/models tells all names", _ALIAS)

    def copy(self, alias: str, target: str) -> bool:
        """Another name for what `target` means."""
        meant = PublicNames(self.models).meant(target)
        if meant is None:
            return False
        model = self.models[meant.id]
        if "choices" not in model:
            model = {**model, "name": str(model.get("name") or meant.id)}
            model["name"] = model["name"].replace("*", meant.carried)
        self.models[alias] = dict(model)
        return True

    def lose(self, name: str, why: str, key: str = "model_list") -> None:
        self.lost.append(Lost(name, key, why))

    def sections(self) -> Iterator[str]:
        yield from (toml.table(("upstreams", n), table) for n, table in self.upstreams.items())
        for name, table in self.models.items():
            yield toml.table(("models", name), table, self.notes.get(name, ()))


def _check_stars(name: str, called: str) -> None:
    if name.count("*") > 1:
        raise NotCarried("its name has more than one *")
    if called.count("*") > name.count("*"):
        raise NotCarried("a * in the upstream's name needs one in the model's own")


def _join_keys(service: Table, key: str | None) -> None:
    own = service["api_key"]
    keys = [*own] if isinstance(own, list) else [own]
    joined = [*dict.fromkeys(filter(None, (*keys, key)))]
    service["api_key"] = joined[0] if len(joined) == 1 else joined or None


def _weights(deployments: Sequence[Deployment], pick: str) -> list[float] | None:
    """By the first measure that one of them has; None: all the same."""
    said = (key for key in SHARES if any(each.carried.shares.get(key) for each in deployments))
    measure = next(said, "") if pick == "weight" else ""
    for each in deployments:
        each.lose_shares(_PICKED, "order", measure)
    return [each.carried.shares.get(measure, 0) for each in deployments] if measure else None
