"""Tools that OpenAI defines and clients run: functions to models, items of their own to clients."""

from __future__ import annotations

import orjson
import pytest

from adapters.protocol import Event, Finish, Json, TextDelta, ToolCallDelta, ToolCallStart
from tests.doors.responses.written import codes, item, kinds, read, streamed, whole

SEARCH: Json = {"type": "tool_search", "execution": "client", "description": "Finds."}
SHELL: Json = {"type": "local_shell"}
QUERY: Json = {"query": "refunds"}
COMMAND: Json = {"command": ["ls", "-l"]}
FOUND: Json = {"type": "function", "name": "refund", "parameters": {"type": "object"}}
SPACE: Json = {"type": "namespace", "name": "shop", "tools": [{"type": "function", "name": "buy"}]}
SEARCHED: Json = {"execution": "client", "arguments": QUERY}
RAN: Json = {"action": {"type": "exec", "env": {}, **COMMAND}}
CASES = {"tool_search": (SEARCH, QUERY, SEARCHED), "local_shell": (SHELL, COMMAND, RAN)}


def called(name: str, arguments: Json) -> list[Event]:
    said = orjson.dumps(arguments).decode()
    start = ToolCallStart(0, "c1", name)
    return [start, ToolCallDelta(0, said[:5]), ToolCallDelta(0, said[5:]), Finish("tool_calls")]


@pytest.mark.parametrize(("tool", "arguments", "members"), CASES.values(), ids=CASES)
def test_a_call_is_an_item_of_its_own(tool: Json, arguments: Json, members: Json) -> None:
    name = tool["type"]
    (declared,) = read(tools=[tool]).request.tools
    assert declared["function"]["name"] == name
    events = streamed(*called(name, arguments), tools=[tool])
    assert kinds(events[2:]) == ["output_item.added", "output_item.done", "completed"]
    done = events[3]["item"]
    assert done.pop("id")[:4] in ("tsc_", "lsh_")
    assert done == {"type": f"{name}_call", "status": "completed", "call_id": "c1", **members}
    folded = whole(*called(name, arguments), tools=[tool])
    assert folded["output"] == events[4]["response"]["output"]


@pytest.mark.parametrize(("tool", "arguments", "members"), CASES.values(), ids=CASES)
def test_it_comes_back_as_the_model_made_it(tool: Json, arguments: Json, members: Json) -> None:
    name = tool["type"]
    made = {"type": f"{name}_call", "call_id": "c1", "status": "completed", **members}
    told: Json = {"type": f"{name}_call_output", "call_id": "c1", "output": "files"}
    if name == "tool_search":
        told = {"type": "tool_search_output", "call_id": "c1", "tools": [FOUND, SPACE]}
    parsed = read([item("user", "hi"), made, told], tools=[tool])
    _, turn, result = parsed.request.messages
    function = turn["tool_calls"][0]["function"]
    assert (function["name"], orjson.loads(function["arguments"])) == (name, arguments)
    assert "files" in result["content"] or "refund" in result["content"]
    assert codes(parsed) == []


def test_tools_that_were_found_are_there_once() -> None:
    rounds: list[Json] = []
    for identity in ("c1", "c2"):
        rounds.append({"type": "tool_search_call", "call_id": identity, **SEARCHED})
        found = {"type": "tool_search_output", "call_id": identity, "tools": [FOUND, SPACE]}
        rounds.append(found)
    parsed = read([item("user", "hi"), *rounds], tools=[SEARCH])
    names = [tool["function"]["name"] for tool in parsed.request.tools]
    assert names == ["tool_search", "refund", "shop__buy"]


def test_a_choice_may_name_one() -> None:
    choice = read(tools=[SEARCH], tool_choice={"type": "tool_search"}).request.tool_choice
    assert choice == {"type": "function", "function": {"name": "tool_search"}}


def test_what_is_said_in_the_middle_of_a_call_waits() -> None:
    start, first, second, end = called("tool_search", QUERY)
    output = whole(start, first, TextDelta("a"), second, end, tools=[SEARCH])["output"]
    assert [one["type"] for one in output] == ["tool_search_call", "message"]
    assert output[0]["arguments"] == QUERY


def test_a_call_that_was_cut_is_not_done() -> None:
    start, first, *_ = called("local_shell", COMMAND)
    events = streamed(start, first, Finish("length"), tools=[SHELL])
    assert "output_item.done" not in kinds(events)
    assert events[-1]["response"]["output"][0]["status"] == "incomplete"


def test_a_search_that_openai_runs_is_left_out() -> None:
    parsed = read(tools=[{"type": "tool_search"}, FOUND])
    assert [tool["function"]["name"] for tool in parsed.request.tools] == ["refund"]
    assert codes(parsed) == [("tool_dropped", "tools[0]")]
