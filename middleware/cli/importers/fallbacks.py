"""LiteLLM's fallbacks → `fallback` of our models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from middleware.cli.importers.collecting import Taking, tables_of
from middleware.cli.importers.models import ModelTables
from middleware.config import PublicNames

_ANY = "*"
_KEYS = ("fallbacks", "context_window_fallbacks")
_DEFAULT = "default_fallbacks"
_POLICY = "content_policy_fallbacks"


def take_fallbacks(tables: ModelTables, *settings: Taking) -> None:
    usual = [(_ANY, _names(taking.take(_DEFAULT))) for taking in settings]
    for key in _KEYS:
        found = [pair for taking in settings for pair in _pairs(taking.take(key))]
        for name, others in found:
            _carry(tables, key, name, others)
        _carry_default(tables, [*found, *usual])
        usual = []
    for taking in settings:
        if taking.left.get(_POLICY):
            taking.lose(_POLICY, "a refusal is an answer here, and nobody else is asked")


def _carry_default(tables: ModelTables, pairs: Sequence[tuple[str, list[str]]]) -> None:
    """What stands for any model is of those that have none of their own."""
    named = {name for name, _ in pairs}
    others = [other for name, others in pairs if name == _ANY for other in others]
    for name in _public(tables):
        if others and name not in named:
            _carry(tables, _DEFAULT, name, others)


def _public(tables: ModelTables) -> list[str]:
    """Models that chat and that clients of LiteLLM could ask for."""
    embedding = {name for name, found in tables.found.items() if found[0].carried.embeds}
    apart = embedding | tables.places
    return [name for name in tables.models if tables.aliased.get(name, name) not in apart]


def _carry(tables: ModelTables, key: str, name: str, others: list[str]) -> None:
    if name == _ANY:
        return
    if name not in tables.models and not tables.copy(name, name):
        tables.lose(name, f"there is no such model ({', '.join(others)})", key)
        return
    also = (alias for alias, target in tables.aliased.items() if target == name)
    for model in (name, *also):
        for other in others:
            _add(tables, key, model, other)


def _add(tables: ModelTables, key: str, model: str, other: str) -> None:
    meant = PublicNames(tables.models).meant(other)
    fallback = tables.models[model].get("fallback") or []
    if meant is None:
        tables.lose(model, f"there is no model '{other}'", key)
    elif meant.id == model or other in fallback:
        return
    elif model in _reached(tables, meant.id):
        tables.lose(model, f"'{other}' has it as its own, which would be a circle", key)
    else:
        tables.models[model]["fallback"] = [*fallback, other]


def _reached(tables: ModelTables, start: str) -> set[str]:
    """Every model that stands behind one."""
    names, seen, waiting = PublicNames(tables.models), set[str](), [start]
    while waiting:
        table = tables.models[waiting.pop()]
        for name in (*(table.get("choices") or ()), *(table.get("fallback") or ())):
            meant = names.meant(name)
            if meant is not None and meant.id not in seen:
                seen.add(meant.id)
                waiting.append(meant.id)
    return seen


def _pairs(value: Any) -> Iterator[tuple[str, list[str]]]:
    """LiteLLM writes them as a list of tables: model → other models."""
    for _, entry in tables_of(value):
        yield from ((name, _names(others)) for name, others in entry.items())


def _names(value: Any) -> list[str]:
    """Of models; one may stand there with fields of its own."""
    said = [one.get("model") if isinstance(one, dict) else one for one in _listed(value)]
    return [one for one in said if isinstance(one, str)]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
