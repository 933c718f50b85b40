"""Fields of requests, where a config names them."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from middleware.config.keys import OWN_FIELDS

# Fields OpenAI does not have and many servers take.
_USUAL = frozenset(
    {"enable_thinking", "min_p", "min_tokens", "repetition_penalty", "thinking", "top_a", "top_k"}
)
# "temprature" is above it; "top_k" beside "top_p", "min_tokens" beside "max_tokens" are not.
_ALIKE = 0.87


@lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    from middleware.doors import FIELDS  # late: it loads pydantic

    return FIELDS | _USUAL


def misspelt(name: str) -> str:
    """The field that is meant, as a question; a name that resembles none may be anybody's own."""
    from difflib import get_close_matches

    if name in _known():
        return ""
    plain = name.lower().replace("-", "_")
    close = get_close_matches(plain, _known() - OWN_FIELDS, n=1, cutoff=_ALIKE)
    return f" Did you mean '{close[0]}'?" if close else ""


def as_field(path: tuple[str, ...], value: Any) -> str:
    """What is written beside a model's keys and belongs into its requests."""
    name = path[-1]
    if path[0] != "models" or len(path) != 3 or name not in _known() - OWN_FIELDS:
        return ""
    dumped = json.dumps(value, default=str, ensure_ascii=False)
    said = f"{name} = {'{ … }' if isinstance(value, dict) else dumped}"
    return f" Write it as a field of requests: defaults = {{ {said} }}, or override = {{ {said} }}."
