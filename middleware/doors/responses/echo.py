"""What of a request its answer repeats."""

from __future__ import annotations

from adapters.protocol import Json

_AS_SENT = (
    *("instructions", "max_output_tokens", "max_tool_calls", "previous_response_id", "temperature"),
    *("top_p", "user", "safety_identifier", "prompt_cache_key"),
)


def echo(data: Json, keeps: bool) -> Json:
    """Members that every response object has; `store` says what is done."""
    thinking, text = data.get("reasoning") or {}, data.get("text") or {}
    return {
        "model": data["model"],
        **{name: data.get(name) for name in _AS_SENT},
        "metadata": data.get("metadata") or {},
        "parallel_tool_calls": data.get("parallel_tool_calls") is not False,
        "reasoning": {name: thinking.get(name) for name in ("effort", "summary")},
        "service_tier": data.get("service_tier") or "default",
        "store": keeps and data.get("store") is not False,
        "text": {**text, "format": text.get("format") or {"type": "text"}},
        "tool_choice": data.get("tool_choice") or "auto",
        "tools": data.get("tools") or [],
        "top_logprobs": data.get("top_logprobs") or 0,
        "truncation": data.get("truncation") or "disabled",
    }
