"""What was seen before changes nothing but the time that a request takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import RequestContext
from middleware.doors.body import MAX_VALUES
from middleware.doors.chat.parse import parse
from middleware.doors.seen import Seen
from tests.doors.chat.conversations import HI, LARGER, TALK, TOOL, bodies, body_of, seldom

SMALL = 1 << 14
"""Bytes of a memory that forgets while a conversation goes on."""


def _outcome(body: bytes, seen: Seen | None, repair: bool = False, strict: bool = False) -> str:
    """All that comes of it; as text, as for Python 1 is 1.0."""
    call = RequestContext(owner="a")
    try:
        return repr(parse(body, repair=repair, strict=strict, call=call, seen=seen))
    except BadRequest as error:
        return repr((str(error), error.code, error.param, error.status))


@given(talks=st.lists(bodies(), min_size=1, max_size=3), repair=st.booleans(), strict=seldom)
def test_the_same_comes_of_a_conversation_whatever_was_seen(
    talks: list[list[bytes]], repair: bool, strict: bool
) -> None:
    full, small = Seen(least_body=0), Seen(SMALL, least_body=0)
    for body in [*(body for turns in talks for body in turns), *(turns[-1] for turns in talks)]:
        expected = _outcome(body, None, repair, strict)
        for seen in (Seen(least_body=0), full, small):
            assert _outcome(body, seen, repair, strict) == expected


# What JSON allows, and what it does not ----------------------------------------------------------

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
    "tools as one number": lambda text: text[:-1] + ',"tools":7.30301400000002e14}',
    "tools as two numbers": lambda text: (
        text[:-1] + ',"tools":730301400000002,"tools":730301400000002}'
    ),
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
    for rest in ({"tools": [LARGER]}, {}):
        plain = body_of(TALK, rest, front)
        text = _TRICKS[trick](plain.decode())
        assert text != plain.decode()
        tricked = text.encode(errors="surrogateescape")
        for body in (plain, tricked, tricked, plain):
            assert _outcome(body, seen) == _outcome(body, None)


@pytest.mark.parametrize("value", [1, [], ",[{"])
def test_the_bounds_are_those_of_the_wholebody_of(value: Any) -> None:
    seen, outcomes = Seen(least_body=0), set[str]()
    most = MAX_VALUES if value == 1 else MAX_VALUES // 2
    for count in range(most - 48, most + 1, 4):
        body = body_of([*TALK, {**HI, "x": [value] * count}], {"tools": [TOOL]})
        expected = _outcome(body, None)
        assert _outcome(body, seen) == _outcome(body, seen) == expected
        outcomes.add(expected[:20])
    assert len(outcomes) == (1 if isinstance(value, str) else 2)


def test_a_chosen_tool_is_looked_for_among_those_of_each_request() -> None:
    seen, outcomes = Seen(least_body=0), set[str]()
    choice = {"tool_choice": {"type": "function", "function": {"name": "g"}}}
    for tools in ([LARGER], [TOOL], [TOOL, LARGER], [TOOL], []):
        body = body_of(TALK, {"tools": tools, **choice})
        expected = _outcome(body, None)
        assert _outcome(body, seen) == _outcome(body, seen) == expected
        outcomes.add(expected)
    assert len(outcomes) == 4
