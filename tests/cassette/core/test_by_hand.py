"""Cassettes that people wrote: little is enough, and a mistake is named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.protocol import Json
from tests.cassette.core.desk import REPLAYED, asking, desk, folded, streamed
from tests.cassette.values import values
from tests.support.door import Heard

ASK = asking("Who?")


def written(folder: Path, *turns: Json) -> None:
    lines = [f"- {json.dumps(one)}\n" for one in turns]
    text = "usetool: {cassette: 1}\nturns:\n" + "".join(lines)
    (folder / "default.yaml").write_text(text, "utf-8")


def turn(message: Any, **answer: Any) -> Json:
    return {"ask": {"body": ASK}, "answer": {"message": message, **answer}}


def heard(folder: Path, body: Json = ASK) -> Heard:
    async def go() -> Heard:
        async with desk(folder, REPLAYED, "replay") as gateway:
            return await gateway.ask(body)

    return asyncio.run(go())


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ENOUGH: Sequence[tuple[Json, Json]] = (
    (turn({"content": "Me."}), {"content": "Me.", "reason": "stop"}),
    (turn({"content": "Me."}, finish_reason="length"), {"content": "Me.", "reason": "length"}),
    (turn({"refusal": "No."}), {"refusal": "No.", "reason": "stop"}),
    (
        turn({"tool_calls": [{"function": {"name": "f"}}]}, finish_reason="tool_calls"),
        {"tool_calls": [{**CALL, "id": "call_0"}], "reason": "tool_calls"},
    ),
    (
        turn({"content": "I think.", "tool_calls": [CALL]}, finish_reason="tool_calls"),
        {"content": "I think.", "tool_calls": [CALL], "reason": "tool_calls"},
    ),
    (
        turn({"content": "a"}, usage={"prompt_tokens": 3, "completion_tokens": 2}),
        {
            "content": "a",
            "reason": "stop",
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        },
    ),
)


@pytest.mark.parametrize(("turn", "expected"), ENOUGH)
@pytest.mark.parametrize("streams", [False, True])
def test_an_ask_and_an_answer_are_enough(
    tmp_path: Path, turn: Json, expected: Json, streams: bool
) -> None:
    written(tmp_path, turn)
    body = streamed(ASK) if streams and "usage" in expected else {**ASK, "stream": streams}
    found = folded(heard(tmp_path, body))
    assert found == {"role": "assistant", "usage": None, **expected}


def test_an_error_is_an_answer_too(tmp_path: Path) -> None:
    error = {"message": "Slowly!", "code": "too_fast", "retry_after": "3"}
    written(tmp_path, {"ask": {"body": ASK}, "answer": {"status": 429, "error": error}})
    again = heard(tmp_path)
    assert (again.status, again.headers["retry-after"]) == (429, "3")
    assert again.error()["code"] == "too_fast"


def test_its_ids_and_times_are_made_of_its_number(tmp_path: Path) -> None:
    written(tmp_path, turn({"content": "a"}), turn({"content": "b"}))
    first = heard(tmp_path).json()
    assert (first["id"], first["created"]) == (f"chatcmpl-{1:024x}", 1)
    assert heard(tmp_path).json() == first


MISTAKES: Sequence[Json] = (
    turn({"tool_calls": [{"function": {"arguments": "{}"}}]}),
    turn({"tool_calls": [{"function": "f"}]}),
    turn({"tool_calls": "f"}),
    turn({"tool_calls": [1]}),
    turn({"content": ["a"]}),
    turn({"content": 1}),
    turn({"content": "a"}, usage={"prompt_tokens": "many"}),
    turn({"content": "a"}, usage={"prompt_tokens_details": {"cached_tokens": "many"}}),
    turn({"function_call": {"arguments": "{}"}}),
    turn({"tool_calls": [{"type": "custom", "custom": {"name": 1}}]}),
    {"ask": {"body": {"model": "m"}}, "answer": {"message": {"content": "a"}}},
    {"ask": {"body": {"model": "m", "messages": "hi"}}, "answer": {"message": {}}},
)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, mistake: Json) -> None:
    written(tmp_path, mistake)
    told = heard(tmp_path)
    assert (told.status, told.error()["code"]) == (422, "cassette_unreadable"), told.body
    assert "default.yaml, line 3" in told.error()["message"]


@given(values(), st.sampled_from(["content", "tool_calls", "reasoning_content", "refusal", "x"]))
@settings(max_examples=20)
def test_no_answer_by_hand_is_a_mistake_of_the_gateway(
    tmp_path_factory: pytest.TempPathFactory, value: Any, name: str
) -> None:
    folder = tmp_path_factory.mktemp("by-hand")
    written(folder, turn({"content": "a", name: value}))
    again = heard(folder)
    assert again.status in (200, 422), again.body


def test_a_turn_whose_model_has_no_route_is_answered_as_it_was(tmp_path: Path) -> None:
    exchange = {"request": {"uri": "http://up.test/x"}, "response": {"body": {"text": "x"}}}
    written(tmp_path, {**turn({"content": "stored"}), "upstream": [exchange]})
    again = heard(tmp_path)
    assert folded(again)["content"] == "stored"
    assert again.headers["x-usetool-replay"] == "default turn=1 of=1 drift=unused"


ROUTES: Sequence[Json] = (
    {"m": {"kind": "nonsense", "upstream": "up", "name": "x"}},
    {"m": {"kind": "compatible", "upstream": "up", "name": "x", "tools": "sometimes"}},
    {"m": {"pipeline": "reason-then-answer", "reasoner": "a", "answerer": "b"}},
    {"m": "x"},
    {"m": {"kind": "compatible", "upstream": "up", "server_tools": [{"function": {"name": 1}}]}},
)


@pytest.mark.parametrize("routes", ROUTES)
def test_routes_that_cannot_be_meant_are_named(tmp_path: Path, routes: Json) -> None:
    exchange = {"request": {"uri": "http://up.test/x"}, "response": {"body": {"text": "x"}}}
    made = {**turn({"content": "stored"}), "upstream": [exchange]}
    text = json.dumps({"usetool": {"cassette": 1}, "routes": routes, "turns": [made]})
    (tmp_path / "default.yaml").write_text(text, "utf-8")

    async def go() -> tuple[list[Heard], Json]:
        async with desk(tmp_path, REPLAYED, "replay") as gateway:
            found = [await gateway.ask(ASK), await gateway.ask(ASK)]
            return found, gateway.studio.status("default", "")

    found, status = asyncio.run(go())
    for again in found:
        assert (again.status, again.error()["code"]) == (422, "cassette_unreadable")
        assert "routes cannot be meant" in again.error()["message"]
    assert (len(status["missed"]), status["unused"]) == (2, [1])
