"""Bodies that are no JSON, no object, too deep or a flood of mistakes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware.doors.body import MAX_DEPTH
from middleware.doors.chat.parse import parse
from tests.doors.chat.bodies import CALL, CALLS, RESULT, TOOL, USER, body, refused, said
from tests.linear.measuring import is_within

START = b'{"model":"m","messages":[{"role":"user","content":"x"}],'
NOT_JSON = (
    *(b"", b"{not json", START[:-1] + b"}}", b"\xef\xbb\xbf{}", "{}".encode("utf-16")),
    *(START + b'"temperature":NaN}', START + b'"temperature":-Infinity}'),
    *(START + b'"temperature":1e999}', START + b'"seed":' + b"9" * 400 + b"}"),
    *(b'{"model":"\xff\xfe"}', b'{"model":"\\ud80"}', b"[" * 20_000 + b"]" * 20_000),
)


@pytest.mark.parametrize("data", NOT_JSON, ids=range(len(NOT_JSON)))
def test_what_is_not_json_is_refused_without_repeating_it(data: bytes) -> None:
    error = refused(data)
    assert (error.status, error.code) == (400, "invalid_json")
    assert "Send a JSON object in UTF-8" in error.message
    assert len(error.message) < 300


HALVES = {
    r"a \ud83d": "a \ufffd",
    r"a \uD83D b": "a \ufffd b",
    r"\ude00 a": "\ufffd a",
    r"\ud83d\ud83d\ude00": "\ufffd😀",
    r"\ud83d\n": "\ufffd\n",
    r"\ud83d\u4f60": "\ufffd你",
    r"\\ud83d \ud83d": r"\ud83d" + " \ufffd",
    r"\\\ud83d": "\\\ufffd",
    r"\"\ud83d\"": '"\ufffd"',
}


@pytest.mark.parametrize(("escaped", "meant"), HALVES.items())
def test_an_emoji_cut_in_two_does_not_end_a_conversation(escaped: str, meant: str) -> None:
    asked = parse(body(user="X").replace(b"hi", escaped.encode()))
    assert asked.request.messages == ({"role": "user", "content": meant},)
    assert [note.code for note in asked.receipt] == ["half_character_replaced"]


@pytest.mark.parametrize("escaped", [r"\ud83d\ude00", r"\\ud83d", r"\\\\ud83d\u4f60"])
def test_whole_characters_are_left_alone(escaped: str) -> None:
    asked = parse(body().replace(b"hi", escaped.encode()))
    assert asked.request.messages[0]["content"] == json.loads(f'"{escaped}"')
    assert asked.receipt == ()


def test_half_a_character_excuses_no_other_mistake() -> None:
    assert refused(body().replace(b"hi", rb"\ud83d")[:-1]).code == "invalid_json"


@pytest.mark.parametrize("data", [b"[1]", b'"hi"', b"null", b"42", b"true"])
def test_what_is_not_an_object_is_refused(data: bytes) -> None:
    error = refused(data)
    assert (error.code, error.message) == (
        "invalid_type",
        "The request body must be a JSON object.",
    )


def test_a_mistake_never_repeats_a_prompt() -> None:
    secret = "my medical history"
    for fields in ({"messages": secret}, {"messages": [secret]}, {"tools": secret}):
        assert secret not in refused(body(**fields)).message


def test_a_mistake_repeats_little_of_what_is_long() -> None:
    long = "x" * 100_000
    for fields in (
        {"messages": [{"role": long}]},
        {"tool_choice": long},
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": long}}},
        {"logit_bias": {long: "x"}},
        said({**RESULT, "tool_call_id": long}),
        said(*({**CALLS, "tool_calls": [{**CALL, "id": str(n)} for n in range(10_000)]},)),
    ):
        error = refused(body(**fields))
        assert len(error.message) <= 2001
        assert len(error.param or "") < 100


# Nesting ---------------------------------------------------------------------------------------


def nested(levels: int, opener: bytes = b'{"a":', closer: bytes = b"}") -> bytes:
    return (
        START + b'"metadata":{"b":' + opener * (levels - 2) + b"1" + closer * (levels - 2) + b"}}"
    )


@pytest.mark.parametrize(("opener", "closer"), [(b'{"a":', b"}"), (b"[", b"]"), (b'[{"a":', b"}]")])
def test_the_body_may_be_so_deep_and_no_deeper(opener: bytes, closer: bytes) -> None:
    step = opener.count(b"[") + opener.count(b"{")
    repeats = (MAX_DEPTH - 2) // step + 2
    parse(nested(repeats, opener, closer))
    error = refused(nested(repeats + 1, opener, closer))
    assert error.message == "The request body is nested more than 64 levels deep. Flatten it."


HIDING = (
    (b'{"x":"}","a":', b',"y":"{"}'),
    (b'["]",', b',"["]'),
    (b'{"x":"\\"}","a":', b',"y":"\\"{"}'),
    (b'{"x":"}\\\\","a":', b',"y":"{\\\\"}'),
)


@pytest.mark.parametrize(("opener", "closer"), HIDING)
def test_brackets_in_strings_hide_no_depth(opener: bytes, closer: bytes) -> None:
    parse(nested(MAX_DEPTH, opener, closer))
    assert "levels deep" in refused(nested(MAX_DEPTH + 1, opener, closer)).message


json_values = st.recursive(
    st.none() | st.integers(0, 9) | st.text('a"\\{}[] ', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\{}[]'), inner),
    max_leaves=20,
)


@given(json_values, st.integers(0, 80))
def test_depth_is_that_of_the_value_whatever_its_strings_say(value: Any, wrapped: int) -> None:
    for _ in range(wrapped):
        value = ["}]", value, '{[\\"']
    deep = depth({"metadata": {"b": value}}) > MAX_DEPTH
    data = body(metadata={"b": value})
    if deep:
        assert "levels deep" in refused(data).message
    else:
        parse(data)


def depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0)


MANY = 200_000
FLOODS = (
    b'{"model":"m","messages":[' + b"1," * MANY + b"1]}",
    b'{"model":"m","messages":[{"role":"user","content":[' + b"1," * MANY + b"1]}]}",
    START + b'"tools":[' + b"1," * MANY + b"1]}",
    START + b'"functions":[' + b"1," * MANY + b"1]}",
    START + b'"modalities":[' + b"1," * MANY + b"1]}",
    START + b'"logit_bias":{' + b",".join(b'"%d":"x"' % n for n in range(MANY // 4)) + b"}}",
)


@pytest.mark.parametrize("data", FLOODS, ids=range(len(FLOODS)))
def test_a_flood_of_mistakes_is_one_mistake(data: bytes) -> None:
    # Each of them told apart took a second.
    assert is_within(0.4, lambda: refused(data))


def test_many_messages_between_calls_and_results_take_linear_time() -> None:
    count = 4000
    calls = {**CALLS, "tool_calls": [{**CALL, "id": str(n)} for n in range(count)]}
    results = [{**RESULT, "tool_call_id": str(n)} for n in range(count)]
    between = [message for result in results for message in (result, USER)]
    data = body(**said(calls, *between))
    assert is_within(1, lambda: parse(data))
