"""Failures before the first event and after it, each with its own status or error frame."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import orjson
import pytest

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
from adapters.protocol import ChatRequest, Json, Noted, Planned, ToolCallDelta, ToolCallStart
from adapters.receipts import Note
from middleware.wrappers.calls import UpstreamFull, UpstreamOpen
from middleware.wrappers.route import Absent
from tests.server.app.playing import FULL, TINY, asked, error_in, play, seen
from tests.support.adapters import FakeAdapter, Step, Wait, repeating
from tests.support.door import ANSWER, OPENED, TEXT, Heard, chat, door

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
    (UpstreamFull("full", retry_after="1"), 503, "overloaded", "1", None),
    (UpstreamOpen("open", retry_after="9"), 503, "upstream_unavailable", "9", None),
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
        return await door({"sonnet": repeating(ANSWER)}).chat("sonet")

    heard = play(script)
    assert heard.status == 404
    assert heard.error() == heard.error() | {"code": "model_not_found", "param": "model"}


LOST = Note("temperature_dropped", "temperature", "the model has none")
DOOR_LOST: Json = {"stream_options": {"include_obfuscation": True}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("error", [RateLimited("slow"), Refused("no"), Truncated("cut")])
def test_a_failure_keeps_the_receipt_of_what_was_sent(error: Exception, stream: bool) -> None:
    async def script() -> None:
        there = door(repeating(error, receipt=(LOST, LOST)))
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
        there = door(repeating(wait, receipt=(LOST,)))
        _, task = there.begin(chat(stream=stream), leaves)
        await wait.until_reached()
        leaves.set()
        await task
        (line,) = there.lines()
        assert len(line["warnings"]) == 1

    play(script)


class Broken(FakeAdapter):
    """A mistake of ours comes up wherever a request is written."""

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        raise ZeroDivisionError("once more")


def test_a_mistake_of_ours_is_not_made_again_for_a_receipt(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def script() -> Heard:
        return await door(Broken([ZeroDivisionError("ours")])).chat()

    assert play(script).status == 500
    told = capsys.readouterr().err
    assert "ours" in told
    assert "once more" not in told


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
        heard, task = door(repeating(wait, Truncated("cut"), receipt=(LOST,)), TINY).begin(
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
        served = there.app.chat.runtime
        # The type says it cannot be; that is what nobody foresees.
        there.app.use(replace(served, models=None))  # type: ignore[arg-type]  # broken on purpose
        heard, task = there.begin(b"", method="GET", path="/v1/models")
        with pytest.raises(AttributeError):  # for the server to log
            await task
        return heard

    heard = play(script)
    assert (heard.status, heard.error()["code"]) == (500, "internal_error")
