"""A request of Messages in OpenAI's shape, as every other upstream reads it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from adapters.errors import BadRequest
from adapters.protocol import CARRIED, THOUGHTS_OF, Adapter, Json, RequestContext
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.doors.messages import MESSAGES_DOOR
from middleware.doors.messages.words import signature
from tests.doors.messages.answers import CALL, USER, parsed

CONFIG = """
[recall]
store = "memory"
[upstreams.other]
kind = "compatible"
base_url = "http://127.0.0.1:1"
[upstreams.claude]
kind = "claude"
base_url = "http://127.0.0.1:1"
[models.other]
upstream = "other"
[models.small]
upstream = "claude"
name = "claude-3-5-haiku"
"""
ROUTES = build(config.parse(CONFIG, environment={}), Transport())
OTHER: Adapter = ROUTES.find("other")
USE: Json = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
SEARCH: Json = {"type": "web_search_20250305", "name": "web_search"}
TOOL: Json = {"name": "f", "input_schema": {"$schema": "x", "type": "object"}}


def said(*messages: Json, **members: Any) -> list[Json]:
    """The messages, without what is carried."""
    request = parsed(*messages, **members).request
    return [{k: v for k, v in one.items() if k not in CARRIED} for one in request.messages]


def result(content: Any = "ok", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": "t", "content": content, **more}


def of_user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def of_assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def test_system_prompts_lose_what_changes_with_each_request() -> None:
    billing = text("x-anthropic-billing-header: cc_version=2; cch=abc;")
    system = {"role": "system", "content": "Be kind."}
    assert said(system=[billing, text("Be kind.")])[0] == system
    assert said(system="Be kind.")[0] == system
    assert said(system=[billing]) == said(system=[]) == said(system="") == [USER]
    assert said(USER, {"role": "system", "content": [text("a"), text("b")]})[1] == {
        "role": "system",
        "content": "a\nb",
    }


def test_results_stand_before_the_texts_of_their_message() -> None:
    asked = [USER, of_assistant(text("I look."), USE), of_user(result(), text("Go"), text("on"))]
    function = {"name": "f", "arguments": '{"a":1}'}
    call = {"id": "t", "type": "function", "function": function}
    assert said(*asked)[1:] == [
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t", "content": "ok"},
        {"role": "user", "content": [text("Go"), text("on")]},
    ]
    turned = parsed(USER, of_assistant(USE), of_user(text("Go"), result()))
    assert [message["role"] for message in turned.request.messages][2:] == ["tool", "user"]
    assert [note.code for note in turned.receipt] == ["messages_reordered"]
    assert all(CARRIED.isdisjoint(message) for message in turned.request.messages[2:])


@pytest.mark.parametrize(
    ("block", "content"),
    [
        ({"content": None}, ""),
        ({"content": []}, ""),
        ({"content": ""}, ""),
        ({"content": [text("a"), text("b")]}, "a\nb"),
        ({"content": "no such file", "is_error": True}, "Error: no such file"),
        ({"content": "<tool_use_error>no</tool_use_error>", "is_error": True},
         "<tool_use_error>no</tool_use_error>"),
        ({"content": [], "is_error": True}, "Error: "),
        ({"content": [{"type": "tool_reference", "tool_name": "Read"}]}, "Read"),
        ({"content": [{"type": "search_result", "title": "T", "source": "https://a",
                       "content": [text("found")]}]}, "T\nhttps://a\nfound"),
    ],
)  # fmt: skip
def test_what_a_tool_gave(block: Json, content: str) -> None:
    found = said(USER, of_assistant(USE), of_user({**result(), **block}))
    assert found[2]["content"] == content
    assert found[2].get("is_error", False) is block.get("is_error", False)


def test_images_and_documents() -> None:
    png = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
    far = {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}}
    pdf = {"type": "document", "title": "d",
           "source": {"type": "base64", "media_type": "application/pdf", "data": "AA"}}  # fmt: skip
    note = {"type": "document", "title": "n", "source": {"type": "text", "data": "words"}}
    (message,) = said(of_user(png, far, pdf, note))
    assert message["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
        {"type": "image_url", "image_url": {"url": "https://a/b.png"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA", "filename": "d"}},
        text("n\nwords"),
    ]


@pytest.mark.parametrize("block", [
    {"type": "image", "source": {"type": "file", "file_id": "f"}},
    {"type": "document", "source": {"type": "url", "url": "https://a"}},
])  # fmt: skip
def test_what_lies_elsewhere_is_refused_by_all_but_claude(block: Json) -> None:
    request = parsed(of_user(block, text("What is it?"))).request
    with pytest.raises(BadRequest, match="Only Claude"):
        OTHER.plan(request)


@pytest.mark.parametrize("kind", ["server_tool_use", "code_execution_tool_result", "compaction"])
def test_blocks_of_claudes_own_are_named_elsewhere(kind: str) -> None:
    request = parsed(USER, of_assistant({"type": kind}, text("Yes.")), USER).request
    (planned,) = OTHER.plan(request)
    assert kind.encode() not in orjson.dumps(planned.body)
    assert [note.code for note in planned.receipt] == ["item_dropped"]
    (planned,) = OTHER.plan(parsed(USER, of_assistant({"type": kind}), USER).request)
    assert [message["role"] for message in planned.body["messages"]] == ["user", "user"]


# Thoughts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signed", "owner"),
    [
        (signature(b"secret", "deepseek", "hm"), "deepseek"),
        (signature(b"another", "deepseek", "hm"), None),
        (signature(b"secret", "deepseek", "other"), None),
        ("", None),
        ("utm1.junk", None),
        ("0b0c4f3a-1111-2222-3333-444455556666", None),
        ("1763539200000", None),
    ],
)
def test_thoughts_that_no_claude_signed_are_never_sent_to_one(
    signed: str, owner: str | None
) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": signed}
    request = parsed(USER, of_assistant(thought, USE), of_user(result()), tools=[TOOL]).request
    turn = request.messages[1]
    assert (turn["reasoning_content"], turn.get(THOUGHTS_OF)) == ("hm", owner)
    (planned,) = ROUTES.find("small").plan(request)
    assert b'"thinking"' not in orjson.dumps(planned.body["messages"])


def test_claudes_own_thoughts_are_carried_and_told_to_who_wants_thoughts() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "EqQBCkYIB/=="}
    hidden = {"type": "redacted_thinking", "data": "Ev8="}
    (_, turn, _) = said(USER, of_assistant(thought, hidden, text("a")), USER)
    assert turn["thinking_blocks"] == [thought, hidden]
    assert turn["reasoning_content"] == "hm"


# Fields -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "params"),
    [
        ({"stop_sequences": ["a", " ", "b", "c", "d", "e"]}, {"stop": ["a", "b", "c", "d"]}),
        ({"temperature": 0.5, "top_p": None}, {"temperature": 0.5}),
        ({"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}),
        ({"thinking": {"type": "adaptive"}}, {}),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"reasoning_effort": "low"}),
        ({"thinking": {"type": "enabled", "budget_tokens": 31999}}, {"reasoning_effort": "xhigh"}),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
         {"reasoning_effort": "max"}),
        ({"output_format": {"type": "json_schema", "schema": {"type": "object"}}},
         {"response_format": {"type": "json_schema",
                              "json_schema": {"name": "answer", "schema": {"type": "object"}}}}),
    ],
)  # fmt: skip
def test_fields_that_mean_the_same(members: Json, params: Json) -> None:
    assert parsed(**members).request.params == {"max_completion_tokens": 100, **params}


def test_who_asks_is_a_digest() -> None:
    user = parsed(metadata={"user_id": '{"device":"d"}'}).request.params["safety_identifier"]
    assert (len(user), "device" in user) == (64, False)


def test_other_upstreams_name_what_only_claude_has() -> None:
    members: Json = {"context_management": {}, "service_tier": "auto", "speed": "fast"}
    (planned,) = OTHER.plan(parsed(cache_control={"type": "ephemeral"}, **members).request)
    assert [note.field for note in planned.receipt] == [*members]
    assert planned.body.keys() == {"model", "messages", "max_completion_tokens"}
    for name in ("mcp_servers", "container"):
        refused: Json = {name: ["x"]}
        with pytest.raises(BadRequest, match=name):
            OTHER.plan(parsed(**refused).request)
    with pytest.raises(BadRequest, match="max_tokens"):
        OTHER.plan(parsed(max_tokens=0).request)


def test_a_model_gets_no_more_tokens_than_it_can_use() -> None:
    (planned,) = ROUTES.find("small").plan(parsed(max_tokens=32000).request)
    assert planned.body["max_tokens"] == 8192
    assert [note.code for note in planned.receipt] == ["max_tokens_lowered"]


# Tools ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "meant", "parallel"),
    [
        ({"type": "auto"}, "auto", True),
        ({"type": "any", "disable_parallel_tool_use": True}, "required", False),
        ({"type": "none"}, "none", True),
        ({"type": "tool", "name": "f"}, {"type": "function", "function": {"name": "f"}}, True),
    ],
)
def test_the_choice_of_tools(choice: Json, meant: Any, parallel: bool) -> None:
    request = parsed(tools=[TOOL], tool_choice=choice).request
    function = {"name": "f", "parameters": {"type": "object"}}
    assert request.tools == ({"type": "function", "function": function},)
    assert request.tool_choice == meant
    assert request.params.get("parallel_tool_calls", True) is parallel


def test_tools_that_anthropic_describes_are_functions_elsewhere() -> None:
    request = parsed(tools=[{"type": "bash_20250124", "name": "bash"}]).request
    (planned,) = OTHER.plan(request)
    assert planned.body["tools"][0]["function"]["name"] == "bash"
    assert [note.code for note in planned.receipt] == ["item_as_function"]


def test_tools_that_anthropic_runs_are_named_and_alone_refused() -> None:
    (planned,) = OTHER.plan(parsed(tools=[TOOL, SEARCH]).request)
    assert [tool["function"]["name"] for tool in planned.body["tools"]] == ["f"]
    assert [note.code for note in planned.receipt] == ["tool_dropped"]
    for members in ({"tools": [SEARCH]},
                    {"tools": [TOOL, SEARCH],
                     "tool_choice": {"type": "tool", "name": "web_search"}}):  # fmt: skip
        with pytest.raises(BadRequest, match="no web search here"):
            OTHER.plan(parsed(**members).request)


# Mistakes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"model": "m", "messages": [USER]}, "max_tokens: Field required"),
        ({"max_tokens": 1, "messages": [USER]}, "model: Field required"),
        ({"model": "m", "max_tokens": 1, "messages": []}, "messages"),
        ({"model": "m", "max_tokens": 1, "messages": [{"role": "wizard", "content": ""}]}, "role"),
        ({"model": "m", "max_tokens": 1, "messages": [of_user(result())]}, "tool_result"),
        ({"model": "m", "max_tokens": 1, "messages": [USER, of_assistant(USE)]}, "tool_result"),
        ({"model": "m", "max_tokens": 1, "messages": [USER], "tools": [TOOL, TOOL]}, "unique"),
        ({"model": "m", "max_tokens": 1, "messages": [USER], "tools": [TOOL],
          "tool_choice": {"type": "tool", "name": "g"}}, "not found in provided tools"),
        ({"model": "m", "max_tokens": 1, "messages": [of_user({"type": "text"})]}, "text"),
        ([], "object"),
    ],
)  # fmt: skip
def test_mistakes_are_told(body: Any, words: str) -> None:
    with pytest.raises(BadRequest) as caught:
        MESSAGES_DOOR.parse(orjson.dumps(body), repair=False, strict=False, call=CALL)
    assert words in caught.value.message


def test_nulls_that_sdks_send_back_mean_nothing() -> None:
    block = {**text("a"), "citations": None, "parsed_output": None}
    call = {**USE, "caller": None}
    request = parsed(
        USER, of_assistant(block, call), of_user(result(is_error=None)),
        system=None, tools=[TOOL], tool_choice=None, metadata=None, stream=None,
    ).request  # fmt: skip
    assert request.call.streamed is False


def test_texts_that_nobody_sees_are_left_out() -> None:
    asked = parsed(
        of_user(text(""), text("a")), of_assistant(text("")), USER, of_assistant(text(""))
    )
    (planned,) = ROUTES.find("small").plan(asked.request)
    assert planned.body["messages"] == [of_user(text("a")), USER]


def test_threads_are_refused_in_the_words_that_runners_look_for() -> None:
    with pytest.raises(BadRequest) as caught:
        parsed(thread={"type": "create"})
    told = orjson.loads(MESSAGES_DOOR.error_body(caught.value))
    details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    assert told["error"]["details"] == details


def test_betas_go_where_they_are_known() -> None:
    call = RequestContext(
        headers={"anthropic-beta": "one-2025-01-01, context-management-2025-06-27"}
    )
    asked = parsed(call=call, context_management={"edits": []}).request
    (planned,) = ROUTES.find("small").plan(asked)
    assert "context_management" not in planned.body
    assert [note.code for note in planned.receipt] == ["beta_dropped"]
    own = CONFIG.replace("[models.other]", "[models.other]\n").replace(
        'name = "claude-3-5-haiku"\n',
        'name = "claude-3-5-haiku"\noptions = { betas = ["context-management-2025-06-27"] }\n',
    )
    (planned,) = build(config.parse(own, environment={}), Transport()).find("small").plan(asked)
    assert planned.body["context_management"] == {"edits": []}
