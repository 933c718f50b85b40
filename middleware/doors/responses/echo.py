"""What of a request its answer repeats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.protocol import Json

_AS_SENT = (
    *("instructions", "max_output_tokens", "max_tool_calls", "previous_response_id", "temperature"),
    *("top_p", "user", "safety_identifier", "prompt_cache_key"),
)


_USUAL: Mapping[str, Any] = {
    "metadata": {},
    "service_tier": "default",
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "truncation": "disabled",
}


def echo(data: Json, keeps: bool) -> Json:
    """Members that every response object has; `store` says what is done."""
    thinking, text = data.get("reasoning") or {}, data.get("text") or {}
    return {
        "model": data["model"],
        **{name: data.get(name) for name in _AS_SENT},
        "parallel_tool_calls": data.get("parallel_tool_calls") is not False,
        "reasoning": {name: thinking.get(name) for name in ("effort", "summary")},
        "store": keeps and data.get("store") is not False,
        "text": {**text, "format": text.get("format") or {"type": "text"}},
        **{name: data.get(name) or usual for name, usual in _USUAL.items()},
    }
