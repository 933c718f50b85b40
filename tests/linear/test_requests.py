"""What strangers send in requests is parsed and written in linear time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import orjson
import pytest

from adapters import compatible, deepseek
from adapters.claude.capabilities import capability
from adapters.claude.encode import Profile
from adapters.claude.encode import encode as claude_encode
from adapters.claude.tools import box_of
from adapters.compatible.dialect import Dialect
from adapters.errors import GatewayError
from adapters.ollama.abilities import Abilities
from adapters.ollama.encode import Options
from adapters.ollama.encode import encode as ollama_encode
from adapters.protocol import ChatRequest, Json
from adapters.shared.toolbox import toolbox
from middleware.doors.body import MAX_VALUES
from middleware.doors.chat.parse import parse
from middleware.doors.seen import Seen
from middleware.wrappers.emulation import Emulation
from middleware.wrappers.emulation.ask.prompted_request import prompt_for
from middleware.wrappers.recall import MemoryStore, Recall
from tests.linear.measuring import is_long, is_within, seconds, seconds_unless_long
from tests.support.adapters import FakeAdapter

# Requests: parsed, and written for every upstream ------------------------------------------------


_CLAUDE = capability("claude-sonnet-4-5", {})
LEAVES: Mapping[str, Callable[[ChatRequest], Any]] = {
    "claude": lambda prompted: claude_encode(prompted, box_of(prompted, _CLAUDE), Profile(_CLAUDE))[
        0
    ],
    "ollama": lambda prompted: ollama_encode(prompted, toolbox(prompted), Abilities(), Options())[
        0
    ],
    "deepseek": lambda prompted: deepseek.encode(prompted, deepseek.Habits())[0],
    "compatible": lambda prompted: compatible.encode(prompted, Dialect())[0],
    "emulated": lambda request: prompt_for(request, Emulation(), True),
    "recall": lambda prompted: Recall(FakeAdapter(), MemoryStore()).plan(prompted)[0].body,
}
USER = {"role": "user", "content": "hi"}
_MANY = MAX_VALUES * 9 // 10
_LONG = 4_000_000


def _tool(parameters: Json, name: str = "f") -> Json:
    function = {"name": name, "parameters": parameters, "strict": True}
    return {"type": "function", "function": function}


def _round(at: int, arguments: str = '{"a": 1}') -> list[Json]:
    function = {"name": "f", "arguments": arguments}
    call = {"id": f"c{at}", "type": "function", "function": function}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [said, {"role": "tool", "tool_call_id": f"c{at}", "content": "x"}]


def _laughing(levels: int, words: str) -> Json:
    two = [{"$ref": f"#/$defs/l{level + 1}"} for level in range(levels)]
    shapes = {
        f"l{level}": {"properties": {"a": two[level], "b": two[level]}} for level in range(levels)
    }
    last = {"type": "string", "description": words}
    return {"properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": {**shapes, f"l{levels}": last}}


def _properties(schema: Json, count: int) -> Json:
    return {"type": "object", "properties": {f"a{at}": schema for at in range(count)}}


_DESCRIBED = {"type": "string", "description": "d" * 60_000}
_MEMBERS = _properties({"type": "string"}, 5000)
SCHEMAS: Mapping[str, list[Json]] = {
    "billion laughs in each of 800 tools": [_laughing(6, "ha" * 100)] * 800,
    "long laughs": [_laughing(20, "ha" * 30_000)],
    "one description 10,000 times": [
        {**_properties({"$ref": "#/$defs/a"}, 10_000), "$defs": {"a": _DESCRIBED}}
    ],
    "one description 10,000 times, by recursion": [
        {**_properties({"$ref": "#"}, 10_000), "description": "d" * 60_000}
    ],
    "one object in many branches": [
        {"anyOf": [{"$ref": "#/$defs/a"}] * 9000, "$defs": {"a": {**_DESCRIBED, **_MEMBERS}}}
    ],
    "branches": [{"anyOf": [_properties({"const": at}, 1) for at in range(_MANY // 6)]}],
    "properties": [_properties({}, _MANY // 2)],
    "names": [_properties({"required": ["a" * 1000] * 4}, 900)],
    "tools": [_properties({"type": "string", "pattern": "a"}, 12)] * 1000,
    "values": [{"properties": {"a": {"enum": ["a" * 60] * _MANY}}}],
}
BODIES: Mapping[str, Json] = {
    "text": {"messages": [{"role": "user", "content": "a" * _LONG}]},
    "escapes": {"messages": [{"role": "user", "content": '"\\\n' * (_LONG // 6)}]},
    "thoughts": {"messages": [{"role": "assistant", "content": "<think>" * (_LONG // 7)}, USER]},
    "messages": {"messages": [USER] * (_MANY // 3)},
    "turns": {"messages": [{"role": "assistant", "content": "a"}, USER] * (_MANY // 6)},
    "parts": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * (_MANY // 3)}]
    },
    "rounds": {"messages": [USER, *(m for at in range(_MANY // 14) for m in _round(at))]},
    "calls of one id": {"messages": [USER, *_round(0) * (_MANY // 14)]},
    "long arguments": {"messages": [USER, *_round(0, "[" + "1, " * (_LONG // 3) + "1]")]},
    "arguments": {"messages": [USER, *_round(0, "[" + "1, " * 340_000 + "1]")]},
    "escaped arguments": {"messages": [USER, *_round(0, "[" + r'"\u0041", ' * 90_000 + "1]")]},
    "fields": {"messages": [USER], **{f"x{at}": 1 for at in range(_MANY)}},
    "members": {"messages": [{**USER, **{f"x{at}": 1 for at in range(_MANY)}}]},
    **{
        name: {
            "messages": [USER],
            "tools": [_tool(one, f"f{at}") for at, one in enumerate(schemas)],
        }
        for name, schemas in SCHEMAS.items()
    },
    **{
        f"format: {name}": {
            "messages": [USER],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "schema": schemas[0]},
            },
        }
        for name, schemas in SCHEMAS.items()
    },
}


@pytest.mark.parametrize("name", BODIES)
def test_no_request_holds_the_loop(name: str) -> None:
    body = orjson.dumps({"model": "m", **BODIES[name]})
    assert len(body) < 9_000_000
    parsed = seconds_unless_long(partial(parse, body))
    request = parse(body).request
    for leaf in LEAVES:
        sent: list[int] = []
        writing = partial(_write, leaf, request, sent)
        written = seconds_unless_long(writing, parsed)
        assert not is_long(written + parsed), f"{leaf}: {parsed:.2f} s and {written:.2f} s"
        assert max(sent, default=0) < 2 * len(body) + 4_000_000, f"{leaf}: {max(sent)} bytes"


def _write(leaf: str, request: ChatRequest, sent: list[int]) -> None:
    try:
        written = LEAVES[leaf](request)
    except GatewayError:
        return  # a refusal is an answer too
    if isinstance(written, dict):
        sent.append(len(orjson.dumps(written)))


@pytest.mark.parametrize("value", ["0", "[]", '""', "{}", '{"a":0}'])
@pytest.mark.parametrize("broken", [False, True])
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(value: str, broken: bool) -> None:
    body = (
        '{"model":"m","messages":[],"x":[' + f"{value}," * MAX_VALUES + value + "]}" * (not broken)
    )

    def refuse() -> None:
        with pytest.raises(GatewayError):
            parse(body.encode())

    with pytest.raises(GatewayError) as caught:
        parse(body.encode())
    assert is_within(0.05, refuse)
    assert (caught.value.status, caught.value.code) == (413, "request_too_large")


def test_commas_and_brackets_in_strings_are_no_values() -> None:
    text = ',[{"\\' * MAX_VALUES
    body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})
    assert parse(body).request.messages[0]["content"] == text


def test_halves_of_characters_are_found_in_linear_time() -> None:
    for text in (r"\n", r"\ud83d", r"\ud83d\ude00", r"\\ud83d", r"\ude00\ud83d"):
        body = f'{{"model":"m","messages":[{{"role":"user","content":"{text * 300_000}\\ud83d"}}]}}'
        assert not is_long(seconds_unless_long(partial(parse, body.encode())))


_CLOSED = b'{ "role":"user","content":"' + b"}" * 1000 + b'"}'
_ODD: Mapping[str, tuple[bytes, bytes]] = {
    "ends that are none": (b"[" + b",".join([_CLOSED] * 300) + b" ]", b"[]"),
    "tools": (b'[{"role":"user","content":"a"}]', b"[" + b",".join([b'{"":0}'] * 300_000) + b"]"),
}


@pytest.mark.parametrize("name", _ODD)
def test_what_is_looked_for_in_odd_bodies_is_soon_given_up(name: str) -> None:
    body = b'{"tools":%b,"messages":%b,"model":"m"}' % _ODD[name][::-1]
    assert not is_long(seconds_unless_long(partial(_parse_seen, body)))


def _parse_seen(body: bytes) -> None:
    with suppress(GatewayError):
        parse(body, seen=Seen())


# Memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaf", ["claude", "ollama"])
def test_large_tools_are_read_once(leaf: str) -> None:
    tools = tuple(
        _tool(_properties({"type": "string", "description": leaf * 9}, 20), f"f{at}")
        for at in range(60)
    )
    request = ChatRequest("m", (USER,), tools=tools)
    assert len(orjson.dumps(tools)) > 60_000
    first = seconds(lambda: LEAVES[leaf](request), 1)
    assert seconds(lambda: LEAVES[leaf](request)) < first / 4
