"""Upstreams that send nonsense in good JSON: an error of theirs or a lawful answer, no crash.

What is not needed for text, calls and the ending never costs the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.adapters.wire.nonsense import CASES, require_lawful, taken_apart, written
from tests.support.recordings import Stream, streams

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
    return written(parts)


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


# Errors that come as answers -------------------------------------------------------------------


_BROKEN: Mapping[str, bytes] = {
    "claude": b'data: {"type":"error","error":{"type":"api_error","message":"oops"}}\n\n',
    "ollama": b'{"error":"oops"}\n',
    "compatible": b'data: {"error":{"message":"oops","code":500}}\n\n',
    "deepseek": b'data: {"error":{"message":"oops"}}\n\n',
}


@pytest.mark.parametrize("behind", [True, False])
@pytest.mark.parametrize("name", _BROKEN)
def test_an_error_within_an_answer_is_told_without_a_status_nobody_sent(
    name: str, behind: bool
) -> None:
    (answer,) = [one for one in streams() if (one.upstream.name, one.case) == (name, "text")]
    between = b"\n" if name == "ollama" else b"\n\n"
    said = answer.body.partition(between)[0] + between
    (found,) = answer.read([[said * behind, _BROKEN[name]]])
    assert found.error is not None
    assert found.error.status == 500
    assert found.error.message == f"Upstream '{name}' broke its answer off with an error: oops"
