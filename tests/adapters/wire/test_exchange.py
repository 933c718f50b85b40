"""One small language, spoken through every turn a conversation with an upstream can take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import Refused
from adapters.protocol import (
    Event,
    Finish,
    Noted,
    Opened,
    RequestContext,
    TextDelta,
    Upstream,
    Usage,
)
from adapters.receipts import Note, OwnCode
from adapters.wire.exchange import Listener, converse
from adapters.wire.framing import Framer, Ndjson, Sse
from adapters.wire.http import Link, Transport
from adapters.wire.reply import MAX_ANSWER
from tests.support.cuts import cut, cuts, each_byte, halves
from tests.support.fold import fold, run
from tests.support.language import NOTE, SAY, STOP, USAGE, State, exchange, lines, sse
from tests.support.upstreams.tape import tape

UP = Link("up", "", Transport())


def listen(pieces: Sequence[bytes], listener: Listener[State] | None = None) -> list[Event]:
    """Every event of an answer, the end of input included; raise what broke it."""
    listener = listener or Listener(UP, exchange(), {})
    events: list[Event] = []
    for piece in (*filter(None, pieces), b""):
        if not listener.over and listener.failure is None:
            events += listener.feed(piece)
    if listener.failure is not None:
        events.append(
            Noted((Note(OwnCode(listener.failure.code or ""), "", str(listener.failure)),))
        )
    return events


WHOLE = sse({"model": "m"}, {"note": "early"}, SAY, {"say": "沈阳"}, STOP, USAGE)
OPENED = Opened((NOTE, Note(OwnCode("early"), "f", "t")), Upstream("up", "m"))
EVENTS = [OPENED, TextDelta("a"), TextDelta("沈阳"), Finish("stop", Usage(3, 3))]


def failure(events: Sequence[Event]) -> str:
    """The code of what broke an answer that said nothing."""
    (event,) = events
    assert isinstance(event, Noted)
    return event.receipt[0].code


@pytest.mark.parametrize("pieces", [[WHOLE], each_byte(WHOLE), *halves(WHOLE)], ids=len)
def test_the_same_events_for_every_cut(pieces: list[bytes]) -> None:
    assert listen(pieces) == EVENTS


def test_nothing_opens_before_something_real_is_said() -> None:
    listener = Listener(UP, exchange(), {"request-id": "r"})
    for silent in (b": ping\n\n", sse({"model": "m"}), sse({"note": "early"}), b"data: "):
        assert listener.feed(silent) == ()
    opened, said = listener.feed(b'{"say":"a"}\n\n')
    assert said == TextDelta("a")
    assert isinstance(opened, Opened)
    assert opened.receipt == OPENED.receipt
    assert opened.upstream == Upstream("up", "m", "r", {"x-upstream-request-id": "r"})


def test_an_empty_answer_opens_with_its_end() -> None:
    assert listen([sse(STOP, USAGE)])[1:] == [Finish("stop", Usage(3, 3))]


def test_what_is_noted_after_the_opening_comes_where_it_was_learned() -> None:
    events = listen([sse(SAY), sse({"note": "late"}, STOP, USAGE)])
    assert events[2] == Noted((Note(OwnCode("late"), "f", "t"),))


def test_a_failure_comes_behind_what_was_said_in_the_same_piece() -> None:
    listener = Listener(UP, exchange(), {})
    assert listener.feed(sse(SAY, {"fail": "no"}, SAY))[1:] == (TextDelta("a"),)
    assert isinstance(listener.failure, Refused)


def test_a_failure_before_anything_was_said_opens_nothing() -> None:
    listener = Listener(UP, exchange(), {})
    assert listener.feed(sse({"note": "early"}, {"fail": "no"})) == ()
    assert isinstance(listener.failure, Refused)


def test_what_stands_behind_the_end_is_not_read() -> None:
    assert listen([WHOLE + sse({"fail": "no"}, SAY) + b"garbage"]) == EVENTS


def test_an_end_without_its_usage_is_an_end() -> None:
    assert listen([sse(SAY, STOP)])[2:] == [Finish("stop")]


@pytest.mark.parametrize("rest", [b'data: {"usa', b'data: {"usage":3', b"data", b"<html>"])
def test_half_a_frame_behind_the_reason_does_not_spoil_the_end(rest: bytes) -> None:
    assert listen([sse(SAY, STOP) + rest])[2:] == [Finish("stop")]


def test_a_last_frame_without_its_empty_line_counts() -> None:
    assert listen([WHOLE.rstrip()]) == EVENTS


@pytest.mark.parametrize("frames", [[], [SAY], [{"model": "m"}]])
def test_a_stream_without_a_reason_is_cut(frames: list[Any]) -> None:
    assert failure(listen([sse(*frames)])[-1:]) == "upstream_truncated"


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"", b'data: {"say":"a"', b"\x00\xff"])
def test_a_body_that_is_no_stream_is_cut(body: bytes) -> None:
    assert failure(listen([body])) == "upstream_truncated"


def test_a_frame_that_is_not_json_is_named() -> None:
    assert failure(listen([b"data: <html>\n\n"])) == "upstream_not_json"


@pytest.mark.parametrize("value", [{}, [], "x", 1, None])
def test_json_of_a_shape_the_language_does_not_have_is_no_crash(value: Any) -> None:
    assert failure(listen([sse({"misshapen": value})])) == "upstream_unreadable"


def test_a_language_that_forgets_to_finish_cannot_hang_or_succeed() -> None:
    forgetful = replace(exchange(), close=lambda state: ())
    assert failure(listen([], Listener(UP, forgetful, {}))) == "upstream_truncated"


ANSWER = json.dumps({"model": "m", "note": "early", "say": "沈阳", "stop": 1, "usage": 3}).encode()
FOLDED = [OPENED, TextDelta("沈阳"), Finish("stop", Usage(3, 3))]


@given(cuts())
def test_an_upstream_that_ignores_streaming_is_understood(places: list[int]) -> None:
    assert listen(cut(b" \n" + ANSWER, places)) == FOLDED


@given(cuts())
def test_a_plain_answer_is_the_same_events(places: list[int]) -> None:
    listener = Listener(UP, exchange(streamed=False), {})
    assert listen(cut(ANSWER, places), listener) == FOLDED


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "upstream_not_json"),
        (ANSWER[:-1], "upstream_not_json"),
        (b"<html>", "upstream_not_json"),
        (b"[1]", "upstream_unreadable"),
        (b"{}", "upstream_truncated"),
        (b'{"say":"a"}', "upstream_truncated"),
        (b'{"say":"a","fail":"no"}', "upstream_bad_request"),
    ],
)
def test_a_plain_answer_that_is_none_opens_nothing(body: bytes, code: str) -> None:
    assert failure(listen([body], Listener(UP, exchange(streamed=False), {}))) == code


def test_a_plain_answer_has_a_largest_size() -> None:
    listener = Listener(UP, exchange(streamed=False), {})
    piece = b" " * (1 << 20)
    for _ in range(MAX_ANSWER >> 20):
        listener.feed(piece)
    assert listener.failure is None
    events = listen([b" "], listener)
    assert failure(events) == "upstream_too_large"


@given(cuts(), st.sampled_from([(Sse, sse), (Ndjson, lines)]))
def test_converse_is_the_listener_on_a_link(
    places: list[int], language: tuple[type[Framer], Any]
) -> None:
    framing, write = language
    body = write({"model": "m"}, SAY, {"say": "沈阳"}, STOP, USAGE)
    answer = run(
        fold(converse(tape(cut(body, places)), exchange(framing), RequestContext(streamed=True)))
    )
    assert (answer.text, answer.reason, answer.error) == ("a沈阳", "stop", None)


def test_every_batch_has_something_in_it_and_is_one_read() -> None:
    async def batches() -> list[int]:
        pieces = [b": ping\n\n", sse(SAY, SAY), b": ping\n\n", sse(SAY), sse(STOP), sse(USAGE)]
        stream = converse(tape(pieces), exchange(), RequestContext(streamed=True))
        return [len(batch) async for batch in stream]

    assert run(batches()) == [3, 1, 1]
