"""Nothing vanishes: what a client sends is carried, or named, or refused; and it stays a prefix.

Whether something was carried is seen from outside: leave it out, and the upstream's body changes.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import Adapter, Json, Note
from middleware.doors.chat.parse import parse
from tests.support.recordings import Upstream, upstreams

every_upstream = pytest.mark.parametrize(
    "upstream", upstreams(), ids=[upstream.name for upstream in upstreams()]
)
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


@dataclass(frozen=True)
class Sent:
    """What became of a request: its body upstream, or who refused what."""

    body: bytes = b""
    notes: tuple[Note, ...] = ()
    refused: BadRequest | None = None

    def names(self, field: str) -> bool:
        return any(_is_part(note.field, field) for note in self.notes)


def _is_part(path: str, field: str) -> bool:
    return path == field or path.startswith((f"{field}.", f"{field}["))


def send(adapter: Adapter, body: Json) -> Sent:
    """Take a request through the door and the adapter, as far as its upstream."""
    try:
        asked = parse(orjson.dumps(body))
        (planned,) = adapter.plan(asked.request)
    except BadRequest as error:
        return Sent(refused=error)
    return Sent(orjson.dumps(planned.body), (*asked.receipt, *planned.receipt))


def vanished(adapter: Adapter, body: Json, fields: Sequence[str]) -> list[str]:
    """The fields of which nothing is seen again; what is refused is taken out, one by one."""
    body = dict(body)
    while (sent := send(adapter, body)).refused is not None:
        assert sent.refused.status == 400
        (blamed,) = [name for name in body if _is_part(sent.refused.param or "", name)]
        if blamed in ("model", "messages", "tools"):
            return []
        del body[blamed]
    return [
        name
        for name in fields
        if name in body
        and not sent.names(name)
        and send(adapter, {key: body[key] for key in body if key != name}) == sent
    ]


# Every field of a request ----------------------------------------------------------------------

FLOATS = st.floats(0.01, 0.99).map(lambda value: round(value, 2))
# The values ask for something: what only repeats a default need not be seen again.
PARAMS: Mapping[str, st.SearchStrategy[Any]] = {
    "audio": st.just({"voice": "alloy", "format": "wav"}),
    "frequency_penalty": FLOATS,
    "logit_bias": st.just({"50256": -100}),
    "logprobs": st.just(True),
    "max_completion_tokens": st.integers(1, 9000),
    "max_tokens": st.integers(1, 9000),
    "metadata": st.just({"trace": "t"}),
    "modalities": st.sampled_from([["text", "audio"], ["audio"]]),
    "moderation": st.just({"model": "m"}),
    "parallel_tool_calls": st.just(False),
    "prediction": st.just({"type": "content", "content": "x"}),
    "presence_penalty": FLOATS,
    "prompt_cache_key": st.just("key"),
    "prompt_cache_options": st.just({"mode": "implicit", "ttl": "1h"}),
    "prompt_cache_retention": st.just("24h"),
    "reasoning_effort": st.sampled_from(["minimal", "low", "medium", "high", "xhigh", "max"]),
    "response_format": st.sampled_from(
        [
            {"type": "json_object"},
            {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
            {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}},
        ]
    ),
    "safety_identifier": st.just("someone"),
    "seed": st.integers(1, 99),
    "service_tier": st.sampled_from(["flex", "priority"]),
    "stop": st.sampled_from(["END", ["END"], ["a", "b", "c", "d"]]),
    "store": st.just(True),
    "temperature": FLOATS,
    "top_logprobs": st.integers(1, 5),
    "top_p": FLOATS,
    "user": st.sampled_from(["someone@example.com", "用户", "a1b2c3d4e5f6a7b8c9d0"]),
    "verbosity": st.sampled_from(["low", "high"]),
    "web_search_options": st.just({"search_context_size": "low"}),
    # What OpenAI does not have.
    "keep_alive": st.just("5m"),
    "min_p": FLOATS,
    "num_ctx": st.just(4096),
    "options": st.just({"mirostat": 1}),
    "think": st.booleans(),
    "thinking": st.just({"type": "enabled", "budget_tokens": 2000}),
    "top_k": st.integers(1, 50),
    "x_unheard_of": st.just({"a": [1]}),
}  # fmt: skip
# Kept by the gateway itself, on the answer's way back.
KEPT_BY_US = frozenset({"parallel_tool_calls"})
# Three ways to say one thing.
THINKING = ("reasoning_effort", "thinking", "think")


def tool(name: str = "get_weather", **members: Any) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA, **members}}


REQUESTS = st.fixed_dictionaries(
    {"messages": st.just([{"role": "user", "content": "Say JSON."}]), "stream": st.booleans()},
    optional={
        "tools": st.just([tool(), tool("查询天气")]),
        "tool_choice": st.sampled_from(
            ["none", "required", {"type": "function", "function": {"name": "get_weather"}}]
        ),
        **PARAMS,
    },
)


@every_upstream
@settings(max_examples=150)
@given(body=REQUESTS, thinks=st.booleans())
def test_every_field_is_carried_or_named_or_refused(
    upstream: Upstream, body: Json, thinks: bool
) -> None:
    model = upstream.reasoning.get("model", upstream.model) if thinks else upstream.model
    body = sensible(body)
    before = copy.deepcopy(body)
    adapter = upstream.connect(upstream.link())
    fields = [name for name in body if name in PARAMS or name in ("tools", "tool_choice")]
    assert vanished(adapter, {"model": model, **body}, fields) == []
    assert body == before


def sensible(body: Json) -> Json:
    """Leave out what has no meaning beside what else is asked."""
    choice = body.get("tool_choice", "auto")
    without = set(KEPT_BY_US) | set([name for name in THINKING if name in body][1:])
    if body.get("max_tokens") == body.get("max_completion_tokens"):
        without.add("max_tokens")
    if "tools" not in body or choice == "none":
        without |= {"tool_choice", "tools"}
    elif choice != "auto":
        without.add("response_format")  # of a text that will not be
    return {name: body[name] for name in body if name not in without}


@every_upstream
@pytest.mark.parametrize("name", PARAMS)
def test_each_field_alone_is_carried_or_named_or_refused(upstream: Upstream, name: str) -> None:
    @settings(max_examples=6)
    @given(value=PARAMS[name], streamed=st.booleans())
    def check(value: Any, streamed: bool) -> None:
        body = {
            "model": upstream.model,
            "messages": [{"role": "user", "content": "Say JSON."}],
            "tools": [tool()],
            "stream": streamed,
            name: value,
        }
        assert vanished(upstream.connect(upstream.link()), body, [name]) == []

    if name not in KEPT_BY_US:
        check()


# Every member of a message and of a tool -------------------------------------------------------

CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "cold"}
USER = {"role": "user", "content": "How cold?"}
BARE: Json = {"messages": [USER, CALLED, RESULT, USER], "tools": [tool()]}


def part(kind: str, value: Any, **more: Any) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        said = {"type": kind, kind: value, **more}
        body["messages"][3] = {"role": "user", "content": [{"type": "text", "text": "?"}, said]}

    return change


def member(position: int, **members: Any) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        body["messages"][position] = {**body["messages"][position], **members}

    return change


def with_tools(*tools: Json, **members: Any) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        body.update(tools=list(tools), **members)

    return change


def inserted(position: int, message: Json) -> Callable[[Json], None]:
    return lambda body: body["messages"].insert(position, message)


BLOCKS = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]
DETAILS: Mapping[str, Callable[[Json], None]] = {
    "a name of a user": member(0, name="Ann"),
    "a name of an assistant": member(1, name="Bot"),
    "thoughts": member(1, reasoning_content="hm"),
    "thinking blocks": member(1, thinking_blocks=BLOCKS),
    "a refusal": inserted(4, {"role": "assistant", "content": None, "refusal": "no"}),
    "an answer in audio": inserted(4, {"role": "assistant", "content": "x", "audio": {"id": "a"}}),
    "text beside a call": member(1, content="Let me see."),
    "a turn that is said to be the upstream's": member(1, turn={"content": []}),
    "something unheard of in a user's turn": member(0, unheard_of=1),
    "something unheard of in an assistant's turn": member(1, unheard_of=1),
    "something unheard of in a result": member(2, unheard_of=1),
    "something unheard of in a part": part("text", "!", unheard_of=1),
    "thoughts under another name": member(1, reasoning="hm"),
    "details of thoughts": member(1, reasoning_details=[{"type": "reasoning.text"}]),
    "places that were cited": member(1, annotations=[{"type": "url_citation"}]),
    "two parts": part("text", "!"),
    "something unheard of in a tool": with_tools(tool(unheard_of=1)),
    "a result in parts": member(2, content=[{"type": "text", "text": "very cold"}]),
    "a system message": inserted(0, {"role": "system", "content": "Be short."}),
    "a developer message": inserted(0, {"role": "developer", "content": "Be short."}),
    "a late system message": inserted(3, {"role": "system", "content": "Be short."}),
    "a name of a system": member(0, name="boss"),
    "a picture": part("image_url", {"url": PIXEL}),
    "a detail of a picture": part("image_url", {"url": PIXEL, "detail": "low"}),
    "a picture elsewhere": part("image_url", {"url": "https://example.com/a.png"}),
    "sound": part("input_audio", {"data": "UklGRg==", "format": "wav"}),
    "a document": part(
        "file", {"file_data": "data:application/pdf;base64,JVBERg==", "filename": "a.pdf"}
    ),
    "a document elsewhere": part("file", {"file_id": "file-1"}),
    "a place to cache up to": part(
        "text", "!", prompt_cache_breakpoint={"type": "ephemeral"}
    ),
    "thoughts wanted": lambda body: body.update(thinking={"type": "enabled"}, messages=[USER]),
    "a budget of thoughts": lambda body: body["thinking"].update(budget_tokens=2000),
    "a strict tool": with_tools(tool(strict=True)),
    "what a tool does": with_tools(tool(description="Weather.")),
    "a free-text tool": with_tools(tool(), {"type": "custom", "custom": {"name": "sql"}}),
    "tools without a choice of them": with_tools(tool(), tool_choice="none"),
    "some of the tools": with_tools(
        tool(),
        tool("other"),
        tool_choice={
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "auto",
                "tools": [{"type": "function", "function": {"name": "other"}}],
            },
        },
    ),
}  # fmt: skip
# What must be there before the detail can.
BEFORE: Mapping[str, str] = {
    "a detail of a picture": "a picture",
    "a name of a system": "a system message",
    "a budget of thoughts": "thoughts wanted",
    "something unheard of in a part": "two parts",
    "a place to cache up to": "two parts",
}


@every_upstream
@pytest.mark.parametrize("detail", DETAILS)
def test_every_detail_is_carried_or_named_or_refused(upstream: Upstream, detail: str) -> None:
    adapter = upstream.connect(upstream.link())
    bare: Json = {"model": upstream.model, **copy.deepcopy(BARE)}
    if detail in BEFORE:
        DETAILS[BEFORE[detail]](bare)
    rich = copy.deepcopy(bare)
    DETAILS[detail](rich)
    without, sent = send(adapter, bare), send(adapter, rich)
    if sent.refused is not None:
        assert sent.refused.param
        return
    assert sent.body != without.body or set(sent.notes) - set(without.notes)


@every_upstream
def test_a_request_leaves_no_trace_in_the_next(upstream: Upstream) -> None:
    """Tools are read and encoded once for all requests that bring the same."""
    adapter = upstream.connect(upstream.link())
    tools = [tool(), tool("查询天气", strict=True), tool("open", parameters={"anyOf": [SCHEMA]})]
    usual: Json = {"model": upstream.model, "messages": [USER], "tools": tools}
    first = send(adapter, usual)
    for odd in (
        {"tool_choice": "required", "parallel_tool_calls": False},
        {"tool_choice": "none", "response_format": {"type": "json_object"}},
        {"reasoning_effort": "high", "cache_control": {"type": "ephemeral"}},
    ):
        send(adapter, {**usual, **odd})
    assert send(adapter, usual) == first


# Conversations ---------------------------------------------------------------------------------

NAMES = st.sampled_from(["get_weather", "查询天气", "save-note_2"])
IDS = st.text("abcXYZ019_-:|.", min_size=1, max_size=12)
ARGUMENTS = st.dictionaries(
    st.text("ab天", min_size=1, max_size=3),
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    max_size=3,
).map(json.dumps)
TEXTS = st.text("ab 天🌨\n", min_size=1, max_size=8).filter(str.strip)


@st.composite
def conversations(draw: st.DrawFn) -> list[list[Json]]:
    """The turns of a conversation, each as the messages it adds."""
    turns: list[list[Json]] = [[{"role": "user", "content": draw(TEXTS)}]]
    if draw(st.booleans()):
        turns[0].insert(0, {"role": "system", "content": draw(TEXTS)})
    for _ in range(draw(st.integers(1, 3))):
        ids = draw(st.lists(IDS, unique=True, max_size=3))
        calls = [
            {
                "id": identity,
                "type": "function",
                "function": {"name": draw(NAMES), "arguments": draw(ARGUMENTS)},
            }
            for identity in ids
        ]
        said: Json = {"role": "assistant", "content": draw(TEXTS)}
        if calls:
            said = {"role": "assistant", "content": draw(st.none() | TEXTS), "tool_calls": calls}
        results = [
            {"role": "tool", "tool_call_id": identity, "content": draw(TEXTS)} for identity in ids
        ]
        if not calls or draw(st.booleans()):
            results.append({"role": "user", "content": draw(TEXTS)})
        turns.append([said, *results])
    return turns


TOOLS = [tool(name) for name in ("get_weather", "查询天气", "save-note_2")]


@every_upstream
@given(turns=conversations(), tools=st.permutations(TOOLS))
def test_every_turn_begins_with_the_bytes_of_the_turn_before(
    upstream: Upstream, turns: list[list[Json]], tools: list[Json]
) -> None:
    adapter = upstream.connect(upstream.link())
    said: list[Json] = []
    bodies = []
    for turn in turns:
        said += turn
        sent = send(adapter, {"model": upstream.model, "messages": said, "tools": tools})
        assert sent.refused is None
        bodies.append(orjson.loads(sent.body))
    for shorter, longer in pairwise(bodies):
        begun = orjson.dumps(shorter["messages"])[:-1]
        assert orjson.dumps(longer["messages"]).startswith(begun)
        for name in ("system", "tools"):
            assert orjson.dumps(shorter.get(name)) == orjson.dumps(longer.get(name))


@every_upstream
@given(turns=conversations())
def test_what_a_client_redumped_is_the_same_bytes(
    upstream: Upstream, turns: list[list[Json]]
) -> None:
    adapter = upstream.connect(upstream.link())
    said = [message for turn in turns for message in turn]
    redumped = copy.deepcopy(said)
    for message in redumped:
        for call in message.get("tool_calls") or ():
            value = json.loads(call["function"]["arguments"])
            call["function"]["arguments"] = json.dumps(value, indent=1, ensure_ascii=False)
    bodies = {
        send(adapter, {"model": upstream.model, "messages": messages, "tools": TOOLS}).body
        for messages in (said, redumped)
    }
    assert len(bodies) == 1
