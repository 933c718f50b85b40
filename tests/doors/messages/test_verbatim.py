"""What a client of Messages says reaches Claude as it was said, but for the name of the model."""

from __future__ import annotations

import json
from collections.abc import Mapping

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapters.protocol import Adapter, ChatRequest, Json, RequestContext
from adapters.receipts import Receipt
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.doors.messages import MESSAGES_DOOR
from tests.support.recordings import FOLDER

CONFIG = """
[recall]
store = "memory"
[upstreams.claude]
kind = "claude"
base_url = "http://127.0.0.1:1"
[models.sonnet]
upstream = "claude"
name = "claude-sonnet-5"
[models."claude-*"]
upstream = "claude"
"""
MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
TOOL = {
    "name": "Read",
    "description": "Reads a file.",
    "input_schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "number", "minimum": 1.0}},
        "additionalProperties": False,
    },
    "eager_input_streaming": True,
}
CLAUDE_CODE: Json = {
    "model": "sonnet",
    "max_tokens": 32000,
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=a1b2c;"},
        {"type": "text", "text": "You are Claude Code.", **MARK},
        {"type": "text", "text": "Be brief.", **MARK},
    ],
    "messages": [
        {"role": "user", "content": [
            {"type": "text", "text": "<system-reminder>\nToday.\n</system-reminder>"},
            {"type": "text", "text": "Mend the test."},
        ]},
        {"role": "system", "content": "Tools may come late."},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Look \u2028 first.", "signature": "EqQBCkYIB/+=="},
            {"type": "redacted_thinking", "data": "Ev8="},
            {"type": "text", "text": "Let me look.", "citations": None},
            {"type": "tool_use", "id": "toolu_1", "name": "Read", "caller": None,
             "input": {"path": "a/\u00e9", "limit": 1.0, "big": 12345678901234567890123}},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": False, "content": [
                {"type": "text", "text": "1\tdef f():"},
                {"type": "image",
                 "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            ]},
            {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": True,
             "content": "no", **MARK},
            {"type": "text", "text": "Go on."},
        ]},
        {"role": "user", "content": "And hurry."},
    ],
    "tools": [TOOL, {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
              {"name": "a" * 100, "input_schema": {"type": "object"}, **MARK}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "metadata": {"user_id": '{"device_id":"d","session_id":"s"}'},
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "high"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "stop_sequences": ["a", "b", "c", "d", "e"],
    "service_tier": "auto",
    "stream": True,
}  # fmt: skip


def asked(body: Json, headers: Json | None = None) -> ChatRequest:
    call = RequestContext(id="req_1", secret=b"s", headers=headers or {})
    # With integers of any length, which only Python's own writer has.
    data = json.dumps(body).encode()
    return MESSAGES_DOOR.parse(data, repair=False, strict=False, call=call).request


def claude(model: str = "sonnet") -> Adapter:
    return build(config.parse(CONFIG, environment={}), Transport()).find(model)


def sent(body: Json) -> tuple[Json, Receipt]:
    """What Claude gets; that it is streamed where it may take long, is between it and us."""
    (planned,) = claude(body["model"]).plan(asked(body))
    found = json.loads(orjson.dumps(planned.body))
    if not body.get("stream"):
        found.pop("stream", None)
    return found, planned.receipt


def as_sent(body: Json) -> Json:
    name = "claude-sonnet-5" if body["model"] == "sonnet" else body["model"]
    return {**body, "model": name}


def test_a_request_of_claude_code() -> None:
    found, receipt = sent(CLAUDE_CODE)
    assert found == as_sent(CLAUDE_CODE)
    assert receipt == ()


def test_what_was_sent_is_not_changed_by_sending_it() -> None:
    request = asked(CLAUDE_CODE)
    first = orjson.dumps(claude().plan(request)[0].body)
    assert orjson.dumps(claude().plan(request)[0].body) == first


def test_a_turn_with_a_member_named_system_is_no_system_prompt() -> None:
    turns = [{"role": "user", "content": "hi", "system": "Obey."}]
    body = {"model": "sonnet", "max_tokens": 9, "system": "Be brief.", "messages": turns}
    assert sent(body)[0] == as_sent(body)


CASSETTES = sorted(path.stem for path in (FOLDER / "claude").glob("*.yaml"))


@pytest.mark.parametrize("case", CASSETTES)
def test_every_recorded_request(case: str) -> None:
    recorded = yaml.safe_load((FOLDER / "claude" / f"{case}.yaml").read_text())
    for interaction in recorded["interactions"]:
        body = interaction["request"]["body"]["json"]
        assert sent(body)[0] == as_sent(body)


_text = st.text(min_size=1, max_size=6).filter(str.strip)
_marks: st.SearchStrategy[Json] = st.just({}) | st.just(MARK)
_said = st.builds(lambda text, mark: {"type": "text", "text": text, **mark}, _text, _marks)
_image = st.just({"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}})
_foreign = st.just({"type": "container_upload", "file_id": "file_1"})
_thought = st.just({"type": "thinking", "thinking": "hm", "signature": "EqQBCkYIB0=="})
_user = st.lists(_said | _image | _foreign, min_size=1, max_size=3) | _text
_plain_turns = st.lists(_said | _thought | _foreign, min_size=1, max_size=4) | _text


def _round(number: int, spoken: list[Json], count: int, texts: list[Json]) -> list[Json]:
    ids = [f"toolu_{number}_{at}" for at in range(count)]
    calls = [{"type": "tool_use", "id": one, "name": "Read", "input": {"path": one}} for one in ids]
    results = [{"type": "tool_result", "tool_use_id": one, "content": one} for one in ids]
    return [
        {"role": "assistant", "content": [*spoken, *calls]},
        {"role": "user", "content": [*results, *texts]},
    ]


@st.composite
def conversations(draw: st.DrawFn) -> Json:
    messages: list[Json] = [{"role": "user", "content": draw(_user)}]
    for number in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            spoken = draw(st.lists(_thought | _said | _foreign, max_size=3))
            texts = draw(st.lists(_said, max_size=2))
            messages += _round(number, spoken, draw(st.integers(1, 3)), texts)
        else:
            messages.append({"role": "assistant", "content": draw(_plain_turns)})
            messages.append({"role": "user", "content": draw(_user)})
    members: Json = draw(st.fixed_dictionaries({}, optional={
        "system": _text | st.lists(_said, min_size=1, max_size=2),
        "thinking": st.sampled_from([{"type": "adaptive"}, {"type": "disabled"}]),
        "output_config": st.just({"effort": "low"}),
        "metadata": st.just({"user_id": "a@b.example"}),
        "container": st.just("container_1"),
        "mcp_servers": st.just([{"type": "url", "url": "https://a.example", "name": "a"}]),
        "inference_geo": st.just("eu"),
        "tool_choice": st.sampled_from([{"type": "auto"}, {"type": "none"}]),
    }))  # fmt: skip
    return {"model": "sonnet", "max_tokens": 100, "messages": messages, "tools": [TOOL], **members}


@given(conversations())
def test_any_conversation(body: Json) -> None:
    if orjson.dumps(body).count(b"cache_control") <= 4:
        assert sent(body)[0] == as_sent(body)


PAUSED = [
    {"type": "thinking", "thinking": "hm", "signature": "EqQBCkYIB0=="},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
]
CLOSED = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "schema": CLOSED}
FIVE = [{"type": "text", "text": "hi", "cache_control": None}] * 5
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
ODD: Mapping[str, Json] = {
    "an older name": {"output_format": FORMAT},
    "a pause": {
        "messages": [CLAUDE_CODE["messages"][0], {"role": "assistant", "content": PAUSED}],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    },
    "no marks": {"messages": [{"role": "user", "content": FIVE}], "system": FIVE},
    "calls without tools": {"messages": _round(1, [], 1, [])},
    "calls of others": {"messages": _round(1, [], 1, []), "tools": [SEARCH]},
}


@pytest.mark.parametrize("members", ODD.values(), ids=ODD)
def test_what_claude_takes(members: Json) -> None:
    """As it was recorded of clients, with a 200."""
    hello = [{"role": "user", "content": "Hello"}]
    body: Json = {"model": "claude-sonnet-4-5", "max_tokens": 4096, "messages": hello} | members
    if body["messages"][0]["role"] == "assistant":
        body["messages"] = [*hello, *body["messages"]]
    assert sent(body)[0] == body


def test_calls_in_two_turns_have_their_results_behind_both() -> None:
    """A turn of one side may come in parts, and the API joins them."""
    (first, results), (second, more) = _round(1, [], 1, []), _round(2, [], 1, [])
    first["content"].insert(0, {"type": "text", "text": "I look."})
    both = {"role": "user", "content": [*results["content"], *more["content"]]}
    hello = {"role": "user", "content": "Hello"}
    body = {**CLAUDE_CODE, "messages": [hello, first, second, both]}
    calls = {"role": "assistant", "content": [*first["content"], *second["content"]]}
    assert sent(body)[0]["messages"] == [hello, calls, both]


@pytest.mark.parametrize(
    ("changes", "name", "now"),
    [
        ('drop = ["context_management"]', "context_management", None),
        ('drop = ["safety_identifier"]', "metadata", None),
        ("override = { max_completion_tokens = 7 }", "max_tokens", 7),
        ('override = { stop = ["x"] }', "stop_sequences", ["x"]),
        ('override = { reasoning_effort = "low" }', "output_config", {"effort": "low"}),
        ('drop = ["tools"]', "tool_choice", {"type": "none"}),
    ],
)
def test_what_the_config_changes_is_changed_and_nothing_else(
    changes: str, name: str, now: object
) -> None:
    text = CONFIG.replace('name = "claude-sonnet-5"', f'name = "claude-sonnet-5"\n{changes}')
    adapter = build(config.parse(text, environment={}), Transport()).find("sonnet")
    found = json.loads(orjson.dumps(adapter.plan(asked(CLAUDE_CODE))[0].body))
    assert found.get(name) == now
    same = as_sent(CLAUDE_CODE).keys() - {name, "tools", "thinking"}
    assert {key: found.get(key) for key in same} == {key: as_sent(CLAUDE_CODE)[key] for key in same}
