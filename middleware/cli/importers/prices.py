"""What LiteLLM's config says of a model's prices and limits."""

from __future__ import annotations

from collections.abc import Mapping

from middleware.cli.importers.collecting import Table, Taking

# USD a token there, a million here.
_PRICES: Mapping[str, str] = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "reasoning": "output_cost_per_reasoning_token",
}
_MILLION, _DIGITS = 1e6, 9
SHARES = ("weight", "rpm", "tpm")
"""What LiteLLM shuffles deployments by: the first of these that one of them has."""


def price_of(params: Taking, about: Taking) -> Table | None:
    found: Table = {}
    for name, key in _PRICES.items():
        said = [taking.number(key, 0, 1) for taking in (params, about)]
        if (price := next((one for one in said if one is not None), None)) is not None:
            found[name] = round(price * _MILLION, _DIGITS)
    return found or None


def shares_of(params: Taking) -> dict[str, float]:
    """Its part of the load, and its `order`, in which a smaller number is asked first."""
    found = {key: params.number(key, 0, 1e8) for key in (*SHARES, "order")}
    return {key: value for key, value in found.items() if value is not None}
