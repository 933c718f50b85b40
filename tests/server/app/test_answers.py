"""Answers of the app: statuses, headers, receipts; and what strictness refuses."""

from __future__ import annotations

import orjson
import pytest

from adapters.protocol import (
    Finish,
    Json,
    Noted,
    Opened,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
    Usage,
)
from adapters.receipts import Note
from tests.server.app.playing import FULL, asked, play, seen
from tests.support.adapters import repeating
from tests.support.door import ANSWER, END, OPENED, TEXT, USER, Heard, door

# Answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_says_who_asked_who_answered_and_what_was_lost(stream: bool) -> None:
    heard = asked((FULL, TEXT, END), stream=stream)
    assert heard.status == 200
    assert heard.complete
    assert heard.headers["x-request-id"].startswith("req_")
    assert heard.headers["x-upstream-model"] == "claude-x"
    assert heard.headers["x-upstream-request-id"] == "req_up"
    assert heard.headers["x-ratelimit-remaining-requests"] == "9"
    assert heard.headers["x-usetool-warnings"] == "temperature_dropped:temperature"
    said = orjson.loads(heard.frames()[0][6:]) if stream else heard.json()
    assert said["id"] == heard.headers["x-request-id"].replace("req_", "chatcmpl-")
    assert said["model"] == "m"


def test_a_plain_answer_has_its_length_and_a_stream_may_not_be_buffered() -> None:
    plain, streamed = asked(ANSWER), asked(ANSWER, stream=True)
    assert int(plain.headers["content-length"]) == len(plain.body)
    assert plain.headers["content-type"] == "application/json"
    assert streamed.headers["x-accel-buffering"] == "no"
    assert streamed.headers["cache-control"] == "no-cache, no-transform"
    assert "content-length" not in streamed.headers


def test_an_answer_without_losses_warns_of_nothing() -> None:
    for stream in (False, True):
        headers = asked(ANSWER, stream=stream).headers
        assert not {"x-usetool-warnings", "x-upstream-model", "retry-after"} & set(headers)


def test_every_read_is_one_write() -> None:
    heard = asked((OPENED, TEXT), (TEXT, TEXT), (TEXT, END), stream=True)
    assert [len(message["body"].split(b"\n\n")) - 1 for message in heard.sent[1:]] == [2, 2, 3]


def test_usage_comes_as_a_chunk_where_it_is_asked_for() -> None:
    heard = asked(ANSWER, stream=True, stream_options={"include_usage": True})
    assert seen(heard.frames()) == ["role", "content", "finish", "usage", "done"]


def test_who_sends_functions_is_answered_in_their_words() -> None:
    calls = (ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}"), Finish("tool_calls", Usage(1, 1)))
    heard = asked((OPENED, *calls), functions=[{"name": "f"}])
    (choice,) = heard.json()["choices"]
    assert choice["finish_reason"] == "function_call"
    assert choice["message"]["function_call"] == {"name": "f", "arguments": "{}"}


def test_what_is_noted_late_is_in_a_plain_answers_header_and_on_a_streams_finish() -> None:
    noted = Noted((Note("arguments_invalid", "tool_calls", "no object"),))
    plain = asked((OPENED, TEXT, noted, END))
    assert plain.headers["x-usetool-warnings"] == "arguments_invalid:tool_calls"
    streamed = asked((OPENED, TEXT), (noted, END), stream=True)
    assert "x-usetool-warnings" not in streamed.headers
    finish = orjson.loads(streamed.frames()[-2][6:])
    assert finish["x_usetool"]["warnings"][0]["code"] == "arguments_invalid"


def test_what_the_parts_of_a_pipeline_used_is_a_header_of_a_plain_answer() -> None:
    usage = Usage(1, 2, parts=(("reasoner", Usage(3, 4)), ("answerer", None)))
    heard = asked((OPENED, TEXT, Finish("stop", usage)))
    assert orjson.loads(heard.headers["x-usetool-usage"]) == {
        "reasoner": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        "answerer": None,
    }
    assert "x-usetool-usage" not in asked(ANSWER).headers


def test_nothing_an_upstream_calls_itself_ends_a_header() -> None:
    opened = Opened((), Upstream("up", "gpt\r\nset-cookie: a=b"))
    headers = asked((opened, TEXT, END)).headers
    assert headers["x-upstream-model"] == "gpt??set-cookie: a=b"


def test_nothing_a_client_calls_a_field_ends_a_header() -> None:
    lost = Opened((Note("parameter_dropped", "a\r\nb: c", "unknown"),), Upstream("up"))
    assert asked((lost, TEXT, END)).headers["x-usetool-warnings"] == r"parameter_dropped:a\r\nb: c"


# Strictness ------------------------------------------------------------------------------------


def test_strict_refuses_what_the_door_itself_would_lose() -> None:
    lossy: Json = {"stream": True, "stream_options": {"include_obfuscation": True}}

    async def script(server: str) -> Heard:
        return await door(repeating(ANSWER), server).chat(**lossy)

    kind = play(lambda: script(""))
    assert kind.headers["x-usetool-warnings"] == (
        "parameter_dropped:stream_options.include_obfuscation"
    )
    strict = play(lambda: script("strict = true"))
    error = strict.error()
    assert (strict.status, error["code"]) == (400, "unsupported_parameter")
    assert error["param"] == "stream_options.include_obfuscation"
    assert "strict = false" in error["message"]


def test_a_history_is_repaired_where_the_config_says_so() -> None:
    orphan = {"role": "tool", "tool_call_id": "a", "content": "x"}

    async def script(server: str) -> Heard:
        return await door(repeating(ANSWER), server).chat(messages=[USER, orphan])

    assert play(lambda: script("")).error()["param"] == "messages[1].tool_call_id"
    repaired = play(lambda: script("history_repair = true"))
    assert repaired.headers["x-usetool-warnings"] == "result_dropped:messages[1]"
