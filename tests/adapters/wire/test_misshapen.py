"""Upstreams that send nonsense in good JSON: an error of theirs or a lawful answer, no crash.

What is not needed for text, calls and the ending never costs the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import UpstreamError
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
from tests.support.recordings import Stream, streams
from tests.support.upstreams.tape import Answer

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


def written(parts: Sequence[tuple[bytes, Any, bytes]]) -> bytes:
    return b"".join(
        before + (b"" if value is None else json.dumps(value).encode()) + behind
        for before, value, behind in parts
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


# What an answer can do without -----------------------------------------------------------------

ODD: tuple[Any, ...] = (None, True, -1.5, "", "odd", [7], [[]], {"odd": 1})
_OPENAI = (
    r"choices",
    r"choices\[\]",
    r"choices\[\]\.index",
    r"choices\[\]\.finish_reason",
    r"choices\[\]\.(delta|message)",
    r"choices\[\]\.(delta|message)\.content",
    r"choices\[\]\.(delta|message)\.tool_calls(\[\](\.index|\.function(\.name|\.arguments)?)?)?",
)
ESSENTIAL: Mapping[str, tuple[str, ...]] = {
    "compatible": _OPENAI,
    "deepseek": _OPENAI,
    "claude": (
        r"type",
        r"message",
        r"(message\.)?content(\[\](\.type|\.text|\.name|\.input(\..*)?)?)?",
        r"(message\.)?stop_reason",
        r"content_block(\.type|\.text|\.name|\.input)?",
        r"delta(\.type|\.text|\.partial_json|\.stop_reason)?",
    ),
    "ollama": (
        r"done",
        r"done_reason",
        r"message(\.content|\.tool_calls(\[\](\.function(\.name|\.arguments(\..*)?)?)?)?)?",
    ),
}
"""What text, calls and the ending are made of: an odd value there may be an error."""
# What servers were seen to send beside what is recorded, by the path of its holder.
FURTHER: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "openai": {
        "": ("usage", "service_tier", "citations", "search_results", "base_resp", "detail", "x"),
        "choices[]": ("logprobs", "usage", "stop_reason", "matched_stop", "x"),
        "choices[].delta": (
            *("reasoning_content", "reasoning", "reasoning_details", "refusal", "role", "x"),
            *("annotations", "audio", "images"),
        ),
        "choices[].delta.tool_calls[]": ("id", "type", "custom", "extra_content"),
        "usage": ("prompt_tokens_details", "completion_tokens_details", "cached_tokens", "cost"),
    },
    "claude": {
        "": ("usage", "index", "context_management", "container", "x"),
        "message": ("model", "usage", "container", "stop_details"),
        "message.usage": ("service_tier", "output_tokens_details", "cache_creation"),
        "usage": ("service_tier", "output_tokens_details", "server_tool_use"),
        "content_block": ("citations", "caller", "id", "thinking", "signature"),
        "content[]": ("citations", "caller", "id", "signature"),
        "delta": ("stop_details", "container", "signature", "thinking"),
    },
    "ollama": {
        "": ("logprobs", "eval_count", "model", "total_duration", "x"),
        "message": ("thinking", "images", "tool_name", "role"),
        "message.tool_calls[]": ("id", "index", "type"),
        "message.tool_calls[].function": ("index", "description"),
    },
}


def members(value: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every member of a JSON value: its path, its holder and its key."""
    if isinstance(value, dict):
        for key in list(value):
            below = f"{path}.{key}".lstrip(".")
            yield below, value, key
            yield from members(value[key], below)
    elif isinstance(value, list):
        for at in range(len(value)):
            yield f"{path}[]", value, at
            yield from members(value[at], f"{path}[]")


def changed(answer: Stream, spoilt: Callable[[Any], bool]) -> Iterator[tuple[str, bytes]]:
    """The recorded bytes with one member odd, wherever it stands: each member, each odd value."""
    known = ESSENTIAL[answer.upstream.name]
    parts = taken_apart(answer.body)
    paths = {path for _, part, _ in parts for path, _, _ in members(part)}
    further = FURTHER[answer.upstream.name if known is not _OPENAI else "openai"]
    for holder, names in further.items():
        place = holder if answer.streamed else holder.replace(".delta", ".message")
        if place in {"", *paths}:
            paths |= {f"{place}.{name}".lstrip(".") for name in names}
    for path in sorted(paths):
        if spoilt(any(re.fullmatch(one, path) for one in known)):
            for odd in ODD:
                yield f"{path} = {odd!r}", spoil(answer.body, path, odd)


def spoil(body: bytes, path: str, odd: Any) -> bytes:
    parts = taken_apart(body)
    holder, _, name = path.rpartition(".") if not path.endswith("[]") else (path[:-2], "", "")
    for _, part, _ in parts:
        if part is None:
            continue
        if not holder and name:
            part[name] = odd
        for found, owner, key in list(members(part)):
            if found == path:
                owner[key] = odd
            elif name and found == holder and isinstance(owner[key], dict):
                owner[key][name] = odd
    return written(parts)


def meant(answer: Answer) -> tuple[str, list[tuple[str, Any]], str]:
    calls = [(name, json.loads(arguments)) for _, name, _, arguments in answer.calls]
    return answer.text, calls, answer.reason


every_wire = pytest.mark.parametrize(
    "answer",
    [
        replace(one, streamed=mode)
        for one in streams()
        for mode in (True, False)
        if one.case in CASES
    ],
    ids=lambda a: f"{a.upstream.name}-{a.case}-{'stream' if a.streamed else 'plain'}",
)


@every_wire
def test_an_odd_member_never_costs_text_calls_or_the_ending(answer: Stream) -> None:
    told, bodies = zip(*changed(answer, lambda essential: not essential), strict=True)
    right, *found = answer.read([[answer.body], *([body] for body in bodies)])
    for what, one in zip(told, found, strict=True):
        assert one.error is None, f"{what}: {one.error}"
        assert meant(one) == meant(right), what


@every_wire
def test_an_odd_essential_is_an_error_of_the_upstream_or_a_lawful_answer(answer: Stream) -> None:
    told, bodies = zip(*changed(answer, bool), strict=True)
    for what, one in zip(told, answer.read([[body] for body in bodies], keep=True), strict=True):
        require_lawful(one)
        assert one.error is None or isinstance(one.error, UpstreamError), what


@pytest.mark.parametrize(
    ("name", "path", "odd", "note"),
    [
        ("compatible", "choices[].logprobs", 7, "logprobs"),
        ("compatible", "choices[].logprobs.content", ["odd"], "content"),
        ("deepseek", "choices[].delta.reasoning_details", "odd", "reasoning_details"),
        ("deepseek", "choices[].delta.annotations", "odd", "annotations"),
        ("compatible", "choices[].delta.refusal", 7, "refusal"),
        ("compatible", "usage", "odd", "usage"),
        ("claude", "usage", [7], "usage"),
        ("claude", "delta.stop_details", 7, None),  # it is read of a refusal alone
        ("ollama", "message.thinking", 7, "thinking"),
        ("ollama", "logprobs", "odd", "logprobs"),
    ],
)
def test_what_is_left_out_of_an_answer_is_named(
    name: str, path: str, odd: Any, note: str | None
) -> None:
    (answer,) = [one for one in streams() if (one.upstream.name, one.case) == (name, CASES[0])]
    body = spoil(answer.body, "choices[].logprobs", {}) if "logprobs." in path else answer.body
    (found,) = answer.read([[spoil(body, path, odd)]])
    assert (found.error, found.reason) == (None, "tool_calls")
    named = [one.field for one in found.receipt if one.code == "answer_member_dropped"]
    assert named == ([note] if note else [])


@pytest.mark.parametrize("reason", [1, 0.5, True, {"type": "stop"}, ["stop"]])
@pytest.mark.parametrize("name", ["compatible", "deepseek", "ollama", "claude"])
def test_a_reason_nobody_knows_is_an_end_all_the_same(name: str, reason: Any) -> None:
    (answer,) = [one for one in streams() if (one.upstream.name, one.case) == (name, "text")]
    paths = {"ollama": "done_reason", "claude": "delta.stop_reason"}
    path = paths.get(name, "choices[].finish_reason")
    right, found = answer.read([[answer.body], [only_where_given(answer.body, path, reason)]])
    assert (found.text, found.reason, found.error) == (right.text, "stop", None)
    assert "finish_unknown" in found.notes


def only_where_given(body: bytes, path: str, odd: Any) -> bytes:
    """The body with each value of a member that is not null replaced."""
    parts = taken_apart(body)
    for _, part, _ in parts:
        for found, holder, key in list(members(part)):
            if found == path and holder[key]:
                holder[key] = odd
    return written(parts)


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
