"""Every recorded stream, cut after every byte and joined anew at every byte.

A cut stream is an error or the same answer, never an end that was not there; where the network cuts
and what keeps a connection alive changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from adapters.wire.framing import Ndjson, Sse
from tests.support.cuts import cut, each_byte
from tests.support.fold import Answer
from tests.support.recordings import Stream, streams

every_stream = pytest.mark.parametrize(
    "stream",
    [pytest.param(stream, id=f"{stream.upstream.name}-{stream.case}") for stream in streams()],
)
# In the middle of a long stream only some places are tried: it is hundreds of frames of one kind.
LONG, EDGE, STRIDE = 10_000, 250, 997


def places(body: bytes) -> Iterator[int]:
    for place in range(len(body) + 1):
        at_an_end = place < EDGE or place > len(body) - EDGE
        if len(body) < LONG or at_an_end or place % STRIDE == 0:
            yield place


def without_usage(answer: Answer) -> Answer:
    """What is left of an answer whose end came without its figures."""
    return replace(answer, usage=None, notes=[], error=None)


@every_stream
def test_a_cut_stream_is_an_error_or_the_same_answer(stream: Stream) -> None:
    body = stream.body
    whole, *ends = stream.read([[body], *([body[:place]] for place in places(body))])
    assert whole.error is None
    assert whole.reason
    broken = [answer for answer in ends if answer.error is not None]
    assert len(broken) > 1
    for answer in ends:
        if answer.error is None:
            assert without_usage(answer) == without_usage(whole)
            assert answer.usage in (None, whole.usage)
        else:
            assert answer.error.status == 502
            assert answer.reason == ""
            assert is_beginning(answer, whole)


def is_beginning(part: Answer, whole: Answer) -> bool:
    """Whether all that was said before the cut is what the whole answer begins with."""
    texts = zip(
        (part.text, part.reasoning, *(arguments for *_, arguments in part.calls)),
        (whole.text, whole.reasoning, *(arguments for *_, arguments in whole.calls)),
        strict=False,
    )
    told = [call[:3] for call in whole.calls[: len(part.calls)]]
    return [call[:3] for call in part.calls] == told and all(
        full.startswith(begun) for begun, full in texts
    )


@every_stream
def test_where_the_network_cuts_changes_nothing(stream: Stream) -> None:
    body = stream.body
    halves = [[body[:place], body[place:]] for place in range(0, len(body), 1 + len(body) // 100)]
    steps = [cut(body, range(start, len(body), step)) for step in (2, 7, 61) for start in (0, 1)]
    whole, *recut = stream.read([[body], each_byte(body), *steps, *halves])
    assert [answer for answer in recut if answer != whole] == []


def crlf(stream: Stream, body: bytes) -> bytes:
    return body.replace(b"\n", b"\r\n")


def keep_alive(stream: Stream, body: bytes) -> bytes:
    """What servers send while they think."""
    if b"data:" in body:
        return b": keep-alive\n\n" + body.replace(b"\n\n", b"\n\n: keep-alive\n\n:\n\n")
    return b"\n" + body.replace(b"\n", b"\n \n\n")


def one_kind(stream: Stream, body: bytes) -> bytes:
    """The standard lets an event have its lines in any order, an id and a time to retry."""
    return body.replace(b"data: ", b"id: 1\nretry: 10\ndata:") if b"data:" in body else body


NOISE: Mapping[str, Callable[[Stream, bytes], bytes]] = {
    "crlf": crlf,
    "keep-alive": keep_alive,
    "other lines": one_kind,
    "both": lambda stream, body: crlf(stream, keep_alive(stream, body)),
}


@every_stream
@pytest.mark.parametrize("noise", NOISE)
def test_noise_changes_nothing(stream: Stream, noise: str) -> None:
    noisy = NOISE[noise](stream, stream.body)
    some = range(1, len(noisy), max(1, len(noisy) // 20))
    pieces = [each_byte(noisy), [noisy], *([noisy[:place], noisy[place:]] for place in some)]
    whole, *answers = stream.read([[stream.body], *pieces])
    assert [answer for answer in answers if answer != whole] == []


@every_stream
def test_what_stands_behind_the_end_is_ignored(stream: Stream) -> None:
    junk = stream.body + stream.body + b"data: <html>\n\n{"
    whole, answer = stream.read([[stream.body], [junk]])
    assert answer == whole


def test_both_kinds_of_framing_are_recorded() -> None:
    kinds = {b"data:" in stream.body for stream in streams()}
    assert kinds == {True, False}, f"{Sse.__name__} and {Ndjson.__name__}"
