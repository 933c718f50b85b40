"""A conversation has one form below the door, whatever the client made of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import Notes
from adapters.shared.history import (
    NO_RESULT,
    canonical,
    is_json_object,
    rounds,
    settle,
    text_of,
    wrapped_arguments,
)

USER: Json = {"role": "user", "content": "hi"}
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def said(*ids: str, content: str | None = None, **more: Any) -> Json:
    calls = [
        {"id": identity, "type": "function", "function": {"name": f"f_{identity}", "arguments": ""}}
        for identity in ids
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls, **more}


def result(identity: str, content: str = "ok") -> Json:
    return {"role": "tool", "tool_call_id": identity, "content": content}


def outline(messages: Sequence[Json]) -> list[str]:
    """Roles, calls and results in one glance."""
    names = []
    for message in messages:
        calls = "".join(call["id"] for call in message.get("tool_calls") or ())
        names.append(calls or message.get("tool_call_id") or message["role"])
    return names


# Arguments -------------------------------------------------------------------------------------

DUMPS: Sequence[Callable[[Any], str]] = (
    json.dumps,
    lambda value: json.dumps(value, ensure_ascii=False),
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    lambda value: json.dumps(value, indent=2),
    lambda value: json.dumps(value).replace("/", "\\/"),
    lambda value: f"\n {json.dumps(value, indent=1)}\r\n",
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=3))
def test_arguments_are_the_same_bytes_however_they_were_dumped(value: Any) -> None:
    (text,) = {canonical(dump(value)) for dump in DUMPS}
    assert json.loads(text) == value
    assert canonical(text) == text


@pytest.mark.parametrize(
    ("given_text", "wanted"),
    [
        ('{"n": 1.0, "m": 1e2, "k": 12345678901234567890123}', None),
        ('{"b": 1, "a": 2}', '{"b":1,"a":2}'),
        (r'{"city": "\u6c88\u9633", "sun": "\ud83c\udf1e"}', '{"city":"沈阳","sun":"🌞"}'),
        (r'{"a": "\n \t \" \\ \u0001"}', r'{"a":"\n \t \" \\ \u0001"}'),
        ("", "{}"),
        (" \n", "{}"),
        (None, "{}"),
        ('{"a": ', '{"a": '),
        (r'{"a": "\ud800"}', r'{"a": "\ud800"}'),
        ("not json at all", "not json at all"),
        ("[1, 2]", "[1,2]"),
    ],
)
def test_arguments_keep_numbers_order_and_what_is_not_json(
    given_text: str | None, wanted: str | None
) -> None:
    wanted = (given_text or "").replace(" ", "") if wanted is None else wanted
    assert canonical(given_text) == wanted


@given(st.text() | st.text('{}[]":,\\u0123d8 \n', max_size=20))
def test_any_text_has_a_canonical_form_and_it_is_stable(text: str) -> None:
    once = canonical(text)
    assert canonical(once) == once
    assert is_json_object(once) or once == text or json.loads(once) == json.loads(text)


@pytest.mark.parametrize("text", ["[1,2]", '"x"', '{"a":', "null", r'{"a":"\ud800"}'])
def test_arguments_that_are_no_object_are_wrapped_and_named(text: str) -> None:
    notes = Notes()
    wrapped, receipt = wrapped_arguments(text, "messages[1]", notes.add), notes.receipt()
    assert json.loads(wrapped) == {"_raw": text}
    assert [(note.code, note.field) for note in receipt] == [("arguments_wrapped", "messages[1]")]


def test_arguments_that_are_an_object_are_left_alone() -> None:
    notes = Notes()
    assert wrapped_arguments('{"a":1.0}', "x", notes.add) == '{"a":1.0}'
    assert notes.receipt() == ()


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (None, ""),
        ("text", "text"),
        ([{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}], "a\nb"),
        ([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}], "a"),
        ([], ""),
    ],
)
def test_text_of_content(content: Any, wanted: str) -> None:
    assert text_of(content) == wanted


# Conversations ---------------------------------------------------------------------------------

SETTLED: Sequence[tuple[str, list[Json], list[str], list[str]]] = (
    ("plain", [USER, {"role": "assistant", "content": "a"}], ["user", "assistant"], []),
    ("one call", [USER, said("A"), result("A"), USER], ["user", "A", "A", "user"], []),
    ("results as they came", [said("A", "B"), result("B"), result("A")], ["AB", "B", "A"], []),
    (
        "a user between call and result",
        [said("A"), USER, result("A")],
        ["A", "A", "user"],
        ["messages_reordered"],
    ),
    (
        "a user among results",
        [said("A", "B"), result("A"), USER, result("B"), USER],
        ["AB", "A", "B", "user", "user"],
        ["messages_reordered"],
    ),
    (
        "two results for one call",
        [said("A"), result("A", "first"), result("A", "last")],
        ["A", "A"],
        ["result_replaced"],
    ),
    (
        "an id used again in a later round",
        [said("A"), result("A"), said("A"), result("A")],
        ["A", "A", "A", "A"],
        [],
    ),
    (
        "a turn that says nothing",
        [USER, {"role": "assistant", "content": None}, USER],
        ["user", "user"],
        ["empty_turn_dropped"],
    ),
    (
        "a turn that only thinks",
        [USER, {"role": "assistant", "content": None, "reasoning_content": "hm"}],
        ["user", "assistant"],
        [],
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("messages", "wanted", "noted"),
    [case[1:] for case in SETTLED],
    ids=[case[0] for case in SETTLED],
)
def test_results_stand_right_behind_their_calls(
    messages: list[Json], wanted: list[str], noted: list[str]
) -> None:
    before = copy.deepcopy(messages)
    settled, receipt = settle(messages)
    assert outline(settled) == wanted
    assert [note.code for note in receipt] == noted
    assert messages == before
    assert settle(settled) == (settled, ())


def test_the_last_of_several_results_counts() -> None:
    settled, _ = settle([said("A"), result("A", "first"), result("A", "last")])
    assert settled[1]["content"] == "last"


REFUSED: Sequence[tuple[str, list[Json], str, str]] = (
    ("no result", [USER, said("A"), USER], "messages[1].tool_calls", "A"),
    ("no result at the end", [USER, said("A")], "messages[1].tool_calls", "A"),
    ("one of two missing", [said("A", "B"), result("B")], "messages[0].tool_calls", "A"),
    ("an assistant before the result", [said("A"), said("B")], "messages[0].tool_calls", "A"),
    ("a result without a call", [USER, result("A")], "messages[1].tool_call_id", "'A'"),
    (
        "a result of an earlier round",
        [said("A"), result("A"), USER, result("A")],
        "messages[3].tool_call_id",
        "'A'",
    ),
    (
        "a result of another call",
        [said("A"), result("A"), result("B")],
        "messages[2].tool_call_id",
        "'B'",
    ),
    ("two calls with one id", [USER, said("A", "A")], "messages[1].tool_calls", "same id"),
)


@pytest.mark.parametrize(
    ("messages", "param", "word"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_a_conversation_without_a_form_is_refused(
    messages: list[Json], param: str, word: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        settle(messages)
    assert (caught.value.code, caught.value.param) == ("invalid_tool_history", param)
    assert word in caught.value.message


@pytest.mark.parametrize(
    ("messages", "wanted", "noted"),
    [
        ([said("A", "B"), result("B"), USER], ["AB", "B", "A", "user"], ["result_made_up"]),
        ([said("A"), said("B"), result("B")], ["A", "A", "B", "B"], ["result_made_up"]),
        ([USER, result("A"), USER], ["user", "user"], ["result_dropped"]),
    ],
)
def test_repair_makes_up_what_is_missing_and_says_so(
    messages: list[Json], wanted: list[str], noted: list[str]
) -> None:
    settled, receipt = settle(messages, repair=True)
    assert outline(settled) == wanted
    assert [note.code for note in receipt] == noted
    made_up = [message for message in settled if message.get("content") == NO_RESULT]
    assert len(made_up) == noted.count("result_made_up")


def unmarked(content: str = "ok", **more: Any) -> Json:
    return {"role": "tool", "content": content, **more}


@pytest.mark.parametrize(
    "one", [unmarked(), unmarked(tool_call_id=None), unmarked(tool_call_id="")]
)
def test_a_result_without_an_id_is_the_only_open_calls_if_repair_is_wanted(one: Json) -> None:
    for messages in ([USER, said("A"), one], [said("B"), result("B"), said("A"), USER, one]):
        settled, receipt = settle(messages, repair=True)
        assert [m for m in settled if m["role"] == "tool"][-1] == {**one, "tool_call_id": "A"}
        assert [note.code for note in receipt if note.code == "result_paired"] == ["result_paired"]
        with pytest.raises(BadRequest, match="'A'; or set history_repair = true") as caught:
            settle(messages)
        assert caught.value.code == "missing_required_parameter"
        assert caught.value.param == f"messages[{len(messages) - 1}].tool_call_id"


def test_the_last_of_several_results_needs_no_id_either() -> None:
    settled, _ = settle([said("A", "B"), result("B"), unmarked("a")], repair=True)
    assert outline(settled) == ["AB", "B", "A"]


@pytest.mark.parametrize("repair", [True, False])
def test_a_result_that_may_be_of_two_calls_is_never_guessed(repair: bool) -> None:
    with pytest.raises(BadRequest, match="2 calls have no result so far") as caught:
        settle([said("A", "B"), unmarked(), unmarked()], repair=repair)
    assert caught.value.param == "messages[1].tool_call_id"


def test_a_result_without_id_and_call_is_left_out_by_repair_alone() -> None:
    settled, receipt = settle([USER, unmarked()], repair=True)
    assert (outline(settled), [note.code for note in receipt]) == (["user"], ["result_dropped"])
    with pytest.raises(BadRequest, match="Missing required parameter"):
        settle([USER, unmarked()])


def test_arguments_of_calls_become_canonical_and_other_members_stay() -> None:
    message = said("A", content="text", reasoning_content="hm")
    message["tool_calls"][0]["function"]["arguments"] = '{"a" : 1.0}'
    settled, _ = settle([message, result("A")])
    assert settled[0]["tool_calls"][0]["function"]["arguments"] == '{"a":1.0}'
    assert {**settled[0], "tool_calls": 0} == {**message, "tool_calls": 0}


ROUNDS = st.lists(
    st.tuples(
        st.lists(st.sampled_from("ABCD"), unique=True, max_size=3), st.randoms(), st.booleans()
    ),
    max_size=4,
)


@given(ROUNDS)
def test_a_longer_conversation_begins_with_the_shorter_one(
    drawn: list[tuple[list[str], Any, bool]],
) -> None:
    """Append-only: what was settled once is settled the same way in every later turn."""
    messages: list[Json] = []
    turns: list[tuple[Json, ...]] = []
    for ids, random, asks in drawn:
        messages += [USER] * asks
        messages.append(said(*ids) if ids else {"role": "assistant", "content": "a"})
        messages += random.sample([result(identity) for identity in ids], len(ids))
        turns.append(settle(messages)[0])
    for shorter, longer in pairwise(turns):
        assert longer[: len(shorter)] == shorter


@given(ROUNDS)
def test_every_round_is_followed_by_exactly_its_results(
    drawn: list[tuple[list[str], Any, bool]],
) -> None:
    messages: list[Json] = []
    for ids, random, asks in drawn:
        if ids:
            tail = [result(identity) for identity in ids] + [USER] * asks
            messages += [said(*ids), *random.sample(tail, len(tail))]
    settled, _ = settle(messages)
    for position, message in enumerate(settled):
        ids = [call["id"] for call in message.get("tool_calls") or ()]
        behind = settled[position + 1 : position + 1 + len(ids)]
        assert {answer.get("tool_call_id") for answer in behind} == set(ids)
    assert settle(settled)[0] == settled
    assert len(settled) == len(messages)


def test_rounds_name_the_tool_of_each_call() -> None:
    custom = {"id": "C", "type": "custom", "custom": {"name": "sql", "input": "x"}}
    messages = [said("A", "B"), {"role": "assistant", "tool_calls": [custom]}]
    assert rounds(messages) == {"A": "f_A", "B": "f_B", "C": "sql"}
