"""What is said when nobody can answer a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from adapters.errors import BadRequest
from adapters.outcomes import Passing

_WHY: Mapping[Passing, str] = {
    "absent": "is not available",
    "no_vision": "does not read images",
    "no_tools": "has no tools of its own",
    "no_json_schema": "cannot be held to a JSON schema",
    "no_context": "has too small a context",
    "lossy": "cannot take it as it was sent",
}


class Excluded(NamedTuple):
    """A place that cannot answer the request, whoever else can."""

    place: str
    reason: Passing
    error: BadRequest | None = None
    """What it says itself."""


def no_choice(model: str, excluded: Sequence[Excluded]) -> BadRequest:
    if len(excluded) == 1 and excluded[0].error is not None:
        return excluded[0].error
    whys = [
        f"{one.place} ({one.reason}): {one.error.message if one.error else _WHY[one.reason]}"
        for one in excluded
    ]
    refused = next((one.error for one in excluded if one.error is not None), None)
    return BadRequest(
        f"None of the models behind '{model}' can answer this request. {'; '.join(whys)}.",
        code="no_choice",
        param=refused.param if refused else None,
    )
