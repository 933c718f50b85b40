"""The whole app from outside: statuses, headers, errors, endings, and who may do what."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from starlette.routing import Route

from adapters.errors import (
    BadRequest,
    Busy,
    GatewayError,
    RateLimited,
    Refused,
    Truncated,
    Unavailable,
    from_words,
)
from adapters.protocol import (
    Event,
    Finish,
    Json,
    Note,
    Noted,
    Opened,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
    Usage,
)
from middleware.doors.door import PING
from middleware.server.app import CHAT
from middleware.wrappers.route import Absent
from tests.support.door import (
    ANSWER,
    END,
    OPENED,
    TEXT,
    USER,
    Door,
    Heard,
    Scripted,
    Step,
    Wait,
    chat,
    door,
)

FULL = Opened(
    (Note("temperature_dropped", "temperature", "the model has none"),),
    Upstream(
        "up",
        "claude-x",
        "req_up",
        {"x-upstream-request-id": "req_up", "x-ratelimit-remaining-requests": "9"},
    ),
)
SECRET = "sk-secret-key-of-a-client"
TINY = "heartbeat = 0.02"


def play(script: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(script(), 20))


def asked(*steps: Step, server: str = "", **fields: Any) -> Heard:
    """Ask a model with this script once."""

    async def script() -> Heard:
        return await door(Scripted(*steps), server).chat(**fields)

    heard: Heard = play(script)
    return heard


def seen(frames: list[bytes]) -> list[str]:
    """A stream in words: role, text, finish, error, done, ping."""
    return [_word(frame) for frame in frames]


def _word(frame: bytes) -> str:
    if frame + b"\n\n" == PING:
        return "ping"
    if frame == b"data: [DONE]":
        return "done"
    said = orjson.loads(frame.removeprefix(b"data: "))
    if "error" in said:
        return "error"
    if not said["choices"]:
        return "usage"
    choice = said["choices"][0]
    return "finish" if choice["finish_reason"] else next(iter(choice["delta"]))


def error_in(frame: bytes) -> Json:
    error: Json = orjson.loads(frame.removeprefix(b"data: "))["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


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


# Failures before the first event ---------------------------------------------------------------

# The error, its status, code, retry-after and x-should-retry.
FAILURES: tuple[tuple[GatewayError, int, str, str | None, str | None], ...] = (
    (BadRequest("no", param="stop"), 400, "invalid_value", None, None),
    (from_words(400, "prompt is too long", "up"), 400, "context_length_exceeded", None, None),
    (from_words(401, "", "up"), 502, "upstream_auth", None, "false"),
    (from_words(402, "", "up"), 503, "upstream_billing", None, "false"),
    (from_words(404, "", "up"), 404, "model_not_found", None, None),
    (from_words(409, "", "up"), 409, "conflict", None, "false"),
    (from_words(413, "", "up"), 413, "request_too_large", None, None),
    (RateLimited("slow", retry_after="7"), 429, "rate_limit_exceeded", "7", None),
    (from_words(429, "insufficient_quota", "up"), 429, "insufficient_quota", None, "false"),
    (from_words(500, "", "up"), 500, "upstream_error", None, None),
    (from_words(529, "", "up"), 503, "overloaded", "5", None),
    (Unavailable("off", retry_after="2", status=503), 503, "upstream_error", "2", None),
    (Refused("no"), 400, "upstream_bad_request", None, None),
    (Truncated("cut"), 502, "upstream_truncated", None, "false"),
    (Busy("full"), 503, "overloaded", "5", None),
)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("row", FAILURES, ids=[row[2] for row in FAILURES])
def test_a_failure_before_the_first_event_has_its_own_status(
    row: tuple[GatewayError, int, str, str | None, str | None], stream: bool
) -> None:
    error, status, code, wait, again = row
    heard = asked(error, stream=stream)
    assert heard.status == status
    said = heard.error()
    assert (said["code"], said["param"]) == (code, error.param)
    identity = heard.headers["x-request-id"]
    assert said["message"] == f"{error.message} (request id {identity})"
    assert heard.headers.get("retry-after") == wait
    assert heard.headers.get("x-should-retry") == again


def test_an_upstreams_own_words_about_a_failure_are_headers_too() -> None:
    error = RateLimited("slow")
    error.headers = {"x-upstream-request-id": "req_up", "x-ratelimit-reset-tokens": "6s"}
    headers = asked(error).headers
    assert headers["x-upstream-request-id"] == "req_up"
    assert headers["x-ratelimit-reset-tokens"] == "6s"


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_is_not_there_says_why(stream: bool) -> None:
    async def script() -> Heard:
        return await door(Absent("m", "the environment variable X is not set")).chat(stream=stream)

    heard = play(script)
    assert (heard.status, heard.error()["code"]) == (503, "model_unavailable")
    assert "X is not set" in heard.error()["message"]
    assert heard.headers["x-should-retry"] == "false"
    assert "retry-after" not in heard.headers


def test_an_unknown_model_is_a_404_that_suggests_one() -> None:
    async def script() -> Heard:
        return await door({"sonnet": Scripted(ANSWER)}).chat("sonet")

    heard = play(script)
    assert heard.status == 404
    assert heard.error() == heard.error() | {"code": "model_not_found", "param": "model"}


LOST = Note("temperature_dropped", "temperature", "the model has none")
DOOR_LOST: Json = {"stream_options": {"include_obfuscation": True}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "error", [RateLimited("slow"), Refused("no"), Truncated("cut"), ZeroDivisionError("ours")]
)
def test_a_failure_keeps_the_receipt_of_what_was_sent(error: Exception, stream: bool) -> None:
    async def script() -> None:
        there = door(Scripted(error, receipt=(LOST, LOST)))
        fields = {"stream": True, **DOOR_LOST} if stream else {}
        heard = await there.chat(**fields)
        told = ["temperature_dropped:temperature"]
        if stream:
            told.insert(0, "parameter_dropped:stream_options.include_obfuscation")
        assert heard.headers["x-usetool-warnings"] == ", ".join(told)
        (line,) = there.lines()
        assert line["warnings"][-1] == "temperature_dropped: temperature: the model has none"
        (record,) = there.app.chat.records.of(None)
        assert record.visit.receipt[-1] == LOST
        assert len(record.visit.receipt) == len(told)

    play(script)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_left_leaves_the_receipt_in_the_log(stream: bool) -> None:
    async def script() -> None:
        wait, leaves = Wait(), asyncio.Event()
        there = door(Scripted(wait, receipt=(LOST,)))
        _, task = there.begin(chat(stream=stream), leaves)
        await wait.until_reached()
        leaves.set()
        await task
        (line,) = there.lines()
        assert len(line["warnings"]) == 1

    play(script)


def test_what_cannot_be_planned_has_no_receipt() -> None:
    there = asked(BadRequest("no"))
    assert "x-usetool-warnings" not in there.headers


def test_a_plain_answer_that_breaks_keeps_what_it_told_before() -> None:
    noted = Noted((Note("arguments_invalid", "tool_calls", "no object"),))
    heard = asked((FULL, TEXT, noted), Truncated("cut"))
    assert heard.status == 502
    assert heard.headers["x-usetool-warnings"] == (
        "temperature_dropped:temperature, arguments_invalid:tool_calls"
    )


def test_an_error_frame_tells_what_no_header_could() -> None:
    noted = Noted((Note("arguments_invalid", "tool_calls", "no object"),))

    async def behind_a_ping() -> Heard:
        wait = Wait()
        heard, task = door(Scripted(wait, Truncated("cut"), receipt=(LOST,)), TINY).begin(
            chat(stream=True)
        )
        await heard.until(2)
        wait.over.set()
        await task
        return heard

    for heard, codes in (
        (play(behind_a_ping), ["temperature_dropped"]),
        (asked((FULL, TEXT), (noted,), Truncated("cut"), stream=True), ["arguments_invalid"]),
    ):
        said = orjson.loads(heard.frames()[-1][6:])
        assert [note["code"] for note in said["x_usetool"]["warnings"]] == codes
    heard = asked((FULL, TEXT), Truncated("cut"), stream=True)
    assert "x_usetool" not in orjson.loads(heard.frames()[-1][6:])


# Failures after it -----------------------------------------------------------------------------

BEGINNINGS: tuple[tuple[Step, ...], ...] = (
    ((OPENED, TEXT),),
    ((OPENED, TEXT), (TEXT,)),
    ((OPENED, ToolCallStart(0, "a", "f")), (ToolCallDelta(0, '{"a'),)),
)
BREAKS = (Truncated("it broke off"), ValueError("unforeseen"), RateLimited("slow"))


@pytest.mark.parametrize("steps", BEGINNINGS, ids=range(len(BEGINNINGS)))
@pytest.mark.parametrize("error", BREAKS, ids=lambda error: type(error).__name__)
def test_a_stream_that_fails_ends_with_one_error_and_nothing_else(
    steps: tuple[Step, ...], error: Exception
) -> None:
    heard = asked(*steps, error, stream=True)
    assert (heard.status, heard.complete) == (200, True)
    words = seen(heard.frames())
    assert words.count("error") == 1
    assert words[-1] == "error"
    assert not {"finish", "done", "usage"} & set(words)
    assert heard.headers["x-request-id"] in error_in(heard.frames()[-1])["message"]


def test_a_stream_without_its_end_is_broken() -> None:
    heard = asked((OPENED, TEXT), stream=True)
    assert seen(heard.frames()) == ["role", "content", "error"]
    assert error_in(heard.frames()[-1])["code"] == "upstream_truncated"
    assert asked((OPENED, TEXT)).error()["code"] == "upstream_truncated"
    assert asked((OPENED, TEXT)).status == 502


def test_a_plain_answer_that_fails_on_its_way_is_that_failure() -> None:
    heard = asked((OPENED, TEXT), Truncated("it broke off"))
    assert (heard.status, heard.error()["code"]) == (502, "upstream_truncated")


def test_what_fails_behind_the_end_changes_nothing() -> None:
    heard = asked(ANSWER, Truncated("late"), stream=True)
    assert seen(heard.frames()) == ["role", "content", "finish", "done"]
    assert heard.complete


@pytest.mark.parametrize("stream", [False, True])
def test_what_nobody_foresaw_is_a_500_with_its_traceback_in_the_log_alone(
    stream: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    heard = asked(ZeroDivisionError("the inner secret"), stream=stream)
    assert (heard.status, heard.error()["code"]) == (500, "internal_error")
    assert "inner secret" not in heard.body.decode()
    told = capsys.readouterr().err
    assert "ZeroDivisionError: the inner secret" in told
    assert heard.headers["x-request-id"] in told


def test_what_nobody_foresaw_elsewhere_is_a_500_too() -> None:
    async def script() -> Heard:
        there = door()
        served = there.app.chat.served
        # The type says it cannot be; that is what nobody foresees.
        there.app.use(replace(served, models=None))  # type: ignore[arg-type]  # broken on purpose
        heard, task = there.begin(b"", method="GET", path="/v1/models")
        with pytest.raises(AttributeError):  # for the server to log
            await task
        return heard

    heard = play(script)
    assert (heard.status, heard.error()["code"]) == (500, "internal_error")


# Heartbeats ------------------------------------------------------------------------------------


def test_a_silent_upstream_is_covered_with_pings_before_the_first_event() -> None:
    async def script() -> None:
        wait = Wait()
        there = door(Scripted(wait, (FULL, TEXT, END)), TINY)
        heard, task = there.begin(chat(stream=True))
        await heard.until(4)
        wait.over.set()
        await task
        words = seen(heard.frames())
        assert words[:3] == ["ping"] * 3
        assert [word for word in words if word != "ping"] == ["role", "content", "finish", "done"]
        # Its headers are gone; what they would have said is on the finish chunk.
        assert set(heard.headers) & {"x-upstream-model", "x-usetool-warnings"} == set()
        finish = orjson.loads(heard.frames()[-2][6:])
        assert [note["code"] for note in finish["x_usetool"]["warnings"]] == ["temperature_dropped"]

    play(script)


def test_a_failure_behind_a_ping_is_an_error_frame() -> None:
    async def script() -> None:
        wait = Wait()
        there = door(Scripted(wait, RateLimited("slow")), TINY)
        heard, task = there.begin(chat(stream=True))
        await heard.until(2)
        wait.over.set()
        await task
        assert heard.status == 200
        assert seen(heard.frames())[-1] == "error"
        assert set(seen(heard.frames())[:-1]) == {"ping"}
        (line,) = there.lines()
        assert (line["status"], line["error"]["code"]) == (200, "rate_limit_exceeded")

    play(script)


def test_a_silent_upstream_is_covered_with_pings_after_it() -> None:
    async def script() -> None:
        wait = Wait()
        heard, task = door(Scripted((OPENED, TEXT), wait, (END,)), TINY).begin(chat(stream=True))
        await heard.until(5)
        wait.over.set()
        await task
        words = seen(heard.frames())
        assert (words[:2], words[-2:]) == (["role", "content"], ["finish", "done"])
        assert set(words[2:-2]) == {"ping"}

    play(script)


def test_a_plain_answer_is_never_pinged() -> None:
    async def script() -> None:
        wait = Wait()
        heard, task = door(Scripted(wait, ANSWER), TINY).begin(chat())
        await wait.until_reached()
        await asyncio.sleep(0.1)
        assert heard.sent == []
        wait.over.set()
        await task
        assert heard.status == 200

    play(script)


# Clients that leave, and a server that stops ----------------------------------------------------

MOMENTS: dict[str, tuple[bool, tuple[Step, ...]]] = {
    "plain": (False, ()),
    "plain, in the middle": (False, ((OPENED, TEXT),)),
    "before the first event": (True, ()),
    "in the middle": (True, ((OPENED, TEXT),)),
}


@pytest.mark.parametrize(("stream", "steps"), MOMENTS.values(), ids=MOMENTS)
def test_a_client_that_leaves_cancels_the_upstream(stream: bool, steps: tuple[Step, ...]) -> None:
    async def script() -> None:
        wait, leaves = Wait(), asyncio.Event()
        model = Scripted(*steps, wait)
        there = door(model)
        heard, task = there.begin(chat(stream=stream), leaves)
        await wait.until_reached()
        before = list(heard.sent)
        leaves.set()
        await asyncio.wait_for(model.left.wait(), 1)
        await task
        assert heard.sent == before
        (line,) = there.lines()
        assert line["client_gone"] is True
        assert line["status"] == (200 if steps and stream else 499)
        assert "error" not in line

    play(script)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_the_end_of_an_answer_is_not_its_client_leaving(stream: bool, fails: bool) -> None:
    async def script() -> None:
        early, late = Wait(), Wait()
        steps: tuple[Step, ...] = ((OPENED, TEXT), early)
        steps += (Truncated("cut"),) if fails else ((END,), late)
        there = door(Scripted(*steps))
        heard, task = there.begin(chat(stream=stream))
        await early.until_reached()
        await asyncio.sleep(0.05)  # until its client is watched
        early.over.set()
        if not fails:
            await late.until_reached()
            await asyncio.sleep(0.01)
            late.over.set()
        await task
        assert heard.complete
        (line,) = there.lines()
        assert "client_gone" not in line
        assert ("error" in line) is fails

    play(script)


def test_a_client_that_left_is_not_pinged() -> None:
    async def script() -> None:
        leaves, wait = asyncio.Event(), Wait()
        heard, task = door(Scripted((OPENED, TEXT), wait), TINY).begin(chat(stream=True), leaves)
        await wait.until_reached()
        leaves.set()
        await task
        count = len(heard.sent)
        await asyncio.sleep(0.1)
        assert len(heard.sent) == count

    play(script)


@pytest.mark.parametrize(("stream", "steps"), MOMENTS.values(), ids=MOMENTS)
def test_a_server_that_stops_says_so(stream: bool, steps: tuple[Step, ...]) -> None:
    async def script() -> None:
        wait = Wait()
        model = Scripted(*steps, wait)
        heard, task = door(model).begin(chat(stream=stream))
        await wait.until_reached()
        task.cancel()
        await task
        assert model.left.is_set()
        assert heard.complete
        if stream and steps:
            assert seen(heard.frames()) == ["role", "content", "error"]
            error = error_in(heard.frames()[-1])
        else:
            assert heard.status == 503
            assert heard.headers["retry-after"] == "5"
            assert "x-should-retry" not in heard.headers
            error = heard.error()
        assert "shutting down. Send the request again." in error["message"]

    play(script)


# Who may ask, and how much ---------------------------------------------------------------------

KEYS = 'keys = ["K"]'
KNOCKS: tuple[tuple[list[tuple[str, str]], int], ...] = (
    ([("authorization", "Bearer K")], 200),
    ([("x-api-key", "K")], 200),
    ([("api-key", "K")], 200),
    ([], 401),
    ([("authorization", f"Bearer {SECRET}")], 401),
    ([("authorization", "Bearer K"), ("x-api-key", "other")], 401),
)


@pytest.mark.parametrize(("headers", "status"), KNOCKS)
def test_only_keys_open(headers: list[tuple[str, str]], status: int) -> None:
    async def script() -> None:
        model = Scripted(ANSWER)
        there = door(model, KEYS)
        for how in ({}, {"method": "GET", "path": "/v1/models"}):
            heard = await there.ask(chat(), headers=headers, **how)
            assert heard.status == status
            if status == 401:
                assert heard.error()["code"] == "invalid_api_key"
                assert SECRET not in heard.body.decode()
        assert len(model.asked) == (status == 200)

    play(script)


def test_health_is_open_to_all() -> None:
    async def script() -> None:
        there = door(server=KEYS)
        for path, status in (("/healthz", "ok"), ("/readyz", "ready")):
            heard = await there.ask(method="GET", path=path)
            assert (heard.status, heard.json()) == (200, {"status": status})

    play(script)


def test_what_is_too_much_at_once_is_refused_at_once_and_health_is_not() -> None:
    async def script() -> None:
        wait = Wait()
        there = door(Scripted(wait, ANSWER), "max_concurrent = 1")
        first, task = there.begin(chat())
        await wait.until_reached()
        heard = await there.ask(b"not even read")
        assert (heard.status, heard.error()["code"]) == (503, "overloaded")
        assert heard.headers["retry-after"] == "1"
        assert "x-should-retry" not in heard.headers
        assert (await there.ask(method="GET", path="/healthz")).status == 200
        wait.over.set()
        await task
        assert first.status == 200
        assert (await there.chat()).status == 200

    play(script)


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"x" * 101, [], 413, "request_too_large"),
        (b"", [("content-length", "101"), ("expect", "100-continue")], 413, "request_too_large"),
        (b"x", [("content-encoding", "gzip")], 415, "invalid_value"),
        (b"x", [("a", "b")] * 101, 431, "invalid_value"),
        (b"{", [], 400, "invalid_json"),
    ],
)
def test_what_is_too_large_or_unreadable_is_refused(
    body: bytes, headers: list[tuple[str, str]], status: int, code: str
) -> None:
    async def script() -> Heard:
        return await door(Scripted(ANSWER), "max_body = 100").ask(body, headers=headers)

    heard = play(script)
    assert (heard.status, heard.error()["code"]) == (status, code)


# Paths -----------------------------------------------------------------------------------------

ROUTES = {
    (CHAT, "POST"),
    ("/v1/models", "GET"),
    ("/v1/models/{model:path}", "GET"),
    ("/v1/embeddings", "POST"),
    ("/v1/x_usetool/last", "GET"),
    ("/v1/x_usetool/last/{identity}", "GET"),
    ("/healthz", "GET"),
    ("/readyz", "GET"),
}


def test_these_are_all_routes() -> None:
    found = set()
    for route in play(_door).app.app.routes:
        assert isinstance(route, Route)
        found |= {(route.path, method) for method in (route.methods or set()) - {"HEAD"}}
    assert found == ROUTES


async def _door() -> Door:
    return door()


ELSEWHERE: tuple[tuple[str, str, int, str, str], ...] = (
    ("GET", "/", 404, "unknown_url", "POST /v1/chat/completions"),
    ("POST", "/v1/nope", 404, "unknown_url", "Unknown request URL: POST /v1/nope"),
    ("GET", "/openapi.json", 404, "unknown_url", "Unknown request URL"),
    ("GET", "/docs", 404, "unknown_url", "Unknown request URL"),
    ("POST", "/chat/completions", 404, "unknown_url", "must end in /v1"),
    ("POST", "/v1/chat/completions/", 404, "unknown_url", "The path is /v1/chat/completions"),
    ("POST", "/v1/v1/chat/completions", 404, "unknown_url", "must end in /v1"),
    ("POST", "//v1/chat/completions", 404, "unknown_url", "must end in /v1"),
    ("GET", "/v1/../etc/passwd", 404, "unknown_url", "Unknown request URL"),
    ("GET", CHAT, 405, "method_not_allowed", "Method GET is not allowed"),
    ("PUT", CHAT, 405, "method_not_allowed", "Method PUT"),
    ("BREW", CHAT, 405, "method_not_allowed", "Method BREW"),
    ("POST", "/v1/models", 405, "method_not_allowed", "Method POST"),
    ("DELETE", "/v1/models/demo", 405, "method_not_allowed", "Method DELETE"),
    ("POST", "/healthz", 405, "method_not_allowed", "Method POST"),
    ("GET", "/v1/models/none", 404, "model_not_found", "'none' does not exist"),
    ("GET", "/v1/models/", 404, "model_not_found", "does not exist"),
    ("POST", "/v1/responses", 404, "unsupported_api", "use_responses_api=False"),
    ("POST", "/v1/responses", 404, "unsupported_api", "Codex speaks only the Responses API and"),
    ("POST", "/responses", 404, "unsupported_api", "client.chat.completions"),
    ("GET", "/v1/responses/resp_1", 404, "unsupported_api", "not the Responses API"),
    ("POST", "/v1/responses/compact", 404, "unsupported_api", "not the Responses API"),
    ("POST", "/v1/messages", 400, "unsupported_api", "Claude Code cannot use this version"),
    ("POST", "/v1/messages", 400, "unsupported_api", "'OpenAI compatible' provider"),
    ("POST", "/v1/v1/messages", 400, "unsupported_api", "opencode, Cline, Continue"),
    ("POST", "/v1/messages/count_tokens", 400, "unsupported_api", "not the Anthropic Messages"),
    ("GET", "/api/tags", 404, "unsupported_api", "not Ollama's API. Choose the client's 'OpenAI'"),
    ("POST", "/api/chat", 404, "unsupported_api", "this server's /v1 as its base URL"),
    ("POST", "/v1/api/generate", 404, "unsupported_api", "not Ollama's API"),
    ("GET", "/api/version", 404, "unsupported_api", "cannot use this version of the gateway"),
    ("GET", "/apis", 404, "unknown_url", "Unknown request URL"),
    ("GET", "/v1/message", 404, "unknown_url", "Unknown request URL"),
    ("POST", "/v1/completions", 404, "unsupported_api", "POST /v1/chat/completions"),
)


@pytest.mark.parametrize(("method", "path", "status", "code", "words"), ELSEWHERE)
def test_every_other_address_answers_in_openais_shape_and_says_where_to_go(
    method: str, path: str, status: int, code: str, words: str
) -> None:
    async def script() -> Heard:
        return await door().ask(method=method, path=path)

    heard = play(script)
    assert (heard.status, heard.error()["code"]) == (status, code)
    assert words in heard.error()["message"]
    assert heard.headers["x-request-id"] in heard.error()["message"]
    assert "location" not in heard.headers
    assert ("allow" in heard.headers) is (status == 405)


@pytest.mark.parametrize(("method", "path", "status", "code", "words"), ELSEWHERE)
def test_every_other_address_is_logged_and_kept(
    method: str, path: str, status: int, code: str, words: str
) -> None:
    async def script() -> None:
        there = door()
        await there.ask(b"private", method=method, path=path)
        (line,) = there.lines()
        told = (line["method"], line["path"], line["status"], line["error"]["code"])
        assert told == (method, path, status, code)
        (record,) = there.app.chat.records.of(None)
        assert (record.visit.path, record.visit.status, record.body) == (path, status, b"")

    play(script)


def test_a_request_without_the_right_key_is_logged_and_kept_without_its_body() -> None:
    async def script() -> None:
        there = door(server='keys = ["K"]')
        for how in ({}, {"path": "/v1/embeddings"}, {"method": "GET", "path": "/v1/models"}):
            heard = await there.ask(chat(), **how)
            assert heard.status == 401
        assert [line["error"]["code"] for line in there.lines()] == ["invalid_api_key"] * 3
        records = list(there.app.chat.records.of(None))
        assert [record.body for record in records] == [b""] * 3
        assert {record.visit.path for record in records} == {CHAT, "/v1/embeddings", "/v1/models"}

    play(script)


def test_what_strangers_ask_drives_nothing_out_and_looking_leaves_no_trace() -> None:
    async def script() -> None:
        there = door(Scripted(ANSWER), 'keys = ["K"]\nkeep_last = 2')
        key = [("authorization", "Bearer K")]
        for _ in range(2):
            await there.ask(chat(), headers=key)
        for number in range(200):
            await there.ask(b"x" * 10_000)
            await there.ask(path="/\x1b[2J" + "a" * 10_000 + str(number))
            await there.ask(method="GET", path="/v1/x_usetool/last")
        heard = await there.ask(method="GET", path="/v1/x_usetool/last", headers=key)
        statuses = [one["status"] for one in heard.json()["data"]]
        assert sorted(statuses[-2:]) == [200, 200]
        assert set(statuses[:-2]) == {401, 404}
        assert len(statuses) < 50
        assert len(heard.body) < 20_000
        assert b"\x1b" not in there.log.getvalue().encode() + heard.body
        assert b"u001b" not in heard.body

    play(script)


def test_a_long_path_is_not_repeated_whole() -> None:
    async def script() -> Heard:
        return await door().ask(method="GET", path="/" + "a" * 70_000)

    assert len(play(script).body) < 1000


def test_every_answer_has_an_id() -> None:
    async def script() -> None:
        there = door()
        for path in ("/v1/models", "/v1/models/demo", "/healthz", "/v1/nope"):
            heard = await there.ask(method="GET", path=path)
            assert heard.headers["x-request-id"].startswith("req_")

    play(script)


# Strictness ------------------------------------------------------------------------------------


def test_strict_refuses_what_the_door_itself_would_lose() -> None:
    lossy: Json = {"stream": True, "stream_options": {"include_obfuscation": True}}

    async def script(server: str) -> Heard:
        return await door(Scripted(ANSWER), server).chat(**lossy)

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
        return await door(Scripted(ANSWER), server).chat(messages=[USER, orphan])

    assert play(lambda: script("")).error()["param"] == "messages[1].tool_call_id"
    repaired = play(lambda: script("history_repair = true"))
    assert repaired.headers["x-usetool-warnings"] == "result_dropped:messages[1]"


# What is written down --------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_the_log_tells_of_an_answer(stream: bool) -> None:
    async def script() -> None:
        there = door(Scripted((FULL, TEXT, END)))
        await there.chat(stream=stream)
        (line,) = there.lines()
        told = {name: line[name] for name in ("model", "status", "stream", "finish", "usage")}
        assert told == {
            "model": "m",
            "status": 200,
            "stream": stream,
            "finish": "stop",
            "usage": [1, 2],
        }
        assert (line["upstream"], line["upstream_model"]) == ("up", "claude-x")
        assert line["warnings"] == ["temperature_dropped: temperature: the model has none"]

    play(script)


WORDS = "my medical history"
TELLING: tuple[tuple[tuple[Event, ...] | GatewayError, Json], ...] = (
    ((OPENED, TextDelta(f"about {WORDS}"), END), {}),
    ((OPENED, ToolCallStart(0, "a", "f"), ToolCallDelta(0, f'{{"a":"{WORDS}"}}'), END), {}),
    (Truncated("cut"), {}),
    (ANSWER, {"temperature": WORDS}),
    (ANSWER, {"messages": WORDS}),
    (ANSWER, {"messages": [{"role": "user", "content": {"text": WORDS}}]}),
)


@pytest.mark.parametrize(("step", "fields"), TELLING, ids=range(len(TELLING)))
@pytest.mark.parametrize("stream", [False, True])
def test_the_log_has_a_line_for_every_request_without_prompt_answer_or_key(
    step: tuple[Event, ...] | GatewayError, fields: Json, stream: bool
) -> None:
    async def script() -> None:
        there = door(Scripted(step), f'keys = ["{SECRET}"]')
        said = {"messages": [{"role": "user", "content": WORDS}], "stream": stream, **fields}
        await there.ask(chat(**said), headers=[("authorization", f"Bearer {SECRET}")])
        text = there.log.getvalue()
        (line,) = there.lines()
        assert line["id"].startswith("req_")
        text = there.log.getvalue()
        assert WORDS not in text
        assert SECRET not in text

    play(script)
