"""The leaves take back what recall gives them: the second question of a Dify agent, on the wire."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from adapters import claude, deepseek, ollama
from adapters.kind import Settings, known_kind
from adapters.protocol import Adapter, ChatRequest, Json, RequestContext
from adapters.wire.http import Link
from middleware.wrappers.recall import Recall, SqliteStore
from tests.support.dialogue import assistant, rebuilt, result, user
from tests.support.upstreams.loopback import Peer, loopback

PAIR = (("id_1", "weather", '{"city":"沈阳"}'), ("id_2", "weather", '{"city":"大连"}'))
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
BLOCKS: list[Json] = [
    {"type": "thinking", "thinking": "两个城市", "signature": "c2lnbmVk"},
    {"type": "redacted_thinking", "data": "b3BhcXVl"},
    {"type": "tool_use", "id": "id_1", "name": "weather", "input": {"city": "沈阳"}},
    {"type": "thinking", "thinking": "", "signature": "YmV0d2Vlbg"},
    {"type": "tool_use", "id": "id_2", "name": "weather", "input": {"city": "大连"}},
]


def message(content: list[Json], reason: str) -> Json:
    used = {"input_tokens": 1, "output_tokens": 1}
    return {
        "id": "msg", "type": "message", "role": "assistant", "model": "m",
        "content": content, "stop_reason": reason, "usage": used,
    }  # fmt: skip


def completion(said: Json, reason: str) -> Json:
    choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": reason}
    used = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "x", "model": "m", "choices": [choice], "usage": used}


def chat(said: Json) -> Json:
    said = {"role": "assistant", "content": "", **said}
    return {"model": "m", "message": said, "done": True, "done_reason": "stop"}


CALLS = assistant(None, *PAIR)["tool_calls"]
OBJECTS = [
    {"id": call["id"], "function": {"name": "weather", "arguments": orjson.loads(arguments)}}
    for call, (_, _, arguments) in zip(CALLS, PAIR, strict=True)
]
ANSWERS: dict[str, tuple[Callable[[Settings[Any]], Adapter], list[Json]]] = {
    "claude": (
        claude.connect,
        [message(BLOCKS, "tool_use"), message([{"type": "text", "text": "5, 7"}], "end_turn")],
    ),
    "deepseek": (
        deepseek.connect,
        [
            completion(
                {"content": "", "reasoning_content": "想", "tool_calls": CALLS}, "tool_calls"
            ),
            completion({"content": "5, 7", "reasoning_content": "好"}, "stop"),
        ],
    ),
    "ollama": (
        ollama.connect,
        [chat({"thinking": "想", "tool_calls": OBJECTS}), chat({"content": "5, 7"})],
    ),
}
ASKED = user("两地天气?")
ROUND = [assistant("", *PAIR), result("id_1", "5℃"), result("id_2", "7℃")]
ABLE = {"thinking": True, "tools": True}


def second_question(kind: str, store: Path) -> list[Json]:
    """The bodies an upstream gets of a question, a round of tools, and the next question."""
    connect, answers = ANSWERS[kind]
    left = iter([*answers, answers[-1]])
    bodies: list[Json] = []

    async def behave(peer: Peer) -> None:
        while True:
            head, body = await peer.request()
            if "post /api/show" in head or head.startswith("get"):
                await peer.answer(b'{"capabilities":["completion","tools","thinking"]}')
                continue
            bodies.append(orjson.loads(body))
            await peer.answer(orjson.dumps(next(left)), "content-type: application/json")

    async def run(use: Callable[[Link], Awaitable[None]]) -> None:
        async with loopback(behave) as upstream:
            await use(upstream.link)

    async def use(link: Link) -> None:
        minted = map("new{}".format, itertools.count())
        again = rebuilt([ASKED, *ROUND], lambda: next(minted))
        for messages in (
            [ASKED],
            [ASKED, *ROUND],
            [*again, assistant("5, 7"), user("谢谢")],
        ):
            # A new store every time: the gateway was restarted.
            adapter = Recall(
                connect(known_kind(kind).settings(link, abilities=_able(kind))), SqliteStore(store)
            )
            await drained(adapter, messages)

    asyncio.run(run(use))
    return bodies


def _able(kind: str) -> dict[str, Any]:
    return ABLE if kind == "ollama" else {}


async def drained(adapter: Adapter, messages: list[Json]) -> None:
    asked = ChatRequest("m", tuple(messages), tools=(TOOL,), call=RequestContext(owner="dify"))
    asked = replace(asked, params={"reasoning_effort": "none"})
    async for _ in adapter.stream(asked):
        pass


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_rebuilt_history_is_the_same_bytes_upstream(kind: str, tmp_path: Path) -> None:
    first, second, third = (body["messages"] for body in second_question(kind, tmp_path / "r.db"))
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert len(third) == len(second) + 2


def test_claude_gets_its_own_blocks_byte_for_byte_in_their_order(tmp_path: Path) -> None:
    *_, third = second_question("claude", tmp_path / "r.db")
    _, turn, results, *_ = third["messages"]
    assert orjson.dumps(turn["content"]) == orjson.dumps(BLOCKS)
    assert [block["tool_use_id"] for block in results["content"]] == ["id_1", "id_2"]


@pytest.mark.parametrize(
    ("kind", "name"), [("deepseek", "reasoning_content"), ("ollama", "thinking")]
)
def test_others_get_their_thought(kind: str, name: str, tmp_path: Path) -> None:
    *_, third = second_question(kind, tmp_path / "r.db")
    assert third["messages"][1][name] == "想"
