"""What was seen before changes nothing but the time that a request takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import Json, RequestContext
from middleware.doors.body import MAX_VALUES
from middleware.doors.chat.parse import parse
from middleware.doors.seen import Seen

SMALL = 1 << 14
"""Bytes of a memory that forgets while a conversation goes on."""
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


_seldom = st.sampled_from([False] * 11 + [True])


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
    results = [{"role": "tool", "tool_call_id": one, "content": draw(_texts)} for one in ids]
    if draw(_seldom):
        results = draw(st.permutations([*results[1:], draw(_users)]))
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
        if draw(_seldom):
            said = [*said[:-1], draw(_users)]
        said = [*said, *draw(_rounds())]
        if draw(_seldom):
            said = [*said, draw(st.sampled_from(_ODD))]
        turns.append(said)
    return turns


# Bodies ------------------------------------------------------------------------------------------

_TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
_NESTED = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": [{"messages": [{"a": 1}]}]}
_LARGER = {"type": "function", "function": {"name": "g", "parameters": _NESTED}}
_RESTS: Sequence[Json] = (
    {},
    {"tools": [_TOOL]},
    {"tools": [_TOOL, _LARGER], "stream": True},
    {"tools": [_LARGER], "tool_choice": {"type": "function", "function": {"name": "g"}}},
    {"tools": [], "tool_choice": "auto", "stop": "\n"},
    {"tools": None, "top_k": 3, "temperature": 1.5},
    {"metadata": {"messages": [{"a": 1}], "tools": [{"b": 1}]}},
    {"seed": 730_301_400_000_001},
)
_REFUSED: Sequence[Json] = (
    {"tools": [_TOOL, _TOOL]},
    {"tools": [{}]},
    {"tools": [_TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
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
def _bodies(draw: st.DrawFn) -> list[bytes]:
    rest = draw(st.sampled_from(_REFUSED if draw(_seldom) else _RESTS))
    style = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    front, ascii_only = draw(st.booleans()), draw(st.booleans())
    return [_body(turn, rest, front, style, ascii_only) for turn in draw(_talks())]


def _body(
    messages: Sequence[Json],
    rest: Json,
    front: bool = False,
    style: tuple[str, str] = (",", ":"),
    ascii_only: bool = False,
) -> bytes:
    said = {"messages": messages}
    data = {"model": "m", **(said | rest if front else rest | said)}
    return json.dumps(data, separators=style, ensure_ascii=ascii_only).encode()


def _outcome(body: bytes, seen: Seen | None, repair: bool = False, strict: bool = False) -> str:
    """All that comes of it; as text, as for Python 1 is 1.0."""
    call = RequestContext(owner="a")
    try:
        return repr(parse(body, repair=repair, strict=strict, call=call, seen=seen))
    except BadRequest as error:
        return repr((str(error), error.code, error.param, error.status))


@given(talks=st.lists(_bodies(), min_size=1, max_size=3), repair=st.booleans(), strict=_seldom)
def test_the_same_comes_of_a_conversation_whatever_was_seen(
    talks: list[list[bytes]], repair: bool, strict: bool
) -> None:
    full, small = Seen(least_body=0), Seen(SMALL, least_body=0)
    for body in [*(body for turns in talks for body in turns), *(turns[-1] for turns in talks)]:
        expected = _outcome(body, None, repair, strict)
        for seen in (Seen(least_body=0), full, small):
            assert _outcome(body, seen, repair, strict) == expected


# What JSON allows, and what it does not ----------------------------------------------------------

_HI: Json = {"role": "user", "content": "hi"}
_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
_TALK: Sequence[Json] = (
    {"role": "system", "content": "é"},
    {**_HI, "extra": 0},
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "x"},
    {"role": "assistant", "content": "y"},
    _HI,
)
_TRICKS: Mapping[str, Callable[[str], str]] = {
    "other messages": lambda text: text[:-1] + ',"messages":[{"role":"user","content":"2"}]}',
    "as one number": lambda text: text[:-1] + ',"messages":7.30301400000001e14}',
    "as the number": lambda text: (
        text.replace(
            '{"',
            '{"x":{"messages":[{"role":"user","content":"3"}]},"messages":730301400000001,"y":{"',
            1,
        )
        + "}"
    ),
    "deeper": lambda text: '{"x":' + text + "}",
    "other tools": lambda text: '{"tools":[{"type":"custom","custom":{"name":"c"}}],' + text[1:],
    "tools as a number": lambda text: text[:-1] + ',"tools":730301400000002}',
    "members twice": lambda text: text.replace('"content":', '"content":1,"content":', 1),
    "deep and hidden": lambda text: text.replace(
        '"content":', '"x":' + "[" * 63 + "]" * 63 + ',"x":1,"content":', 1
    ),
    "deep": lambda text: text.replace('"content":', '"x":' + "[" * 63 + "]" * 63 + ',"content":'),
    "not too deep": lambda text: text.replace(
        '"content":', '"x":' + "[" * 61 + "]" * 61 + ',"content":', 1
    ),
    "half a character": lambda text: text.replace('"hi"', '"\\ud83d"'),
    "escaped names": lambda text: text.replace('"role"', '"r\\u006fle"', 1),
    "escaped member": lambda text: text.replace('"messages"', '"mess\\u0061ges"', 1),
    "cut": lambda text: text[: len(text) * 2 // 3],
    "no comma": lambda text: text.replace("},{", "}{", 1),
    "two commas": lambda text: text.replace("},{", "},,{", 1),
    "a comma too many": lambda text: text.replace("}]", "},]"),
    "white space": lambda text: text.replace(",", " ,\n ").replace("[", "[ "),
    "other space": lambda text: text.replace("},{", "},\u00a0{"),
    "a control character": lambda text: text.replace('"hi"', '"h\x01"'),
    "not UTF-8": lambda text: text.replace("é", "\udce9"),
    "a number of no form": lambda text: text.replace('"extra":0', '"extra":00'),
    "a long number": lambda text: text.replace('"extra":0', '"extra":1' + "0" * 40),
    "something behind": lambda text: text + " {}",
    "a number among messages": lambda text: text.replace("},{", "},1,{", 1),
    "a text among messages": lambda text: text.replace("},{", '},"},{",{', 1),
    "a turn's name": lambda text: text.replace('"content":"y"', '"content":"y","turn":"x"'),
    "a call in old words": lambda text: text.replace(
        '"content":"y"', '"content":"y","function_call":{"name":"f"}'
    ),
    "a result in old words": lambda text: text.replace(
        '{"role":"assistant","content":"y"}', '{"role":"function","name":"f","content":"y"}'
    ),
    "braces in texts": lambda text: text.replace('"hi"', '"}]}},{[{{"'),
}


@pytest.mark.parametrize("front", [False, True])
@pytest.mark.parametrize("trick", _TRICKS)
def test_the_same_comes_of_any_bytes(trick: str, front: bool) -> None:
    seen = Seen(least_body=0)
    for rest in ({"tools": [_LARGER]}, {}):
        plain = _body(_TALK, rest, front)
        text = _TRICKS[trick](plain.decode())
        assert text != plain.decode()
        tricked = text.encode(errors="surrogateescape")
        for body in (plain, tricked, tricked, plain):
            assert _outcome(body, seen) == _outcome(body, None)


@pytest.mark.parametrize("value", [1, [], ",[{"])
def test_the_bounds_are_those_of_the_whole_body(value: Any) -> None:
    seen, outcomes = Seen(least_body=0), set[str]()
    most = MAX_VALUES if value == 1 else MAX_VALUES // 2
    for count in range(most - 48, most + 1, 4):
        body = _body([*_TALK, {**_HI, "x": [value] * count}], {"tools": [_TOOL]})
        expected = _outcome(body, None)
        assert _outcome(body, seen) == _outcome(body, seen) == expected
        outcomes.add(expected[:20])
    assert len(outcomes) == (1 if isinstance(value, str) else 2)
