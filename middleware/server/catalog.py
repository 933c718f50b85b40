"""Limits, abilities and prices of models: from the config, and from LiteLLM's data file, read
without importing LiteLLM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from adapters.kind import CommonAbilities, Kind
from adapters.options import made
from adapters.shared.traits import Traits
from middleware.config import ModelConfig

_FILE = "model_prices_and_context_window_backup.json"
_FAMILIES: tuple[tuple[str, str], ...] = (
    # AutoGen's names of families; what it does not know is "unknown" to it.
    ("gpt-4o", "gpt-4o"),
    ("gpt-4.1", "gpt-41"),
    ("gpt-4.5", "gpt-45"),
    ("gpt-4", "gpt-4"),
    ("gpt-3.5", "gpt-35"),
    ("gpt-5", "gpt-5"),
    ("o1", "o1"),
    ("o3", "o3"),
    ("o4", "o4"),
    ("claude-3-5-haiku", "claude-3-5-haiku"),
    ("claude-3-5-sonnet", "claude-3-5-sonnet"),
    ("claude-3-7-sonnet", "claude-3-7-sonnet"),
    ("claude-3-haiku", "claude-3-haiku"),
    ("claude-3-opus", "claude-3-opus"),
    ("claude-3-sonnet", "claude-3-sonnet"),
    ("claude-opus", "claude-4-opus"),
    ("claude", "claude-4-sonnet"),
    ("gemini-1.5-pro", "gemini-1.5-pro"),
    ("gemini-1.5", "gemini-1.5-flash"),
    ("gemini-2.0", "gemini-2.0-flash"),
    ("gemini-2.5-flash", "gemini-2.5-flash"),
    ("gemini", "gemini-2.5-pro"),
    ("codestral", "codestral"),
    ("mistral", "mistral"),
    ("ministral", "ministral"),
    ("pixtral", "pixtral"),
    ("llama-4-scout", "llama-4-scout"),
    ("llama-4", "llama-4-maverick"),
    ("llama-3.3", "llama-3.3-70b"),
)


_COSTS: Mapping[str, str] = {
    # As [models] `price` names them → as the data does.
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "reasoning": "output_cost_per_reasoning_token",
}


class _Entry(NamedTuple):
    traits: Traits
    prices: Mapping[str, float]


def known(kind: Kind, name: str) -> Traits:
    """What the data says of an upstream's model; no kind of ours is asked about another's."""
    own = kind.known_by_name(name) if kind.known_by_name else Traits()
    found = next(_entries(kind, name), None)
    return own if found is None else own.over(found.traits)


def prices(kind: Kind, name: str) -> Mapping[str, float] | None:
    """USD a token, by the names of [models] `price`; None: nothing is known."""
    return next((found.prices for found in _entries(kind, name) if found.prices), None)


def _entries(kind: Kind, name: str) -> Iterator[_Entry]:
    """The best first."""
    table = _table() if kind.catalog else {}
    for prefix in kind.catalog:
        for written in (prefix + name, prefix + name.rpartition("/")[2]):
            if (found := table.get(written)) is not None:
                yield found


def configured(model: ModelConfig) -> Traits:
    """What the config says, which outranks all that is known."""
    said = made(CommonAbilities, model.abilities)
    return Traits(
        context_length=model.context_length,
        tools=said.tools,
        vision=said.vision,
        reasoning=None if said.thinking is None else said.thinking != "off",
        json_schema=said.json_schema,
    )


def family(name: str) -> str:
    """AutoGen's word for a model's family."""
    last = name.lower().rpartition("/")[2]
    return next((family for start, family in _FAMILIES if last.startswith(start)), "unknown")


# Three megabytes of JSON: read on the first question, and only this is kept.
@cache
def _table() -> Mapping[str, _Entry]:
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    try:
        entries = orjson.loads((Path(spec.origin).parent / _FILE).read_bytes())
    except (OSError, orjson.JSONDecodeError):  # another version keeps it elsewhere
        return {}
    return dict(_useful(entries))


def _useful(entries: Any) -> Iterator[tuple[str, _Entry]]:
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        if isinstance(entry, dict) and entry.get("mode") in ("chat", "responses", "embedding"):
            yield name, _Entry(_traits(entry), _prices(entry))


def _traits(entry: Mapping[str, Any]) -> Traits:
    return Traits(
        context_length=_count(entry.get("max_input_tokens")),
        max_output=_count(entry.get("max_output_tokens")),
        tools=_flag(entry, "supports_function_calling"),
        parallel=_flag(entry, "supports_parallel_function_calling"),
        vision=_flag(entry, "supports_vision"),
        reasoning=_flag(entry, "supports_reasoning"),
        json_schema=_flag(entry, "supports_response_schema"),
    )


def _prices(entry: Mapping[str, Any]) -> Mapping[str, float]:
    told = {name: float(entry[cost]) for name, cost in _COSTS.items() if _is_cost(entry.get(cost))}
    return told if "input" in told else {}


def _is_cost(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0


def _flag(entry: Mapping[str, Any], name: str) -> bool | None:
    value = entry.get(name)
    return value if type(value) is bool else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None
