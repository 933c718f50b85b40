"""Requests in Ollama's words: nothing vanishes, nothing is sent that the server refuses."""

from __future__ import annotations

import copy
import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.ollama import encode
from adapters.ollama.abilities import Abilities, assumed_abilities, read_abilities
from adapters.ollama.encode import Setup
from adapters.ollama.window import MINIMUM, fitting, grown, needed, overflow
from adapters.protocol import ChatRequest, Json, Receipt, RequestContext
from adapters.shared.history import settle
from adapters.shared.toolbox import toolbox

ABLE = Abilities(tools=True, thinking=True, vision=True, context_length=32768)
USER: Json = {"role": "user", "content": "hi"}


def tool(name: str = "get_weather", **parameters: Any) -> Json:
    found = parameters or {"type": "object", "properties": {"city": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": found}}


def encoded(
    *messages: Json, setup: Setup | None = None, streamed: bool = True, **fields: Any
) -> tuple[Json, Receipt]:
    """Encode, and read the body as the server will."""
    request = ChatRequest(
        model=fields.pop("model", "qwen3:4b"),
        messages=settle(messages or (USER,))[0],
        tools=tuple(fields.pop("tools", ())),
        tool_choice=fields.pop("tool_choice", None),
        extra=fields.pop("extra", {}),
        params=fields,
        call=RequestContext(streamed=streamed),
    )
    body, receipt = encode(request, toolbox(request), setup or Setup(ABLE))
    return json.loads(orjson.dumps(body)), receipt


def body(*messages: Json, **fields: Any) -> Json:
    return encoded(*messages, **fields)[0]


def codes(receipt: Receipt) -> list[str]:
    return [note.code for note in receipt]


# Scalars ---------------------------------------------------------------------------------------


def test_a_plain_request_says_so_because_streaming_is_the_default() -> None:
    assert body(streamed=False)["stream"] is False
    assert body(streamed=True)["stream"] is True


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"max_tokens": 5}, {"num_predict": 5}),
        ({"max_tokens": 7, "max_completion_tokens": 7}, {"num_predict": 7}),
        ({"stop": "X"}, {"stop": ["X"]}),
        ({"stop": ["X", "Y"]}, {"stop": ["X", "Y"]}),
        ({"frequency_penalty": 0}, {"frequency_penalty": 0}),
        ({"presence_penalty": 1.5}, {"presence_penalty": 1.5}),
        ({"temperature": 0, "top_p": 0.1, "seed": 3}, {"temperature": 0, "top_p": 0.1, "seed": 3}),
        ({"extra": {"top_k": 4, "min_p": 0.1}}, {"top_k": 4, "min_p": 0.1}),
        ({"extra": {"options": {"stop": "X", "mirostat": 1}}}, {"stop": ["X"], "mirostat": 1}),
        ({"extra": {"num_ctx": 999}}, {"num_ctx": 999}),
        ({"temperature": None}, {}),
    ],
)
def test_sampling_and_limits_become_options(fields: Json, options: Json) -> None:
    found, receipt = encoded(**fields)
    assert found["options"] == options
    assert receipt == ()


@pytest.mark.parametrize(
    ("fields", "options", "lost"),
    [
        ({"max_tokens": 5, "max_completion_tokens": 7}, {"num_predict": 7}, ["max_tokens"]),
        ({"max_tokens": 5, "extra": {"num_predict": 9}}, {"num_predict": 9}, ["max_tokens"]),
        (
            {"temperature": 1, "extra": {"options": {"temperature": 0.5}}},
            {"temperature": 0.5},
            ["temperature"],
        ),
    ],
)
def test_what_is_said_twice_counts_once_and_the_other_is_named(
    fields: Json, options: Json, lost: list[str]
) -> None:
    found, receipt = encoded(**fields)
    assert found["options"] == options
    assert [note.field for note in receipt] == lost


def test_the_config_gives_what_the_client_does_not_say() -> None:
    setup = Setup(ABLE, {"max_tokens": 9, "num_ctx": 4096, "keep_alive": "1h", "min_num_ctx": 5})
    found = body(setup=setup)
    assert (found["options"], found["keep_alive"]) == ({"num_predict": 9, "num_ctx": 4096}, "1h")
    found = body(setup=setup, max_tokens=3, extra={"keep_alive": 0, "num_ctx": 7})
    assert (found["options"], found["keep_alive"]) == ({"num_predict": 3, "num_ctx": 7}, 0)


def test_log_probabilities_are_asked_for_natively() -> None:
    found = body(logprobs=True, top_logprobs=3)
    assert (found["logprobs"], found["top_logprobs"]) == (True, 3)


@pytest.mark.parametrize(
    "field",
    ["user", "metadata", "store", "logit_bias", "service_tier", "prediction", "prompt_cache_key"],
)
def test_what_the_server_has_nothing_like_is_named(field: str) -> None:
    fields: Json = {field: {"a": 1}}
    found, receipt = encoded(**fields)
    assert [(note.code, note.field) for note in receipt] == [("parameter_dropped", field)]
    assert field not in found
    assert field not in found["options"]


@pytest.mark.parametrize("field", ["api_key", "base_url", "template", "raw"])
def test_only_known_fields_of_the_vendor_pass(field: str) -> None:
    found, receipt = encoded(extra={field: "x"})
    assert [note.field for note in receipt] == [field]
    assert b'"x"' not in orjson.dumps(found)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"extra": {"options": 5}}, "options"),
        ({"extra": {"think": {"a": 1}}}, "think"),
    ],
)
def test_what_would_change_the_meaning_is_refused(fields: Json, param: str) -> None:
    with pytest.raises(BadRequest) as caught:
        encoded(**fields)
    assert caught.value.param == param


@pytest.mark.parametrize("fields", [{"n": 1}, {"modalities": ["text"]}, {"stream_options": {}}])
def test_what_is_so_anyway_is_no_loss(fields: Json) -> None:
    assert encoded(**fields)[1] == ()


# Thinking --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effort", "think"),
    [
        (None, None),
        ("none", False),
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("xhigh", "max"),
        ("max", "max"),
    ],
)
def test_effort_of_a_thinking_model(effort: str | None, think: Any) -> None:
    found, receipt = encoded(reasoning_effort=effort)
    assert found.get("think") == think
    assert receipt == ()


@pytest.mark.parametrize(
    ("effort", "think", "changed"),
    [
        (None, "low", False),
        ("none", "low", True),
        ("minimal", "low", False),
        ("medium", "medium", False),
        ("high", "high", False),
        ("xhigh", "high", True),
        ("max", "high", True),
    ],
)
@pytest.mark.parametrize("named", [True, False], ids=["by name", "by family"])
def test_gpt_oss_has_three_levels(
    effort: str | None, think: str, changed: bool, named: bool
) -> None:
    setup = Setup(Abilities(thinking=True, family="" if named else "gptoss"))
    model = "gpt-oss:20b" if named else "renamed"
    found, receipt = encoded(model=model, setup=setup, reasoning_effort=effort)
    assert found["think"] == think
    assert codes(receipt) == ["reasoning_effort_changed"] * changed


@pytest.mark.parametrize(
    ("extra", "think"),
    [
        ({"think": "high"}, "high"),
        ({"think": False}, False),
        ({"thinking": {"type": "disabled"}}, False),
        ({"thinking": {"type": "enabled", "budget_tokens": 5}}, True),
    ],
)
def test_a_vendors_own_word_outranks_effort(extra: Json, think: Any) -> None:
    assert body(extra=extra, reasoning_effort="low")["think"] == think


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"reasoning_effort": "high"}, ["reasoning_effort"]),
        ({"extra": {"think": True}}, ["think"]),
        ({"extra": {"think": True}, "reasoning_effort": "none"}, ["think"]),
        ({"extra": {"thinking": {"type": "enabled"}}}, ["thinking"]),
        ({"reasoning_effort": "none"}, []),
        ({"extra": {"think": False}}, []),
    ],
)
def test_a_model_that_cannot_think_is_not_asked_to(fields: Json, told: list[str]) -> None:
    found, receipt = encoded(setup=Setup(Abilities(thinking=False)), **fields)
    assert "think" not in found
    assert [(note.code, note.field) for note in receipt] == [
        ("thinking_dropped", field) for field in told
    ]


def test_a_model_nobody_knows_is_asked_what_the_client_asks() -> None:
    assert body(setup=Setup(), reasoning_effort="high")["think"] == "high"


# Tools -----------------------------------------------------------------------------------------


def test_a_tool_keeps_what_the_server_reads_and_its_own_description() -> None:
    parameters: Json = {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date", "description": "When"},
            "unit": {"const": "C"},
            "at": {"oneOf": [{"$ref": "#/$defs/point"}, {"type": "null"}]},
        },
        "required": ["day"],
        "additionalProperties": False,
        "$defs": {"point": {"type": "array", "items": {"type": "number", "minimum": -180}}},
    }
    given_tool = tool(**parameters)
    given_tool["function"] |= {"description": "The weather", "strict": True}
    found, receipt = encoded(tools=[given_tool])
    assert found["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "The weather",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "day": {"type": "string", "description": "When (format date)"},
                        "unit": {"enum": ["C"]},
                        "at": {
                            "anyOf": [
                                {
                                    "type": "array",
                                    "items": {"type": "number", "description": "(minimum -180)"},
                                },
                                {"type": "null"},
                            ]
                        },
                    },
                    "required": ["day"],
                },
            },
        }
    ]
    assert codes(receipt) == ["schema_reduced", "strict_not_enforced"]
    assert "format, minimum" in receipt[0].text


def test_a_root_that_is_a_choice_is_merged_and_told() -> None:
    choice = [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]
    found, receipt = encoded(tools=[tool(anyOf=choice)])
    assert found["tools"][0]["function"] == {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"a": {}, "b": {}}},
    }
    assert codes(receipt) == ["schema_merged"]


def test_a_tool_without_parameters_and_one_in_chinese_are_sent() -> None:
    found = body(tools=[{"type": "function", "function": {"name": "查询天气"}}])
    function = found["tools"][0]["function"]
    assert function["name"].isascii()
    assert function["parameters"] == {"type": "object", "properties": {}}


def test_choice_none_drops_the_tools_and_keeps_the_calls() -> None:
    found = body(*ROUND, tools=[tool()], tool_choice="none")
    assert "tools" not in found
    assert found["messages"][1]["tool_calls"]


def test_a_named_choice_sends_only_that_tool_and_holds_the_model_to_it() -> None:
    named = {"type": "function", "function": {"name": "b"}}
    found = body(tools=[tool("a"), tool("b", type="object")], tool_choice=named)
    assert [one["function"]["name"] for one in found["tools"]] == ["b"]
    assert found["format"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "enum": ["b"]},
            "arguments": {"type": "object", "properties": {}},
        },
        "required": ["name", "arguments"],
    }


def test_choice_required_holds_the_model_to_any_of_the_tools() -> None:
    kept = {"const": 1, "minimum": 0}
    strict = {
        "properties": {"x": {**kept, "multipleOf": 1}},
        "additionalProperties": False,
    }
    found = body(tools=[tool("a"), tool("b", **strict)], tool_choice="required")
    form = found["format"]["properties"]
    assert form["name"]["enum"] == ["a", "b"]
    assert form["arguments"]["anyOf"][1] == {
        "type": "object",
        "properties": {"x": kept},
        "additionalProperties": False,
    }
    assert len(found["tools"]) == 2


@pytest.mark.parametrize("choice", ["none", None])
def test_tools_for_a_model_that_cannot_call(choice: str | None) -> None:
    setup = Setup(Abilities(tools=False))
    if choice == "none":
        assert "tools" not in body(setup=setup, tools=[tool()], tool_choice="none")
        return
    with pytest.raises(BadRequest, match='tools = "emulated"') as caught:
        body(setup=setup, tools=[tool()])
    assert caught.value.param == "tools"


def test_a_model_nobody_knows_is_given_the_tools() -> None:
    assert body(setup=Setup(), tools=[tool()])["tools"]


# Formats ---------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"answer": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}


@pytest.mark.parametrize(
    ("fields", "form"),
    [
        ({"response_format": {"type": "json_object"}}, "json"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, SCHEMA),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "json"),
        ({"response_format": {"type": "text"}}, None),
        ({"extra": {"format": "json"}}, "json"),
    ],
)
def test_a_form_of_the_answer(fields: Json, form: Any) -> None:
    found, receipt = encoded(**fields)
    assert found.get("format") == form
    assert receipt == ()


def test_two_forms_of_the_answer_are_one_too_many() -> None:
    found, receipt = encoded(response_format={"type": "json_object"}, extra={"format": {}})
    assert found["format"] == "json"
    assert [(note.field, note.text) for note in receipt] == [
        ("format", "response_format says what it is")
    ]


def test_what_the_server_cannot_be_held_to_is_named() -> None:
    schema = {"type": "string", "pattern": r"^\d+$"}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    for name, sent in (
        ("response_format", {"response_format": form}),
        ("format", {"extra": {"format": schema}}),
    ):
        found, receipt = encoded(**sent)
        assert found["format"] == {"type": "string"}
        assert [(note.code, note.field) for note in receipt] == [("schema_reduced", name)]


def test_a_demanded_call_is_asked_for_in_what_the_grammar_can_say() -> None:
    quoted = tool(properties={'a "b"': {"type": "string"}})
    found = body(tools=[quoted], tool_choice="required")
    assert found["format"]["properties"]["arguments"] == {"type": "object"}


def test_a_form_beside_tools_leaves_room_for_a_call() -> None:
    form = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
    call, answer = body(tools=[tool()], response_format=form)["format"]["anyOf"]
    assert call["properties"]["name"]["enum"] == ["get_weather"]
    assert answer == {"type": "object", "properties": {"answer": {}}}
    either = body(tools=[tool()], response_format={"type": "json_object"})["format"]["anyOf"]
    assert either[1] == {"type": "object"}


# Conversations ---------------------------------------------------------------------------------


def call(identity: str, arguments: str, name: str = "get_weather") -> Json:
    return {
        "id": identity,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


ROUND: tuple[Json, ...] = (
    USER,
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "two",
        "tool_calls": [call("c1", '{"n": 1.10, "city": "\\u6c88"}'), call("c2", "")],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "b"},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}]},
)


def test_a_round_of_calls() -> None:
    request = ChatRequest("m", settle(ROUND)[0])
    found, receipt = encode(request, toolbox(request), Setup(ABLE))
    assert receipt == ()
    assert '"arguments":{"n":1.10,"city":"沈"}'.encode() in orjson.dumps(found)
    assert json.loads(orjson.dumps(found["messages"][1:])) == [
        {
            "role": "assistant",
            "content": "",
            "thinking": "two",
            "tool_calls": [
                {
                    "id": "c1",
                    "function": {
                        "index": 0,
                        "name": "get_weather",
                        "arguments": {"n": 1.1, "city": "沈"},
                    },
                },
                {"id": "c2", "function": {"index": 1, "name": "get_weather", "arguments": {}}},
            ],
        },
        {"role": "tool", "content": "a", "tool_name": "get_weather", "tool_call_id": "c1"},
        {"role": "tool", "content": "b", "tool_name": "get_weather", "tool_call_id": "c2"},
    ]


@pytest.mark.parametrize("arguments", ["{broken", "[1,2]", '"text"', "12"])
def test_arguments_that_are_no_object_do_not_end_the_session(arguments: str) -> None:
    assistant = {"role": "assistant", "tool_calls": [call("c1", arguments)]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "x"}
    found, receipt = encoded(USER, assistant, result)
    sent = found["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert sent == {"_raw": arguments}
    assert codes(receipt) == ["arguments_wrapped"]


def test_a_free_text_call_goes_back_as_the_function_it_was() -> None:
    custom = {"id": "c", "type": "custom", "custom": {"name": "run", "input": 'say "hi"'}}
    result = {"role": "tool", "tool_call_id": "c", "content": "x"}
    found = body(USER, {"role": "assistant", "tool_calls": [custom]}, result)
    function = found["messages"][1]["tool_calls"][0]["function"]
    assert function["arguments"] == {"input": 'say "hi"'}
    assert found["messages"][2]["tool_name"] == "run"


def test_a_chinese_tool_has_one_alias_everywhere() -> None:
    assistant = {"role": "assistant", "tool_calls": [call("c", "{}", "查询天气")]}
    result = {"role": "tool", "tool_call_id": "c", "content": "x"}
    found = body(USER, assistant, result, tools=[tool("查询天气")])
    names = {
        found["tools"][0]["function"]["name"],
        found["messages"][1]["tool_calls"][0]["function"]["name"],
        found["messages"][2]["tool_name"],
    }
    assert len(names) == 1
    assert names.pop().isascii()


def test_a_turn_without_words_has_empty_text_never_null() -> None:
    assert [one["content"] for one in body(*ROUND)["messages"]] == ["hi", "", "a", "b"]


def image(url: str, **more: Any) -> Json:
    return {"type": "image_url", "image_url": {"url": url, **more}}


TEXT: Json = {"type": "text", "text": "what?"}
SOUND: Json = {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}


@pytest.mark.parametrize(
    ("content", "message", "told"),
    [
        ([TEXT], {"content": "what?"}, []),
        ([TEXT, TEXT], {"content": "what?\nwhat?"}, ["parts_joined"]),
        (
            [TEXT, image("data:image/png;base64,AAAA")],
            {"content": "what?", "images": ["AAAA"]},
            [],
        ),
        (
            [image("data:image/png;base64,AAAA", detail="low")],
            {"content": "", "images": ["AAAA"]},
            ["detail_dropped"],
        ),
    ],
)
def test_parts_of_a_user_turn(content: list[Json], message: Json, told: list[str]) -> None:
    found, receipt = encoded({"role": "user", "content": content})
    assert found["messages"] == [{"role": "user", **message}]
    assert codes(receipt) == told


@pytest.mark.parametrize(
    ("message", "param", "able"),
    [
        ([TEXT, image("https://example.com/a.png")], "content[1].image_url.url", ABLE),
        ([image("data:image/svg+xml,%3Csvg")], "content[0].image_url.url", ABLE),
        ([image("data:image/png;base64,AA")], "content[0]", Abilities(vision=False)),
        ([SOUND], "content[0]", Abilities()),
        ([{"type": "file", "file": {"file_id": "f"}}], "content[0]", ABLE),
    ],
)
def test_parts_the_model_cannot_take_are_refused(
    message: list[Json], param: str, able: Abilities
) -> None:
    with pytest.raises(BadRequest) as caught:
        body({"role": "user", "content": message}, setup=Setup(able))
    assert caught.value.param == f"messages[0].{param}"


def test_an_image_in_a_result_is_refused() -> None:
    assistant = {"role": "assistant", "tool_calls": [call("c", "{}")]}
    content = [image("data:image/png;base64,AA")]
    with pytest.raises(BadRequest) as caught:
        body(USER, assistant, {"role": "tool", "tool_call_id": "c", "content": content})
    assert caught.value.param == "messages[2].content[0]"


def test_a_sound_is_bytes_like_an_image_where_the_model_hears() -> None:
    found = body({"role": "user", "content": [SOUND]}, setup=Setup(Abilities(audio=True)))
    assert found["messages"][0]["images"] == ["UklG"]


@pytest.mark.parametrize(
    ("message", "content", "told"),
    [
        ({"role": "developer", "content": "be brief"}, "be brief", []),
        ({"role": "user", "name": "Ann", "content": "hi"}, "Ann:\nhi", ["name_in_text"]),
        ({"role": "user", "name": "user", "content": "hi"}, "hi", ["name_dropped"]),
        ({"role": "assistant", "content": "a", "refusal": "no"}, "a\nno", ["refusal_as_text"]),
        ({"role": "assistant", "content": "a", "audio": {"id": "x"}}, "a", ["audio_dropped"]),
        (
            {"role": "assistant", "content": "a", "thinking_blocks": [{}]},
            "a",
            ["thinking_dropped"],
        ),
    ],
)
def test_the_rarer_turns(message: Json, content: str, told: list[str]) -> None:
    found, receipt = encoded(USER, message)
    assert found["messages"][1]["content"] == content
    assert found["messages"][1]["role"] in ("system", "user", "assistant")
    assert codes(receipt) == told


def test_a_conversation_says_each_thing_once() -> None:
    message = {"role": "user", "content": [TEXT, TEXT]}
    assert codes(encoded(message, message, message)[1]) == ["parts_joined"]


# The context window ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "least", "most", "window"),
    [
        (10, MINIMUM, None, 8192),
        (4096, MINIMUM, None, 8192),
        (4097, MINIMUM, None, 16384),
        (10, 16384, 32768, 16384),
        (90_000, MINIMUM, 40_960, 40_960),
        (10, MINIMUM, 2048, 2048),
    ],
)
def test_windows_are_few_and_never_larger_than_the_model(
    tokens: int, least: int, most: int | None, window: int
) -> None:
    assert fitting(tokens, least, most) == window


def test_a_window_grows_once_to_the_models_own() -> None:
    assert [grown(tokens, 8192, 100_000) for tokens in (10, 8192, 8193, 200_000)] == [
        *(8192, 8192, 100_000, 100_000),
    ]
    assert grown(100_001, 100_000, 100_000) == 100_000


@pytest.mark.parametrize("most", [4096, 8192, 40_960, 131_072, 1 << 20])
@pytest.mark.parametrize("turn", [50, 3_000, 20_000])
def test_a_conversation_of_any_length_has_two_windows_at_most(turn: int, most: int) -> None:
    held = fitting(turn, MINIMUM, most)
    seen = {held}
    for tokens in range(turn, 2 * most, turn):
        held = grown(tokens, held, most)
        seen.add(held)
        assert held >= min(tokens, most)
    assert len(seen) <= 2
    assert max(seen) <= most


def test_the_estimate_counts_text_tools_and_the_answer_but_not_the_bytes_of_images() -> None:
    bare = needed(body())
    assert needed(body({"role": "user", "content": "x" * 3000})) > bare + 990
    long = tool(properties={"city": {"type": "string", "description": "x" * 3000}})
    assert needed(body(tools=[long])) > needed(body(tools=[tool()])) + 990
    assert needed(body(max_tokens=4000)) == bare - 1024 + 4000
    assert needed(body(max_tokens=100_000)) < bare + 10_000
    picture = image("data:image/png;base64," + "A" * 300_000)
    assert needed(body({"role": "user", "content": [picture]})) < bare + 2000
    assert needed(body(extra={"options": {"num_predict": "junk"}})) > 0


@pytest.mark.parametrize(
    ("tokens", "window", "told"), [(100, 100, False), (101, 100, True), (101, "junk", False)]
)
def test_a_window_that_is_too_small_is_told(tokens: int, window: Any, told: bool) -> None:
    assert codes(overflow(tokens, window)) == ["context_may_be_truncated"] * told


# Abilities -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "overrides", "expected"),
    [
        (
            {
                "capabilities": ["completion", "tools"],
                "details": {"family": "qwen3"},
                "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
            },
            {},
            Abilities(True, False, False, False, "qwen3", 40960),
        ),
        ({"details": {"family": "llama"}}, {}, Abilities(family="llama")),
        ({"capabilities": ["thinking"]}, {"tools": True, "thinking": "off", "sampling": 1}, None),
        ({"capabilities": 7, "details": [], "model_info": "x"}, {}, Abilities()),
        (None, {}, Abilities()),
        ({"model_info": {"general.architecture": "a", "a.context_length": "x"}}, {}, Abilities()),
    ],
)
def test_what_the_server_says_of_a_model(
    answer: Any, overrides: Json, expected: Abilities | None
) -> None:
    outranked = Abilities(tools=True, thinking=False, vision=False, audio=False)
    assert read_abilities(answer, overrides) == (expected or outranked)


def test_the_config_alone_is_enough() -> None:
    assert assumed_abilities({"thinking": "always", "inline_think": True}) == Abilities(
        thinking=True, inline_think=True
    )


# Laws ------------------------------------------------------------------------------------------

WORDS = st.text(max_size=8)
TURNS = st.lists(
    st.one_of(
        st.builds(lambda text: [{"role": "user", "content": text}], WORDS),
        st.builds(
            lambda text, name, arguments: [
                {"role": "assistant", "content": text, "tool_calls": [call("c", arguments, name)]},
                {"role": "tool", "tool_call_id": "c", "content": text},
            ],
            WORDS,
            st.sampled_from(["get_weather", "查询"]),
            st.sampled_from(["{}", "", '{"a": 1e5}', "{bro", "[1]"]),
        ),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(TURNS)
def test_a_longer_history_begins_with_the_same_bytes(turns: list[list[Json]]) -> None:
    messages = [USER, *(message for turn in turns for message in turn)]
    before = copy.deepcopy(messages)
    whole = body(*messages, tools=[tool()])
    assert messages == before
    shorter = body(*messages[: -len(turns[-1])], tools=[tool()])
    assert orjson.dumps(whole["tools"]) == orjson.dumps(shorter["tools"])
    assert orjson.dumps(whole["messages"]).startswith(orjson.dumps(shorter["messages"])[:-1])


FIELDS: Json = {
    "temperature": 0.5,
    "max_tokens": 5,
    "stop": ["x"],
    "user": "u",
    "store": True,
    "reasoning_effort": "low",
    "parallel_tool_calls": False,
    "logit_bias": {"1": 1},
    "n": 1,
    "logprobs": True,
    "metadata": {"a": "b"},
    "unheard_of": 1,
}
KEPT_BY_US = {"parallel_tool_calls", "n"}
RENAMED = {"max_tokens": "num_predict", "reasoning_effort": "think"}


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from(sorted(FIELDS))))
def test_every_field_is_carried_or_named(chosen: set[str]) -> None:
    found, receipt = encoded(**{name: FIELDS[name] for name in chosen})
    carried = found.keys() | found["options"].keys()
    told = {note.field for note in receipt}
    for name in chosen - KEPT_BY_US:
        assert (RENAMED.get(name, name) in carried) != (name in told)
