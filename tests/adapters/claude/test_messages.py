"""A conversation as Claude takes it: paired, merged, append-only, nothing lost without a word."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.protocol import TURN, Json
from adapters.shared.history import GO_ON
from tests.adapters.claude.conversations import (
    SHENYANG,
    SIGNED,
    assert_accepted,
    codes,
    refusal,
    said,
    system,
)
from tests.support.dialogue import assistant, result, user
from tests.support.upstreams.claude_wire import (
    ALWAYS,
    HELLO,
    MANUAL,
    UNASKED,
    WEATHER,
    request,
    sent,
    turns,
)

# System -----------------------------------------------------------------------------------------


def test_leading_system_and_developer_messages_keep_their_order_and_parts() -> None:
    parts = [said("b"), said(""), said("c")]
    body, notes = sent(request(system("a"), system(parts, "developer"), HELLO))
    assert body["system"] == [said("a"), said("b"), said("c")]
    assert body["messages"] == [{"role": "user", "content": [said("hello")]}]
    assert notes == []


def test_later_system_message_is_a_note_of_the_user_where_the_model_has_no_other_way() -> None:
    messages = (user("a"), assistant("b"), system("be brief"), user("c"))
    last = turns(*messages)[-1]
    assert last == {"role": "user", "content": [said("[system note] be brief"), said("c")]}
    assert codes(*messages) == ["system_as_user_text"]


def test_later_system_message_stands_behind_the_users_turn_where_the_model_takes_it() -> None:
    messages = (user("a"), assistant("b"), system("be brief"), user("c"))
    roles = [(turn["role"], turn["content"]) for turn in turns(*messages, model=UNASKED)]
    assert roles[2:] == [("user", [said("c")]), ("system", [said("be brief")])]
    assert codes(*messages, model=UNASKED) == ["system_moved"]
    assert codes(user("a"), system("x"), assistant("b"), user("c"), model=UNASKED) == []


def test_later_system_message_never_parts_a_call_from_its_result() -> None:
    messages = (user("a"), assistant(None, SHENYANG), system("quick"), result("a", "5"), user("c"))
    for model in (MANUAL, UNASKED):
        body, _ = sent(request(*messages, model=model, tools=[WEATHER]))
        assert_accepted(body)


def test_system_alone_is_refused() -> None:
    error = refusal(system("a"))
    assert "user message" in error.message
    assert error.param == "messages"


# Turns ------------------------------------------------------------------------------------------


def test_consecutive_turns_of_one_role_are_one() -> None:
    messages = (user("a"), user([said("b"), said("c")]), assistant("d"), assistant("e"), user("f"))
    assert turns(*messages) == [
        {"role": "user", "content": [said("a"), said("b"), said("c")]},
        {"role": "assistant", "content": [said("d"), said("e")]},
        {"role": "user", "content": [said("f")]},
    ]


def test_conversation_the_assistant_begins_is_left_as_it_is_for_claude() -> None:
    messages = (assistant("Hi!"), user("a"))
    assert [turn["role"] for turn in turns(*messages)] == ["assistant", "user"]
    assert codes(*messages) == []


def test_conversation_the_assistant_begins_gets_a_beginning_for_other_servers() -> None:
    messages = (assistant("Hi!"), user("a"))
    first = turns(*messages, model="kimi-k2")[0]
    assert first == {"role": "user", "content": [said("(conversation start)")]}
    assert codes(*messages, model="kimi-k2") == ["beginning_added"]


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_text_nobody_can_see_is_left_out_by_name(blank: str) -> None:
    messages = (user("a"), assistant("b"), user([said(blank), said("c")]))
    assert turns(*messages)[-1]["content"] == [said("c")]
    assert codes(*messages) == ["empty_text_dropped"]
    assert len(turns(user(blank), assistant("b"), user("c"))) == 2


@pytest.mark.parametrize("messages", [[user("")], [user("a"), assistant("b"), user(" ")]])
def test_last_turn_of_nothing_is_refused(messages: list[Json]) -> None:
    error = refusal(*messages)
    assert error.param == f"messages[{len(messages) - 1}].content"


def test_assistants_empty_text_beside_calls_is_no_loss_worth_a_word() -> None:
    contents: list[Any] = [None, "", []]
    for content in contents:
        turn = {**assistant(None, SHENYANG), "content": content}
        body, notes = sent(request(user("a"), turn, result("a", "5"), tools=[WEATHER]))
        assert [block["type"] for block in body["messages"][1]["content"]] == ["tool_use"]
        assert notes == []


def test_prefill_is_stripped_where_the_model_goes_on_with_it() -> None:
    assert turns(user("a"), assistant("{ \n"))[-1]["content"] == [said("{")]


GONE_ON = [
    {"role": "assistant", "content": [said("b")]},
    {"role": "user", "content": [said(GO_ON)]},
]


def test_a_last_message_of_the_assistant_is_answered_where_the_model_does_not_go_on() -> None:
    messages = (user("a"), assistant("b"))
    assert turns(*messages, model=ALWAYS)[1:] == GONE_ON
    assert codes(*messages, model=ALWAYS) == ["ending_added"]


def test_a_schema_is_not_answered_by_going_on() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    asked = request(user("a"), assistant("b"), response_format=form)
    body, notes = sent(asked)
    assert body["output_config"]["format"]["type"] == "json_schema"
    assert body["messages"][1:] == GONE_ON
    assert notes == ["ending_added"]


def test_what_was_answered_behind_the_assistant_stands_there_in_later_turns_too() -> None:
    own = {"role": "assistant", "content": [said("c")]}
    asked = (user("a"), assistant("b"))
    later = (*asked, {**assistant("c"), TURN: own}, user("d"))
    before = turns(*asked, model=ALWAYS)
    assert turns(*later, model=ALWAYS) == [*before, own, {"role": "user", "content": [said("d")]}]


def test_names_stand_before_the_text() -> None:
    messages = ({**user([said("a"), said("b")]), "name": "Li"}, {**assistant("c"), "name": "x"})
    asked = (*messages, user("d"))
    assert turns(*asked)[0]["content"] == [said("Li:\na"), said("b")]
    assert codes(*asked) == ["name_as_prefix", "name_dropped"]


def test_a_name_that_repeats_the_role_is_not_said() -> None:
    asked = ({**user("a"), "name": "User"},)
    assert turns(*asked)[0]["content"] == [said("a")]
    assert codes(*asked) == ["name_dropped"]


def test_refusals_of_the_past_are_text() -> None:
    parts = [said("a"), {"type": "refusal", "refusal": "b"}]
    messages = (user("x"), {"role": "assistant", "content": parts, "refusal": "c"}, user("y"))
    assert turns(*messages)[1]["content"] == [said("a"), said("b"), said("c")]
    assert codes(*messages) == ["refusal_as_text", "refusal_as_text"]


# Properties -------------------------------------------------------------------------------------


_text = st.sampled_from(["", " ", "a", "好", "b\n", "[system note] x"])
_identity = st.sampled_from(["1", "c:1", "c|1", "toolu_9", "好"])
_arguments = st.sampled_from(["", "{}", '{"a": 1.0}', "[]", '{"half'])


@st.composite
def _round(draw: st.DrawFn) -> list[Json]:
    calls = draw(st.lists(st.tuples(_identity, st.just("f"), _arguments), max_size=3))
    calls = list({one[0]: one for one in calls}.values())
    answered = draw(st.permutations([one[0] for one in calls]))
    message = assistant(draw(_text), *calls)
    if draw(st.booleans()):
        message["thinking_blocks"] = [SIGNED]
    return [message, *(result(one, draw(_text)) for one in answered)]


_alone = st.one_of(_text.map(user), _text.map(system), _text.map(lambda one: [said(one)]).map(user))
_message = st.one_of(_alone.map(lambda one: [one]), _round())
_conversations = st.lists(_message, max_size=6).map(lambda found: [HELLO, *chain(*found)])
_models = st.sampled_from([MANUAL, "claude-opus-4-6", UNASKED, ALWAYS, "kimi-k2"])


def _rounds(messages: Sequence[Json]) -> list[Json]:
    return [*messages, user("and now?")]


@given(_conversations, _models)
def test_claude_accepts_every_settled_conversation(messages: list[Json], model: str) -> None:
    asked = request(*_rounds(messages), model=model)
    before = orjson.dumps(asked.messages)
    body, _ = sent(asked)
    assert_accepted(body)
    assert orjson.dumps(asked.messages) == before
    assert sent(asked)[0] == body


@given(_conversations, _conversations, _models)
def test_longer_conversation_begins_with_the_same_bytes(
    first: list[Json], more: list[Json], model: str
) -> None:
    shorter = sent(request(*_rounds(first), model=model))[0]["messages"]
    longer = sent(request(*_rounds(first), assistant("so"), *_rounds(more), model=model))[0]
    assert longer["messages"][: len(shorter)] == shorter
