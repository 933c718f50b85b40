"""Upstreams that send nonsense in good JSON: an error of theirs or a lawful answer, no crash."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from tests.recordings import Stream, streams
from tests.tape import Answer

CASES = ("parallel_calls", "text_before_call", "reasoning", "no_argument_call")
ANSWERS = [
    replace(stream, streamed=streamed)
    for stream in streams()
    if stream.case in CASES
    for streamed in (True, False)
]
WRONG = (
    *("null", "true", "0", "-1", "1.5", "1e30", '""', '"x"', '"1"', '"{"'),
    *("[]", "[[]]", "[null]", "{}", '{"a":[]}'),
)


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


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every member of a JSON value, as its holder and its key."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


@st.composite
def nonsense(draw: st.DrawFn, body: bytes) -> bytes:
    """The body with one or two of its values replaced or left out."""
    parts = taken_apart(body)
    said = [part for _, part, _ in parts if part is not None]
    for _ in range(draw(st.integers(1, 2))):
        holder, key = draw(st.sampled_from([place for part in said for place in places(part)]))
        if draw(st.booleans()) and isinstance(holder, dict):
            holder.pop(key, None)
        elif isinstance(holder, dict) or key < len(holder):
            holder[key] = json.loads(draw(st.sampled_from(WRONG)))
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


@pytest.mark.parametrize(
    "answer",
    ANSWERS,
    ids=lambda a: f"{a.upstream.name}-{a.case}-{'stream' if a.streamed else 'plain'}",
)
def test_nonsense_is_an_error_or_a_lawful_answer(answer: Stream) -> None:
    @settings(max_examples=60)
    @given(nonsense(answer.body))
    def check(body: bytes) -> None:
        (found,) = answer.read([[body]], keep=True)
        require_lawful(found)

    check()
