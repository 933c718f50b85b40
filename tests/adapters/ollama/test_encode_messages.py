"""Conversations, context windows and abilities in Ollama's words."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from adapters.errors import BadRequest
from adapters.ollama.abilities import Abilities, read_abilities
from adapters.ollama.encode import Options, encode
from adapters.ollama.window import MINIMUM, fitting, grown, overflow
from adapters.protocol import ChatRequest, Json
from adapters.shared.history import settle
from adapters.shared.toolbox import toolbox
from tests.adapters.ollama.asking import ABLE, ROUND, USER, body, call, codes, encoded, size, tool

# Conversations ---------------------------------------------------------------------------------


def test_a_round_of_calls() -> None:
    request = ChatRequest("m", settle(ROUND)[0])
    found, receipt, _ = encode(request, toolbox(request), ABLE, Options())
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
        body({"role": "user", "content": message}, able=able)
    assert caught.value.param == f"messages[0].{param}"


def test_an_image_in_a_result_is_refused() -> None:
    assistant = {"role": "assistant", "tool_calls": [call("c", "{}")]}
    content = [image("data:image/png;base64,AA")]
    with pytest.raises(BadRequest) as caught:
        body(USER, assistant, {"role": "tool", "tool_call_id": "c", "content": content})
    assert caught.value.param == "messages[2].content[0]"


def test_a_sound_is_bytes_like_an_image_where_the_model_hears() -> None:
    found = body({"role": "user", "content": [SOUND]}, able=Abilities(audio=True))
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
    bare = size()
    assert size({"role": "user", "content": "x" * 3000}) > bare + 990
    long = tool(properties={"city": {"type": "string", "description": "x" * 3000}})
    assert size(tools=[long]) > size(tools=[tool()]) + 990
    assert size(max_tokens=4000) == bare - 1024 + 4000
    assert size(max_tokens=100_000) < bare + 10_000
    picture = image("data:image/png;base64," + "A" * 300_000)
    assert size({"role": "user", "content": [picture]}) < bare + 2000
    assert size(extra={"options": {"num_predict": "junk"}}) > 0


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
    assert read_abilities({}, {"thinking": "always", "inline_think": True}) == Abilities(
        thinking=True, inline_think=True
    )
