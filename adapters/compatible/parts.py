"""Content of an answer that comes in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from adapters.protocol import Event, Json, ReasoningDelta, RefusalDelta, TextDelta
from adapters.wire.exchange import few, require_text


def events_of(parts: list[Json]) -> Iterator[Event]:
    """Mistral's and Databricks' content in parts: text, and thoughts, which are lists again."""
    for part in few(parts):
        thought = part.get("thinking") or part.get("summary")
        if isinstance(thought, list):
            thought = joined(thought)
        if thought:
            yield ReasoningDelta(require_text(thought))
        elif part.get("text"):
            yield TextDelta(require_text(part["text"]))
        elif part.get("refusal"):
            yield RefusalDelta(require_text(part["refusal"]))


def joined(parts: Iterable[Json]) -> str:
    said = (part.get("text") or part.get("summary") for part in parts)
    return "".join(text for text in said if isinstance(text, str))
