"""Each kind of event as the client sees it, in chunks and in a whole answer; usage and errors."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from adapters.errors import RateLimited, Truncated
from adapters.protocol import (
    Aside,
    Event,
    Finish,
    Json,
    Noted,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
    Usage,
)
from adapters.receipts import Note, OwnCode
from middleware.doors.chat.chunks import Chunks
from middleware.doors.chat.errors import error_body, error_frame
from middleware.doors.chat.fold import Fold
from middleware.doors.x_usetool import warnings_header
from tests.doors.chat.written import LOGPROB, OPENED, heading, read, whole, written

USAGE = Usage(3, 4)
END = Finish("stop", USAGE)
NOTE = Note(OwnCode("code"), "field", "text")


def deltas(*events: Event, legacy: bool = False) -> list[Json]:
    """What stands between the role and the reason."""
    chunks = written(*events, END, legacy=legacy)
    return [chunk["choices"][0]["delta"] for chunk in chunks[1:-1]]


# Kind by kind ----------------------------------------------------------------------------------


def test_a_text_begins_with_an_empty_one() -> None:
    role = written(TextDelta("a"), END)[0]["choices"][0]["delta"]
    assert role == {"role": "assistant", "content": ""}


@pytest.mark.parametrize(
    "first",
    [
        (ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}")),
        (ReasoningDelta("a"),),
        (RefusalDelta("a"),),
        (Noted((NOTE,)), ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}")),
    ],
)
def test_what_begins_without_a_text_begins_with_null(first: tuple[Event, ...]) -> None:
    role = written(*first, END)[0]["choices"][0]["delta"]
    assert role == {"role": "assistant", "content": None}


def test_a_plain_answer_has_openais_members_and_the_clients_name_for_the_model() -> None:
    said = whole(TextDelta("a"), END)
    assert said == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1763456400,
        "model": "客户",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "a", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }


def test_an_empty_answer_is_a_role_and_a_reason() -> None:
    first, last = written(END)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert last["choices"][0] == {
        "index": 0,
        "delta": {},
        "logprobs": None,
        "finish_reason": "stop",
    }


def test_a_call_says_its_id_and_name_once_and_its_arguments_in_pieces() -> None:
    events = (
        ToolCallStart(0, "a", "f"),
        ToolCallDelta(0, '{"城":'),
        ToolCallDelta(0, "1}"),
        ToolCallStart(1, "b", "g"),
        ToolCallDelta(1, "{}"),
    )
    assert [delta["tool_calls"] for delta in deltas(*events)] == [
        [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}],
        [{"index": 0, "function": {"arguments": '{"城":'}}],
        [{"index": 0, "function": {"arguments": "1}"}}],
        [{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}],
        [{"index": 1, "function": {"arguments": "{}"}}],
    ]


def test_a_custom_call_has_an_input() -> None:
    events = (ToolCallStart(0, "a", "f", "custom"), ToolCallDelta(0, "x"), ToolCallDelta(0, "y"))
    assert [delta["tool_calls"] for delta in deltas(*events)] == [
        [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": ""}}],
        [{"index": 0, "custom": {"input": "x"}}],
        [{"index": 0, "custom": {"input": "y"}}],
    ]
    (call,) = whole(*events, END)["choices"][0]["message"]["tool_calls"]
    assert call == {"id": "a", "type": "custom", "custom": {"name": "f", "input": "xy"}}


def test_a_function_call_after_a_custom_one_has_arguments_again() -> None:
    events = (ToolCallStart(0, "a", "f", "custom"), ToolCallDelta(0, "x"))
    last = (ToolCallStart(1, "b", "g"), ToolCallDelta(1, "{}"))
    assert deltas(*events, *last)[-1]["tool_calls"] == [
        {"index": 1, "function": {"arguments": "{}"}}
    ]


def test_who_sent_functions_gets_a_function_call() -> None:
    events = (
        TextDelta("a"),
        ToolCallStart(0, "a", "f"),
        ToolCallDelta(0, "{"),
        ToolCallDelta(0, "}"),
    )
    end = Finish("tool_calls", USAGE)
    assert deltas(*events, legacy=True)[1:] == [
        {"function_call": {"name": "f", "arguments": ""}},
        {"function_call": {"arguments": "{"}},
        {"function_call": {"arguments": "}"}},
    ]
    assert written(*events, end, legacy=True)[-1]["choices"][0]["finish_reason"] == "function_call"
    (choice,) = whole(*events, end, legacy=True)["choices"]
    assert choice["finish_reason"] == "function_call"
    assert choice["message"]["function_call"] == {"name": "f", "arguments": "{}"}
    assert "tool_calls" not in choice["message"]


def test_another_reason_is_the_same_for_who_sent_functions() -> None:
    assert written(END, legacy=True)[-1]["choices"][0]["finish_reason"] == "stop"
    assert whole(END, legacy=True)["choices"][0]["finish_reason"] == "stop"


def test_probabilities_stand_beside_their_text() -> None:
    chunks = written(TextDelta("a", (LOGPROB,)), TextDelta("b"), TextDelta("c", (LOGPROB,)), END)
    said = [(chunk["choices"][0]["delta"], chunk["choices"][0]["logprobs"]) for chunk in chunks]
    one = {"content": [LOGPROB], "refusal": None}
    assert said[1:-1] == [
        ({"content": "a"}, one),
        ({"content": "b"}, None),
        ({"content": "c"}, one),
    ]
    plain = whole(TextDelta("a", (LOGPROB,)), TextDelta("c", (LOGPROB,)), END)
    assert plain["choices"][0]["logprobs"] == {"content": [LOGPROB] * 2, "refusal": None}


def test_further_members_of_the_message_come_as_they_are() -> None:
    assert deltas(Aside("annotations", [1]), TextDelta("a")) == [
        {"annotations": [1]},
        {"content": "a"},
    ]


def test_thoughts_to_echo_stand_on_the_finish_chunk() -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "s"}
    events = (ReasoningDelta("hm"), Aside("thinking_blocks", [block]), END)
    assert deltas(*events[:-1]) == [{"reasoning_content": "hm"}]
    assert written(*events)[-1]["choices"][0]["delta"] == {"thinking_blocks": [block]}
    assert whole(*events)["choices"][0]["message"]["thinking_blocks"] == [block]


def test_a_refusal_leaves_no_text() -> None:
    message = whole(RefusalDelta("n"), RefusalDelta("o"), END)["choices"][0]["message"]
    assert message == {"role": "assistant", "content": None, "refusal": "no"}


@pytest.mark.parametrize(
    ("events", "content"),
    [
        ((END,), ""),
        ((TextDelta("a"), END), "a"),
        ((ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}"), END), None),
        ((TextDelta("a"), ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}"), END), "a"),
    ],
)
def test_the_content_of_a_plain_answer_is_null_only_where_something_else_is_said(
    events: tuple[Event, ...], content: str | None
) -> None:
    assert whole(*events)["choices"][0]["message"]["content"] == content


def test_who_answered_is_in_every_chunk() -> None:
    opened = Opened((), Upstream("up", fingerprint="fp", tier="default"))
    for chunk in read(Chunks(heading(usage_chunk=True)).render([opened, TextDelta("a"), END])):
        assert (chunk["system_fingerprint"], chunk["service_tier"]) == ("fp", "default")
    fold = Fold(heading())
    fold.add([opened, END])
    said = orjson.loads(fold.body())
    assert (said["system_fingerprint"], said["service_tier"]) == ("fp", "default")


# Usage -----------------------------------------------------------------------------------------


def test_usage_says_what_the_upstream_said_and_no_more() -> None:
    bare = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert whole(END)["usage"] == bare
    assert written(END, usage_chunk=True)[-1]["usage"] == bare
    full = Usage(3, 4, 1, 0, 2, {"prompt_tokens_details": {"audio_tokens": 5}})
    assert whole(Finish("stop", full))["usage"] == {
        **bare,
        "prompt_tokens_details": {"audio_tokens": 5, "cached_tokens": 1, "cache_write_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }


def test_unknown_usage_is_absent_and_where_it_was_asked_for_called_unknown() -> None:
    assert "usage" not in whole(Finish("stop"))
    assert "x_usetool" not in written(Finish("stop"))[-1]
    *_, finish, last = written(Finish("stop"), usage_chunk=True)
    assert last["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    (note,) = finish["x_usetool"]["warnings"]
    assert (note["code"], note["field"]) == ("usage_unknown", "usage")


# Ends that are none, and headers ---------------------------------------------------------------


@pytest.mark.parametrize("events", [(), (OPENED,), (OPENED, TextDelta("a"))])
def test_an_answer_without_an_end_is_no_answer(events: tuple[Event, ...]) -> None:
    fold = Fold(heading())
    fold.add(events)
    with pytest.raises(Truncated):
        fold.body()


def test_an_error_has_openais_members_as_body_and_as_frame() -> None:
    error = RateLimited("slow down", param="model")
    said = {
        "error": {
            "message": "slow down (request id req_1)",
            "type": "rate_limit_error",
            "param": "model",
            "code": "rate_limit_exceeded",
        }
    }
    assert orjson.loads(error_body(error, "req_1")) == said
    assert error_frame(error, "req_1") == b"data: " + orjson.dumps(said) + b"\n\n"
    assert orjson.loads(error_body(error))["error"]["message"] == "slow down"


@pytest.mark.parametrize(
    ("fields", "header"),
    [
        (["a"], "code:a"),
        (["a", "b", "a"], "code:a, code:b"),
        ([""], "code"),
        (["tools[0].function.strict"], "code:tools[0].function.strict"),
        (["查询"], "code:\\u67e5\\u8be2"),
        (["a\r\nset-cookie: b"], "code:a\\r\\nset-cookie: b"),
        (["\x00\x7f"], "code:\\x00\\x7f"),
    ],
)
def test_the_warnings_header_is_one_line_of_ascii(fields: list[str], header: str) -> None:
    assert warnings_header(tuple(Note(OwnCode("code"), field, "t") for field in fields)) == header


def test_a_long_warnings_header_ends_at_a_whole_entry() -> None:
    fitting = tuple(Note(OwnCode("c" * 8), f"{n:07}", "t") for n in range(110))
    header = warnings_header((*fitting, Note(OwnCode("c" * 12), "f" * 7, "t")))
    assert len(header) == 2000
    assert header.endswith("c:fffffff")
    longer = warnings_header((*fitting, Note(OwnCode("c" * 13), "f" * 7, "t")))
    assert longer == ", ".join([*(f"cccccccc:{n:07}" for n in range(110)), "more"])


@pytest.mark.parametrize(
    ("known", "value", "both"),
    [
        (None, [1], [1]),
        ([1], [2], [1, 2]),
        ("a", "b", "ab"),
        ({"a": 1, "b": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ([1], "b", "b"),
        ("a", [2], [2]),
        ({"a": 1}, [2], [2]),
        ([1], {"b": 2}, {"b": 2}),
    ],
)
def test_pieces_of_a_member_are_joined_where_they_can_be(known: Any, value: Any, both: Any) -> None:
    pieces = [Aside("x", piece) for piece in (known, value) if piece is not None]
    assert whole(*pieces, END)["choices"][0]["message"]["x"] == both
