"""The keys that kinds of upstreams bring along, and what follows where one was not given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from adapters.kind import CommonAbilities, Kind, all_kinds, known_kind
from adapters.options import options_of
from middleware.config.keys import MODEL, TIMEOUTS, Key
from middleware.wrappers.emulation.settings import Emulation

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def keys_of(described: type[DataclassInstance]) -> Mapping[str, Key]:
    """The fields of a kind's options or abilities as keys: not given, they stay None."""
    said = options_of(described).items()
    return {name: Key(one["allowed"], one["text"]) for name, one in said}


@cache
def option_keys(kind: str) -> Mapping[str, Key]:
    """What `options` may hold: of its kind and of tools by prompt; of any kind if none is named."""
    own = _joined([one.options for one in _kinds(kind)])
    return {**own, **{name: key for name, key in emulation_keys().items() if name not in own}}


@cache
def emulation_keys() -> Mapping[str, Key]:
    """What may be set of tools by prompt."""
    return keys_of(Emulation)


@cache
def ability_keys(kind: str) -> Mapping[str, Key]:
    return _joined([*(one.abilities for one in _kinds(kind)), CommonAbilities])


def _joined(described: Sequence[type[DataclassInstance]]) -> Mapping[str, Key]:
    """The keys of all; of two with one name the first counts."""
    joined: dict[str, Key] = {}
    for one in described:
        joined = {**joined, **{n: key for n, key in keys_of(one).items() if n not in joined}}
    return joined


def model_keys(kind: str, written: Mapping[str, Any]) -> Mapping[str, Key]:
    """What a model may have: options and abilities too, and what of other kinds is written there,
    which is let be.
    """
    keys = {**ability_keys(kind), **option_keys(kind), **MODEL}
    if written.keys() <= keys.keys():
        return keys
    every = {**ability_keys(""), **option_keys("")}
    return {**{name: every[name] for name in written if name in every}, **keys}


def _kinds(name: str) -> list[Kind]:
    return [known_kind(name)] if name else all_kinds()


def given_of(values: Mapping[str, Any], known: Mapping[str, Key]) -> dict[str, Any]:
    return {name: values[name] for name in known if values[name] is not None}


def timeouts_of(
    kind: Kind, common: Mapping[str, Any], own: Mapping[str, Any]
) -> Mapping[str, float]:
    """What is configured wins; idle also bounds an open block, first_event a plain answer."""
    configured = {**given_of(common, TIMEOUTS), **given_of(own, TIMEOUTS)}
    if "idle" in configured:
        configured.setdefault("idle_open", configured["idle"])
    if "first_event" in configured:
        configured.setdefault("plain", configured["first_event"])
    return {**kind.timeouts, **configured}


def of_any_kind(written: Mapping[str, Any]) -> dict[str, Any]:
    """What a model may have whatever its upstream is."""
    known = MODEL.keys() - {"options", "abilities"}
    return {name: value for name, value in written.items() if name in known}
