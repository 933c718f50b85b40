"""What clients, and the log, are told of server tools."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from adapters.protocol import Json
from tests.support.adapters import FakeAdapter
from tests.support.door import Door, door
from tests.support.tools import FakeShelf
from tests.wrappers.server_tools.rounds import calling, saying, wrapped

CALL = ("c1", "now", '{"city": "x"}')


def asked(stream: bool, **settings: Any) -> tuple[Door, list[Json]]:
    """What a client gets of a model that calls a tool: the body, or the chunks."""
    model = FakeAdapter(calling(CALL, text="Wait."), saying("It is sunny."))
    served = door(wrapped(model, FakeShelf(w__now="sunny"), **settings))
    fields: dict[str, Any] = (
        {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    )
    heard = asyncio.run(served.chat(**fields))
    assert heard.status == 200
    if not stream:
        return served, [heard.json()]
    frames = [frame.removeprefix(b"data: ") for frame in heard.frames()]
    assert frames.pop() == b"[DONE]"
    return served, [orjson.loads(frame) for frame in frames]


def test_a_whole_answer_has_the_texts_and_the_sum_of_the_usage() -> None:
    _, (body,) = asked(stream=False)
    message = body["choices"][0]["message"]
    assert message["content"] == "Wait.\n\nIt is sunny."
    assert "tool_calls" not in message
    assert body["usage"]["total_tokens"] == 33
    assert "x_usetool" not in body


def test_a_stream_has_no_trace_of_the_tool() -> None:
    _, chunks = asked(stream=True)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert [delta.get("content") for delta in deltas] == ["", "Wait.", "\n\n", "It is sunny.", None]
    assert not any("tool_calls" in delta for delta in deltas)
    parts = chunks[-2]["x_usetool"]["usage"]
    assert [parts["round_1"]["total_tokens"], parts["round_2"]["total_tokens"]] == [11, 22]
    assert chunks[-1]["usage"]["total_tokens"] == 33


def test_steps_are_a_member_of_a_whole_answer() -> None:
    _, (body,) = asked(stream=False, steps=True)
    (step,) = body["x_usetool"]["steps"]
    assert (step["tool"], step["result"], step["arguments"]) == ("now", "sunny", {"city": "x"})
    assert set(body["choices"][0]["message"]) == {"role", "content", "refusal"}


def test_steps_stand_beside_empty_deltas_and_once_more_at_the_end() -> None:
    _, chunks = asked(stream=True, steps=True)
    steps = [one for one in chunks if "step" in one.get("x_usetool", {})]
    assert [one["x_usetool"]["step"]["state"] for one in steps] == ["started", "done"]
    for one in steps:
        assert one["choices"][0]["delta"] == {}
        assert one["choices"][0]["finish_reason"] is None
    finish = chunks[-2]
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert [step["id"] for step in finish["x_usetool"]["steps"]] == ["c1"]


def test_the_log_has_rounds_and_tools_and_no_word_of_theirs() -> None:
    served, _ = asked(stream=False)
    (line,) = served.lines()
    assert line["rounds"] == 2
    (run,) = line["server_tools"]
    assert isinstance(run.pop("seconds"), float)
    assert run == {"tool": "w.now", "round": 1, "ok": True, "chars": 5}
    assert "sunny" not in orjson.dumps(line).decode()
