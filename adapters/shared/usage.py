"""OpenAI's usage object → ours, with the names other servers have for its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adapters.protocol import Json, Usage
from adapters.receipts import Note, Receipt

_DETAILS: Mapping[str, tuple[str, ...]] = {
    "prompt_tokens_details": ("audio_tokens", "image_tokens", "text_tokens"),
    "completion_tokens_details": (
        *("accepted_prediction_tokens", "rejected_prediction_tokens", "audio_tokens"),
        "text_tokens",
    ),
}

_MOST = 1 << 53


def figure(value: Any) -> int | None:
    """A number of tokens; None for what is none, or cannot be written as JSON."""
    if type(value) is int:
        return value if 0 <= value <= _MOST else None
    whole = type(value) is float and value.is_integer()
    return figure(int(value)) if whole else None


def usage_of(said: Any) -> tuple[Usage | None, Receipt]:
    """Read OpenAI's usage object, and the names DeepSeek and Moonshot have for cached tokens."""
    if not isinstance(said, dict):
        return None, ()
    prompt, completion = figure(said.get("prompt_tokens")), figure(said.get("completion_tokens"))
    asked, answered = (_object(said, name) for name in _DETAILS)
    elsewhere = said.get("prompt_cache_hit_tokens", said.get("cached_tokens"))
    cached = figure(asked.get("cached_tokens", elsewhere))
    written = figure(asked.get("cache_write_tokens"))
    thought = figure(answered.get("reasoning_tokens"))
    usage = Usage(prompt or 0, completion or 0, cached, written, thought, _details(said))
    if prompt is None or completion is None:
        text = "a figure the upstream did not give is 0"
        return usage, (Note("usage_estimated", "usage", text),)
    return usage, ()


def total(first: Usage, second: Usage | None) -> Usage:
    """What two answers used together; the further members stay the first's."""
    if second is None:
        return first
    return replace(
        first,
        prompt=first.prompt + second.prompt,
        completion=first.completion + second.completion,
        cached=_plus(first.cached, second.cached),
        cache_write=_plus(first.cache_write, second.cache_write),
        reasoning=_plus(first.reasoning, second.reasoning),
    )


def _plus(first: int | None, second: int | None) -> int | None:
    return second if first is None else first + (second or 0)


def _object(said: Json, name: str) -> Json:
    """Details are told beside the figures that count: without them there is still usage."""
    value = said.get(name)
    return value if isinstance(value, dict) else {}


def _details(said: Json) -> Json:
    """The members of OpenAI's usage object that have no field of their own."""
    found: Json = {}
    for name, members in _DETAILS.items():
        given = _object(said, name)
        for member in members if given else ():
            if (count := figure(given.get(member))) is not None:
                found.setdefault(name, {})[member] = count
    return found
