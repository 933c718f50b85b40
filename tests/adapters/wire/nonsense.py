"""Recorded answers taken apart, changed at one place, and written again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, get_args

from adapters.protocol import (
    Event,
    Finish,
    FinishReason,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from tests.support.fold import Answer

CASES = ("parallel_calls", "text_before_call", "reasoning", "no_argument_call")


def taken_apart(body: bytes) -> list[tuple[bytes, Any, bytes]]:
    """Each JSON text of a body with the bytes around it."""
    found = []
    for line in body.splitlines(keepends=True):
        start = line.find(b"{")
        if start < 0 or line.startswith(b":"):
            found.append((line, None, b""))
        else:
            end = line.rfind(b"}") + 1
            found.append((line[:start], json.loads(line[start:end]), line[end:]))
    return found


def written(parts: Sequence[tuple[bytes, Any, bytes]]) -> bytes:
    return b"".join(
        before + (b"" if value is None else json.dumps(value).encode()) + behind
        for before, value, behind in parts
    )


def require_lawful(answer: Answer) -> None:
    """Hold an answer to the promises, as far as they do not depend on what was said."""
    events = [event for batch in answer.batches for event in batch]
    assert all(answer.batches)
    for position, event in enumerate(events):
        assert isinstance(event, Opened) == (position == 0)
        assert isinstance(event, Finish) <= (position == len(events) - 1)
        if answer.error is None:
            require_types(event)
    starts = [event.index for event in events if isinstance(event, ToolCallStart)]
    assert starts == list(range(len(starts)))
    assert bool(answer.reason) != bool(answer.error)
    if answer.error is not None:
        assert answer.error.status in (400, 404, 429, 500, 502, 503, 504), answer.error


def require_types(event: Event) -> None:
    """Nothing that is not text may pass for text: the door would break on it."""
    match event:
        case TextDelta(text) | ReasoningDelta(text) | RefusalDelta(text):
            assert isinstance(text, str)
            assert text
        case ToolCallStart(_, identity, name):
            assert isinstance(identity, str)
            assert isinstance(name, str)
            assert identity
            assert name
        case ToolCallDelta(_, arguments):
            assert isinstance(arguments, str)
            assert arguments
        case Opened(_, upstream):
            assert isinstance(upstream.model, str)
            assert isinstance(upstream.fingerprint, str | None)
            assert isinstance(upstream.tier, str | None)
        case Finish(reason, usage, native):
            assert reason in get_args(FinishReason)
            assert isinstance(native, str)
            if usage is not None:
                require_figures(usage)


def require_figures(usage: Usage) -> None:
    figures: Sequence[Any] = (usage.prompt, usage.completion)
    assert all(type(figure) is int and figure >= 0 for figure in figures), usage
    for figure in (usage.cached, usage.cache_write, usage.reasoning):
        assert figure is None or type(figure) is int, usage
