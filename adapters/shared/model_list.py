"""OpenAI's `GET /models`, as compatible servers answer it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.shared.traits import Traits
from adapters.wire.http import Link
from adapters.wire.json_text import objects_in

PATIENCE = 3.0
"""Seconds a list of models may take: a client is waiting for ours."""
Listed = dict[str, Traits]
"""Models by their upstream's own names."""
_LENGTHS = ("context_length", "max_model_len", "context_window", "max_context_length")


async def models_at(link: Link, path: str) -> Listed:
    return read_models(await link.fetch("GET", path, None, PATIENCE))


def read_models(answer: Any) -> Listed:
    listed = answer.get("data") if isinstance(answer, dict) else answer
    found = objects_in(listed)
    return {one["id"]: _traits(one) for one in found if isinstance(one.get("id"), str)}


def _traits(entry: Mapping[str, Any]) -> Traits:
    """vLLM says max_model_len, OpenRouter and others context_length and supported_parameters."""
    parameters = entry.get("supported_parameters")
    able = set(map(str, parameters)) if isinstance(parameters, list) else None
    shape = entry.get("architecture")
    inputs = shape.get("input_modalities") if isinstance(shape, dict) else None
    return Traits(
        context_length=next((n for name in _LENGTHS if (n := _count(entry.get(name)))), None),
        max_output=_count(entry.get("max_output_tokens")),
        tools=None if able is None else "tools" in able,
        reasoning=None if able is None else bool(able & {"reasoning", "include_reasoning"}),
        json_schema=None if able is None else "structured_outputs" in able,
        vision=None if not isinstance(inputs, list) else "image" in inputs,
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None
