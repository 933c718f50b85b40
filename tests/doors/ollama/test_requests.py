"""What clients of Ollama send, as the chat it means."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from adapters.errors import BadRequest
from adapters.protocol import ChatRequest, Json
from middleware.doors.ollama.parse import ParsedOllama, parse_chat, parse_generate

PNG = "iVBORw0KGgoAAAANSUhEUg=="
USER: Json = {"role": "user", "content": "hi"}
CUT: Json = {"function": {"name": "f", "arguments": []}}
TOOL: Json = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def read(**fields: Any) -> ParsedOllama:
    return parse_chat(orjson.dumps({"model": "m", "messages": [USER], **fields}))


def codes(parsed: ParsedOllama) -> list[tuple[str, str]]:
    return [(note.code, note.field) for note in parsed.receipt]


def called(*calls: tuple[str, Json], **more: Any) -> Json:
    made = [{"function": {"name": name, "arguments": said}} for name, said in calls]
    return {"role": "assistant", "tool_calls": made, **more}


def pairs(request: ChatRequest) -> list[tuple[str, str]]:
    """Tool and result of each call."""
    names = {
        call["id"]: call["function"]["name"]
        for message in request.messages
        for call in message.get("tool_calls", ())
    }
    results = [one for one in request.messages if one["role"] == "tool"]
    return [(names[one["tool_call_id"]], one["content"]) for one in results]


def test_streaming_is_usual_and_latest_is_no_other_model() -> None:
    parsed = read(model="m:latest")
    assert (parsed.request.model, parsed.name) == ("m", "m:latest")
    assert parsed.request.call.streamed
    assert not read(stream=False).request.call.streamed
    assert read(stream=None).request.call.streamed


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"think": True}, {"reasoning_effort": "medium"}),
        ({"think": False}, {"reasoning_effort": "none"}),
        ({"think": "high"}, {"reasoning_effort": "high"}),
        ({"think": None}, {}),
        ({"format": "json"}, {"response_format": {"type": "json_object"}}),
        ({"format": ""}, {}),
        (
            {"format": {"type": "object"}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "format", "schema": {"type": "object"}},
                }
            },
        ),
        ({"options": None, "tools": None, "keep_alive": None}, {}),
        ({"options": {"num_predict": 5}}, {"max_completion_tokens": 5}),
        ({"options": {"num_predict": -1}}, {}),
        ({"options": {"temperature": 0, "seed": 0}}, {"temperature": 0, "seed": 0}),
        ({"options": {"stop": "x"}}, {"stop": ["x"]}),
        ({"options": {"stop": []}}, {}),
        ({"logprobs": True, "top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"made_up": 1, "top_logprobs": 2}, {}),
    ],
)
def test_fields_in_openais_words(said: Json, meant: Json) -> None:
    request = read(**said).request
    assert (request.params, request.extra) == (meant, {})


def test_what_only_an_ollama_takes_is_carried_and_half_of_it_is_no_loss_elsewhere() -> None:
    options = {"num_ctx": 9, "top_k": 3, "temperature": 1.0, "num_gpu": None}
    native = read(options=options, keep_alive="-1", shift=True).request.native
    assert native is not None
    told = {"keep_alive": -1, "shift": True, "options": {"num_ctx": 9, "top_k": 3}}
    assert (native.language, native.value) == ("ollama", told)
    assert [note.field for note in native.lost] == ["options.top_k"]
    assert read(options={"temperature": 1.0}).request.native is None


@pytest.mark.parametrize(
    "results",
    [
        [("sun", {}), ("noon", {})],
        [("noon", {"tool_name": "time"}), ("sun", {"tool_name": "weather"})],
        [("noon", {"name": "time"}), ("sun", {})],
        [("sun", {"tool_call_id": "never made"}), ("noon", {"tool_call_id": None})],
    ],
)
def test_results_without_ids_find_their_calls(results: list[tuple[str, Json]]) -> None:
    said = [{"role": "tool", "content": text, **how} for text, how in results]
    calls = called(("weather", {"city": "x"}), ("time", {}))
    assert sorted(pairs(read(messages=[USER, calls, *said]).request)) == [
        ("time", "noon"),
        ("weather", "sun"),
    ]


def test_ids_are_made_of_what_was_called_and_where() -> None:
    calls = called(("f", {"a": 1}), ("f", {"a": 1}))
    history = [USER, calls, {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}]
    once, longer = read(messages=history), read(messages=[*history, USER])
    assert once.request.messages == longer.request.messages[:-1]
    ids = [call["id"] for call in once.request.messages[1]["tool_calls"]]
    assert len({*ids}) == 2
    own = {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "f"}}]}
    (call,) = read(messages=[USER, own]).request.messages[1]["tool_calls"]
    assert (call["id"], call["function"]["arguments"]) == ("x", "{}")


def test_a_history_is_mended_and_says_so() -> None:
    parsed = read(messages=[USER, called(("f", {})), USER])
    assert pairs(parsed.request) == [("f", '{"error":"no result"}')]
    assert codes(parsed) == [("result_made_up", "messages")]
    parsed = read(messages=[USER, {"role": "tool", "content": "of nothing"}])
    assert codes(parsed) == [("result_dropped", "messages[1]")]
    parsed = read(messages=[USER, {**called(), "tool_calls": [_as_text('{"a":1}')]}])
    assert codes(parsed)[0][0] == "arguments_as_text"
    assert parsed.request.messages[1]["tool_calls"][0]["function"]["arguments"] == '{"a":1}'


def _as_text(arguments: str) -> Json:
    return {"function": {"name": "f", "arguments": arguments}}


def test_messages_as_clients_write_them() -> None:
    said = [
        {"role": "System", "content": "be kind", "images": None},
        {"role": "user", "content": "look", "images": [PNG, f"data:image/png;base64,{PNG}"]},
        {"role": "assistant", "thinking": "hm", "content": "a cat", "tool_calls": None},
        {"role": "user", "content": [{"type": "text", "text": "and"}], "name": "x"},
        {"role": "assistant", "content": "no", "images": [PNG]},
    ]
    parsed = read(messages=said)
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    assert parsed.request.messages == (
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "look"}, image, image]},
        {"role": "assistant", "content": "a cat", "reasoning_content": "hm"},
        {"role": "user", "content": [{"type": "text", "text": "and"}]},
        {"role": "assistant", "content": "no"},
    )
    assert codes(parsed) == [("member_dropped", "messages[4].images")]


def test_a_tool_without_a_type_is_a_function() -> None:
    assert read(tools=[{"function": TOOL["function"]}]).request.tools == (TOOL,)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b" ", "missing request body"),
        (b"{}", "model is required"),
        (b"[]", "must be a JSON object"),
        ({"messages": [{"role": "wizard"}]}, "messages[0].role"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "images": ["http://x/a.png"]}]}, "images[0]"),
        ({"messages": [{"role": "assistant", "tool_calls": [CUT]}]}, "expected an object"),
        ({"think": "much"}, "'think'"),
        ({"think": 1}, "'think'"),
        ({"format": "yaml"}, "invalid format"),
        ({"top_logprobs": 21}, "top_logprobs must be between 0 and 20"),
        ({"options": {"temperature": 9}}, "options.temperature"),
        ({"tools": [TOOL, TOOL]}, "Two tools have the name 'f'"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"_debug_render_only": True}, "_debug_render_only"),
    ],
)
def test_what_is_refused(body: Any, words: str) -> None:
    sent = body if isinstance(body, bytes) else {"model": "m", "messages": [USER], **body}
    with pytest.raises(BadRequest) as refused:
        parse_chat(sent if isinstance(sent, bytes) else orjson.dumps(sent))
    assert words in refused.value.message


def test_strict_refuses_what_would_only_be_named() -> None:
    body = orjson.dumps({"model": "m", "messages": [USER, called(("f", {})), USER]})
    with pytest.raises(BadRequest, match="strict"):
        parse_chat(body, strict=True)


def generate(**fields: Any) -> ParsedOllama:
    return parse_generate(orjson.dumps({"model": "m", **fields}))


def test_a_prompt_is_a_message_of_a_user() -> None:
    parsed = generate(
        prompt="hi", system="be kind", images=[PNG], raw=True, context=[1], template=""
    )
    assert [one["role"] for one in parsed.request.messages] == ["system", "user"]
    assert [part["type"] for part in parsed.request.messages[1]["content"]] == ["text", "image_url"]
    assert codes(parsed) == [("parameter_dropped", "raw"), ("parameter_dropped", "context")]
    with pytest.raises(BadRequest, match='"m" does not support insert'):
        generate(prompt="a", suffix="b")


@pytest.mark.parametrize(
    ("keep_alive", "unloads"), [(None, False), ("5m", False), (-1, False), (0, True), ("0s", True)]
)
def test_a_request_that_asks_nothing_needs_no_model(keep_alive: Any, unloads: bool) -> None:
    for parsed in (
        parse_chat(orjson.dumps({"model": "m", "keep_alive": keep_alive})),
        read(messages=[], keep_alive=keep_alive),
        generate(keep_alive=keep_alive, prompt=""),
    ):
        assert (parsed.ready is not None, parsed.unloads) == (True, unloads)
    assert read().ready is None
