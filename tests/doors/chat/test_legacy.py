"""The first way of calling, and histories that may be repaired."""

from __future__ import annotations

import re

import pytest

from adapters.protocol import Json
from middleware.doors.chat.parse import parse
from tests.doors.chat.bodies import CALLS, OLD_CALL, OLD_RESULT, RESULT, TOOL, USER, ask, body, said

# The first way of calling ----------------------------------------------------------------------


def test_functions_become_tools_one_call_at_a_time() -> None:
    functions = [{"name": "f", "parameters": {"type": "object"}}, {"name": "g"}]
    asked = ask(functions=functions, function_call={"name": "g"}, temperature=0)
    request = asked.request
    assert asked.legacy
    assert [tool["function"] for tool in request.tools] == functions
    assert request.tool_choice == {"type": "function", "function": {"name": "g"}}
    assert request.params == {"temperature": 0, "parallel_tool_calls": False}


@pytest.mark.parametrize("choice", ["none", "auto", None])
def test_a_word_of_function_call_stays_that_word(choice: str | None) -> None:
    assert ask(functions=[{"name": "f"}], function_call=choice).request.tool_choice == choice


def test_old_calls_and_their_results_get_one_id() -> None:
    asked = ask(functions=[{"name": "f"}], **said(OLD_CALL, OLD_RESULT, OLD_CALL, OLD_RESULT))
    _, call, result, second, other = asked.request.messages
    (said_call,) = call["tool_calls"]
    function = {"name": "f", "arguments": "{}"}
    assert said_call == {"id": said_call["id"], "type": "function", "function": function}
    assert re.fullmatch("call_[0-9a-f]{24}", said_call["id"])
    assert "function_call" not in call
    assert result == {
        "role": "tool",
        "tool_call_id": call["tool_calls"][0]["id"],
        "content": "ok",
    }
    assert other["tool_call_id"] == second["tool_calls"][0]["id"] != result["tool_call_id"]


def test_the_ids_of_old_calls_are_the_same_in_every_later_turn() -> None:
    first = ask(**said(OLD_CALL, OLD_RESULT)).request.messages
    later = ask(**said(OLD_CALL, OLD_RESULT, USER, OLD_CALL, OLD_RESULT)).request.messages
    assert later[: len(first)] == first


def test_an_old_result_without_content_is_empty() -> None:
    messages = ask(**said(OLD_CALL, {"role": "function", "name": "f"})).request.messages
    assert messages[-1]["content"] == ""


def test_an_echoed_null_function_call_is_not_the_old_way() -> None:
    echoed = {"role": "assistant", "content": "x", "function_call": None, "tool_calls": None}
    asked = ask(tools=[TOOL], **said(echoed))
    assert not asked.legacy
    assert asked.request.messages[1] == echoed


def test_an_old_history_with_tools_is_answered_with_tool_calls() -> None:
    asked = ask(tools=[TOOL], **said(OLD_CALL, OLD_RESULT))
    assert not asked.legacy
    assert "parallel_tool_calls" not in asked.request.params


# Histories that may be repaired ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "roles", "codes"),
    [
        ((CALLS, USER), ["user", "assistant", "tool", "user"], ["result_made_up"]),
        ((RESULT,), ["user"], ["result_dropped"]),
        ((OLD_CALL, USER), ["user", "assistant", "tool", "user"], ["result_made_up"]),
        ((OLD_RESULT,), ["user"], ["result_dropped"]),
    ],
)
def test_a_history_is_repaired_where_the_config_says_so(
    messages: tuple[Json, ...], roles: list[str], codes: list[str]
) -> None:
    asked = parse(body(**said(*messages)), repair=True)
    assert [message["role"] for message in asked.request.messages] == roles
    assert [note.code for note in asked.receipt] == codes
