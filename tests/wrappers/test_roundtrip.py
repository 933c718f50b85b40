"""A history that went up says the same when it is read back: ids, names, arguments, order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.protocol import Json
from adapters.shared.toolbox import alias
from middleware.doors.chat.parse import parse
from tests.support.recordings import Upstream, upstreams

NAMES = ("get_weather", "查询天气", "save-note_2")
TOOLS = [{"type": "function", "function": {"name": name}} for name in NAMES]
ORIGINAL = {alias(name): name for name in NAMES}
VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
)
ARGUMENTS = st.dictionaries(st.text('a天"\\/\n', min_size=1, max_size=3), VALUES, max_size=4)
# Ids every language takes as they are.
IDS = st.text("abcXYZ019_-", min_size=1, max_size=12)

Round = tuple[list[tuple[str, str, str]], list[str]]
"""Calls as id, name and arguments; the texts of their results."""


@st.composite
def rounds(draw: st.DrawFn) -> list[Round]:
    ids = draw(st.lists(IDS, unique=True, min_size=1, max_size=6))
    found: list[Round] = []
    while ids:
        mine, ids = ids[: (size := draw(st.integers(1, 3)))], ids[size:]
        calls = [
            (
                identity,
                draw(st.sampled_from(NAMES)),
                json.dumps(draw(ARGUMENTS), ensure_ascii=False, separators=(",", ":")),
            )
            for identity in mine
        ]
        found.append((calls, [f"result of {identity}" for identity in mine]))
    return found


def history(told: Sequence[Round]) -> list[Json]:
    messages: list[Json] = [{"role": "user", "content": "go"}]
    for calls, results in told:
        made = [
            {"id": identity, "type": "function", "function": {"name": name, "arguments": text}}
            for identity, name, text in calls
        ]
        messages.append({"role": "assistant", "content": None, "tool_calls": made})
        messages += [
            {"role": "tool", "tool_call_id": call[0], "content": result}
            for call, result in zip(calls, results, strict=True)
        ]
    return messages


def from_openai(body: Json) -> list[Round]:
    told: list[Round] = []
    for message in body["messages"]:
        if message.get("tool_calls"):
            said = [(call["id"], call["function"]) for call in message["tool_calls"]]
            calls = [(identity, call["name"], call["arguments"]) for identity, call in said]
            told.append((calls, []))
        elif message["role"] == "tool":
            assert message["tool_call_id"] == told[-1][0][len(told[-1][1])][0]
            told[-1][1].append(message["content"])
    return told


def from_ollama(body: Json) -> list[Round]:
    told: list[Round] = []
    for message in body["messages"]:
        if message.get("tool_calls"):
            said = [(call["id"], call["function"]) for call in message["tool_calls"]]
            assert [call["index"] for _, call in said] == list(range(len(said)))
            told.append(([(key, call["name"], text(call["arguments"])) for key, call in said], []))
        elif message["role"] == "tool":
            identity, name, _ = told[-1][0][len(told[-1][1])]
            assert (message["tool_call_id"], message["tool_name"]) == (identity, name)
            told[-1][1].append(message["content"])
    return told


def from_claude(body: Json) -> list[Round]:
    told: list[Round] = []
    for turn in body["messages"]:
        for block in turn["content"]:
            if block["type"] == "tool_use":
                if not told or told[-1][1]:
                    told.append(([], []))
                told[-1][0].append((block["id"], block["name"], text(block["input"])))
            elif block["type"] == "tool_result":
                assert block["tool_use_id"] == told[-1][0][len(told[-1][1])][0]
                told[-1][1].append(block["content"])
    return told


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


READERS: Mapping[str, Callable[[Json], list[Round]]] = {
    "claude": from_claude,
    "compatible": from_openai,
    "deepseek": from_openai,
    "ollama": from_ollama,
}
READ = [upstream for upstream in upstreams() if upstream.name in READERS]


@pytest.mark.parametrize("upstream", READ, ids=lambda upstream: upstream.name)
@given(told=rounds())
def test_a_history_reads_back_as_it_was(upstream: Upstream, told: list[Round]) -> None:
    body = {"model": upstream.model, "messages": history(told), "tools": TOOLS}
    asked = parse(orjson.dumps(body))
    (planned,) = upstream.connect(upstream.link()).plan(asked.request)
    sent = orjson.dumps(planned.body)
    found = READERS[upstream.name](json.loads(sent))
    original = [
        ([(identity, ORIGINAL[name], said) for identity, name, said in calls], results)
        for calls, results in found
    ]
    assert original == told
    # A parser would have changed 1.0 or 1e22: what was said is found in the very bytes.
    for calls, _ in told:
        for *_, arguments in calls:
            quoted = orjson.dumps(arguments)[1:-1]
            assert arguments.encode() in sent or quoted in sent


@pytest.mark.parametrize("upstream", READ, ids=lambda upstream: upstream.name)
@pytest.mark.parametrize(
    "number", ["1.0", "1e22", "-0.0", "12345678901234567890123", "0.1000000000000000055", "1E+2"]
)
def test_numbers_go_up_as_they_were_written(upstream: Upstream, number: str) -> None:
    told: list[Round] = [([("call_1", "get_weather", f'{{"n":{number}}}')], ["ok"])]
    body = {"model": upstream.model, "messages": history(told), "tools": TOOLS}
    asked = parse(orjson.dumps(body))
    (planned,) = upstream.connect(upstream.link()).plan(asked.request)
    assert f":{number}}}" in orjson.dumps(planned.body).decode()
