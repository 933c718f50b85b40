"""The request's own fields → OpenAI's, and what only Claude has."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from adapters.protocol import Json
from adapters.receipts import Note, Receipt

_SAME = ("temperature", "top_p")
_MOST_STOPS = 4
"""That OpenAI's shape may have."""
# Budget of thought from which on an effort is meant.
_EFFORTS = ((16_384, "xhigh"), (8192, "high"), (2048, "medium"), (0, "low"))
_REFUSED = ("mcp_servers", "container")
# What is read here, and what every client of Claude's sends without meaning anything by it.
_KNOWN = frozenset(
    {
        *(
            "model",
            "messages",
            "system",
            "max_tokens",
            "stream",
            "tools",
            "tool_choice",
            "thinking",
        ),
        *("output_config", "output_format", "stop_sequences", "temperature", "top_p", "top_k"),
        *("metadata", "cache_control", "betas", *_REFUSED),
    }
)


def params_of(data: Json) -> Json:
    """OpenAI's fields for those that mean the same."""
    params: Json = {name: data[name] for name in _SAME if data.get(name) is not None}
    if data.get("max_tokens"):
        params["max_completion_tokens"] = data["max_tokens"]
    others = {
        "stop": _stops(data)[:_MOST_STOPS],
        "reasoning_effort": _effort(data),
        "response_format": _format(data),
        "safety_identifier": _user(data),
    }
    return params | {name: value for name, value in others.items() if value}


def _stops(data: Json) -> list[str]:
    """Those that somebody could see: others are refused."""
    return [stop for stop in data.get("stop_sequences") or () if stop.strip()]


def _user(data: Json) -> str | None:
    """Claude Code writes the ids of machine and session there, as JSON."""
    user = (data.get("metadata") or {}).get("user_id")
    return hashlib.sha256(user.encode()).hexdigest() if isinstance(user, str) and user else None


def _effort(data: Json) -> str | None:
    thinking, config = data.get("thinking") or {}, data.get("output_config") or {}
    if thinking.get("type") == "disabled":
        return "none"
    if config.get("effort"):
        return str(config["effort"])
    return _effort_for(thinking.get("budget_tokens")) if thinking.get("type") == "enabled" else None


def _effort_for(budget: Any) -> str | None:
    if type(budget) is not int:
        return None
    return next((effort for least, effort in _EFFORTS if budget >= least), None)


def _format(data: Json) -> Json | None:
    form = (data.get("output_config") or {}).get("format") or data.get("output_format") or {}
    schema = form.get("schema")
    if form.get("type") != "json_schema" or not isinstance(schema, dict):
        return None
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def losses_of(data: Json) -> Receipt:
    """What other models than Claude have nothing like."""
    lost = [
        Note("parameter_dropped", name, f"only Claude has anything like '{name[:60]}'")
        for name, value in data.items()
        if name not in _KNOWN and value is not None
    ]
    stops = data.get("stop_sequences") or ()
    if len(stops) > _MOST_STOPS:
        text = f"the first {_MOST_STOPS} of {len(stops)} were sent"
        lost.append(Note("parameter_dropped", "stop_sequences", text))
    return tuple(lost)


def refused_of(data: Mapping[str, Any]) -> str:
    """A field without which another model's answer would be another thing; or empty."""
    if data.get("max_tokens") == 0:
        return "max_tokens"
    return next((name for name in _REFUSED if data.get(name)), "")
