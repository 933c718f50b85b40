"""Conversations that grow turn by turn, as any client may send them: odd, wrong and repeated."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from adapters.protocol import Json

# Conversations, turn by turn ---------------------------------------------------------------------

_texts = st.sampled_from(
    ["", "hi", "}]", '},{"role"', "a\nb", "\\", '"', "é", "中文", "😀", "\u2028", "x" * 300, "[{"]
)
_numbers = st.sampled_from(["1", "1.0", "1e2", "12345678901234567890", "-0", "0.1"])
_arguments = st.builds(
    lambda template, number, text: template.replace("N", number).replace("T", json.dumps(text)),
    st.sampled_from(['{"a": N, "b": T}', '{"a":N,"a":T}', " {} ", "", "{broken", '{"\\u0061": N}']),
    _numbers,
    _texts,
)
_parts = st.lists(
    st.sampled_from(
        [
            {"type": "text", "text": "t"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
            {"text": "own first", "type": "text"},
        ]
    ),
    max_size=3,
)
_users = st.fixed_dictionaries(
    {"role": st.just("user"), "content": _texts | _parts},
    optional={"name": _texts, "extra": _numbers.map(json.loads)},
)


seldom = st.sampled_from([False] * 11 + [True])


@st.composite
def _rounds(draw: st.DrawFn) -> list[Json]:
    ids = draw(st.lists(st.sampled_from(["c1", "c2", "c3"]), max_size=3, unique=True))
    calls = [
        {"id": one, "type": "function", "function": {"name": "f", "arguments": draw(_arguments)}}
        for one in ids
    ]
    said: Json = {"role": "assistant", "content": draw(_texts.filter(bool))}
    if calls:
        said["tool_calls"] = calls
    results: list[Json] = [
        {"role": "tool", "tool_call_id": one, "content": draw(_texts)} for one in ids
    ]
    if draw(seldom):
        results = draw(st.permutations([*results[1:], dict(draw(_users))]))
    return [said, *results, *draw(st.lists(_users, max_size=1))]


_ODD: Sequence[Json] = (
    {"role": "assistant", "content": "t", "turn": "x"},
    {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "function", "name": "f", "content": "x"},
    {"role": "tool", "tool_call_id": "c1", "content": "x"},
    {"role": "tool", "content": "x"},
    {"role": "user"},
    {"role": "robot", "content": 5},
    {"content": "behind", "role": "system"},
)


@st.composite
def _talks(draw: st.DrawFn) -> list[list[Json]]:
    """The turns of a conversation: each has all that was said before."""
    said: list[Json] = [{"role": "system", "content": draw(_texts)}] * draw(st.integers(0, 1))
    said += [draw(_users)]
    turns = [[*said]]
    for _ in range(draw(st.integers(1, 5))):
        if draw(seldom):
            said = [*said[:-1], draw(_users)]
        said = [*said, *draw(_rounds())]
        if draw(seldom):
            said = [*said, draw(st.sampled_from(_ODD))]
        turns.append(said)
    return turns


# Bodies ------------------------------------------------------------------------------------------

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
_NESTED = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": [{"messages": [{"a": 1}]}]}
LARGER = {"type": "function", "function": {"name": "g", "parameters": _NESTED}}
_RESTS: Sequence[Json] = (
    {},
    {"tools": [TOOL]},
    {"tools": [TOOL, LARGER], "stream": True},
    {"tools": [LARGER], "tool_choice": {"type": "function", "function": {"name": "g"}}},
    {"tools": [], "tool_choice": "auto", "stop": "\n"},
    {"tools": None, "top_k": 3, "temperature": 1.5},
    {"metadata": {"messages": [{"a": 1}], "tools": [{"b": 1}]}},
    {"seed": 730_301_400_000_001},
)
_REFUSED: Sequence[Json] = (
    {"tools": [TOOL, TOOL]},
    {"tools": [{}]},
    {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
    {"n": 2},
    {"temperature": 3},
    {"functions": [{"name": "f"}]},
    {"tools": 730_301_400_000_002},
    {
        "tools": [
            {
                "type": "custom",
                "custom": {"name": "c", "format": {"grammar": {"definition": "(" * 99}}},
            }
        ]
    },
    {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"pattern": "(" * 99}},
        }
    },
)


@st.composite
def bodies(draw: st.DrawFn) -> list[bytes]:
    rest = draw(st.sampled_from(_REFUSED if draw(seldom) else _RESTS))
    style = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    front, ascii_only = draw(st.booleans()), draw(st.booleans())
    return [body_of(turn, rest, front, style, ascii_only) for turn in draw(_talks())]


def body_of(
    messages: Sequence[Json],
    rest: Json,
    front: bool = False,
    style: tuple[str, str] = (",", ":"),
    ascii_only: bool = False,
) -> bytes:
    said = {"messages": messages}
    data = {"model": "m", **(said | rest if front else rest | said)}
    return json.dumps(data, separators=style, ensure_ascii=ascii_only).encode()


# One that is as it should be --------------------------------------------------

HI: Json = {"role": "user", "content": "hi"}
_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
TALK: Sequence[Json] = (
    {"role": "system", "content": "é"},
    {**HI, "extra": 0},
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "x"},
    {"role": "assistant", "content": "y"},
    HI,
)
