"""What an answer can do without: an odd member costs no text, no calls and no ending."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from adapters.errors import UpstreamError
from tests.adapters.wire.nonsense import CASES, require_lawful, taken_apart, written
from tests.support.fold import Answer
from tests.support.recordings import Stream, streams

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
