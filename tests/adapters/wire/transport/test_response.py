"""What the bytes of an answer mean, however they are cut; without a network."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.wire.failures import CutShort, NotHttp, Unanswered
from adapters.wire.transport.response import MAX_HEAD, MAX_HEADERS, Incoming, NotedIncoming

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
TWO = CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
PLAIN = OK + b"content-length: 5\r\n\r\nabcde"


def heard(*pieces: bytes, closed: bool | None = None) -> tuple[Incoming, bytes]:
    """An answer of these reads, then a clean end or a broken one, if any; and its body."""
    incoming = Incoming()
    for piece in pieces:
        incoming.feed(piece)
    if closed is not None:
        incoming.close(clean=closed)
    body = b""
    while piece := incoming.take():
        body += piece
    return incoming, body


@pytest.mark.parametrize(
    ("sent", "body", "reusable"),
    [
        (PLAIN, b"abcde", True),
        (TWO, b"abcde", True),
        (TWO.replace(b"3\r", b"3;name=value\r"), b"abcde", True),
        (TWO.replace(b"3\r", b"0003\r"), b"abcde", True),
        (TWO.replace(b"3\r", b"3  \r"), b"abcde", True),  # as nginx's chunked modules once did
        (TWO[:-2] + b"trailer: 1\r\nother: 2\r\n\r\n", b"abcde", True),
        (PLAIN.replace(b"\r\n", b"\n"), b"abcde", True),
        (PLAIN.replace(b"1.1", b"1.0"), b"abcde", False),
        (
            PLAIN.replace(b"1.1", b"1.0").replace(b"OK\r\n", b"OK\r\nconnection: keep-alive\r\n"),
            b"abcde",
            True,
        ),
        (PLAIN.replace(b"OK\r\n", b"OK\r\nconnection: close\r\n"), b"abcde", False),
        (OK + b"content-length: 0\r\n\r\n", b"", True),
        (b"HTTP/1.1 204 No\r\n\r\n", b"", True),
        (b"HTTP/1.1 304 No\r\ncontent-length: 9\r\n\r\n", b"", True),
        (b"HTTP/1.1 100 Go on\r\n\r\n" + PLAIN, b"abcde", True),
        (b"HTTP/1.1 103 Hints\r\nlink: a\r\n\r\n" * 3 + TWO, b"abcde", True),
        (OK + b"transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", b"", True),
        # More than was said: what follows is nobody's answer.
        (PLAIN + b"more", b"abcde", False),
        (PLAIN + PLAIN, b"abcde", False),
        (TWO + b"HTTP/1.1 200 OK\r\n", b"abcde", False),
    ],
)
def test_an_answer_that_is_whole(sent: bytes, body: bytes, reusable: bool) -> None:
    incoming, found = heard(sent)
    assert (incoming.ready, incoming.over, incoming.failure) == (True, True, None)
    assert (found, incoming.reusable) == (body, reusable)


@pytest.mark.parametrize("sent", [OK + b"\r\nabcde", OK + b"transfer-encoding: gzip\r\n\r\nabcde"])
def test_without_a_length_the_end_of_the_connection_is_the_end(sent: bytes) -> None:
    incoming, body = heard(sent, closed=True)
    assert (incoming.over, body, incoming.reusable) == (True, b"abcde", False)
    incoming, body = heard(sent, closed=False)
    assert (incoming.over, body) == (False, b"abcde")
    assert isinstance(incoming.failure, CutShort)


@pytest.mark.parametrize(
    "body",
    [
        b"-1\r\nabc\r\n0\r\n\r\n",
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b"what?\r\n",
        b"fffffffffffffffff\r\nabc\r\n",
        b"3\r\nabcde\r\n0\r\n\r\n",
        b"\r\n3\r\nabc\r\n0\r\n\r\n",
    ],
)
def test_a_chunk_that_is_none_breaks_the_answer(body: bytes) -> None:
    incoming, found = heard(CHUNKED + b"2\r\nok\r\n" + body)
    assert isinstance(incoming.failure, CutShort)
    assert found.startswith(b"ok")
    assert (incoming.over, incoming.reusable) == (False, False)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01 hello\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nabc",
        b"HTTP/1.1 101 Switching\r\n\r\nabc",
        # Two lengths: somebody on the way may have read the other one.
        OK + b"content-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
        OK + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        OK + b"content-length: -3\r\n\r\n",
        # An interim answer has no body, whatever it says.
        b"HTTP/1.1 103 Hints\r\ncontent-length: 3\r\n\r\nxyz" + PLAIN,
        b"HTTP/1.1 103 Hints\r\n" + TWO.partition(b"\r\n")[2] + PLAIN,
        OK + b"content-length: 99999999999999999999999\r\n\r\n",
        OK + b"name: a\x00b\r\n\r\n",
        OK + b"x: y\r\n" * (MAX_HEADERS + 1) + b"\r\n",
        OK + b"x: " + b"a" * MAX_HEAD + b"\r\n\r\n",
        b"HTTP/1.1 100 Go on\r\n\r\n" * MAX_HEAD + PLAIN,
    ],
)
def test_what_is_no_answer(sent: bytes) -> None:
    incoming, _ = heard(*(sent[at : at + 4096] for at in range(0, len(sent), 4096)))
    assert isinstance(incoming.failure, NotHttp)
    assert (incoming.ready, incoming.reusable) == (False, False)


@pytest.mark.parametrize(
    ("begun", "flood"),
    [
        (OK + b"x: ", b"a" * 1000),
        (CHUNKED + b"1;", b"a" * 1000),
        (CHUNKED + b"1\r\na\r\n0\r\nx: ", b"a" * 1000),
        (CHUNKED + b"1\r\na\r\n0\r\n", b"x: y\r\n" * 100),
    ],
)
def test_what_brings_nothing_has_an_end(begun: bytes, flood: bytes) -> None:
    incoming = Incoming()
    incoming.feed(begun)
    for _ in range(MAX_HEAD // len(flood) + 1):
        assert incoming.failure is None
        incoming.feed(flood)
    assert incoming.failure is not None


def test_a_connection_that_ends_early_breaks_the_answer_wherever_that_is() -> None:
    for whole in (PLAIN, TWO):
        head = whole.index(b"\r\n\r\n") + 4
        for at in range(len(whole)):
            incoming, body = heard(whole[:at], closed=True)
            assert isinstance(incoming.failure, CutShort if at >= head else Unanswered)
            assert b"abcde".startswith(body)


def test_only_before_the_first_byte_nothing_was_heard() -> None:
    for sent, was_heard in ((b"", False), (b"H", True), (OK, True)):
        failure = heard(sent, closed=False)[0].failure
        assert isinstance(failure, Unanswered)
        assert failure.heard == was_heard


def test_headers_are_found_in_small_letters_and_the_first_of_a_name_counts() -> None:
    sent = (
        OK + b"Request-ID: r \t\r\nRETRY-AFTER:1\r\nretry-after: 2\r\nx: \xe6\xb2\x88\xff\r\n\r\n"
    )
    headers = heard(sent)[0].headers
    assert headers == {"request-id": "r", "retry-after": "1", "x": "沈\udcff"}
    hints = b"HTTP/1.1 103 Hints\r\nretry-after: 9\r\n\r\n"
    for sent in (hints + PLAIN, TWO[:-2] + b"retry-after: 9\r\n\r\n"):
        assert "retry-after" not in heard(sent)[0].headers


def test_what_is_still_to_be_inflated_is_held() -> None:
    incoming, bomb = Incoming(), gzip.compress(bytes(64 << 20))
    incoming.feed(OK + b"content-encoding: gzip\r\n\r\n")
    for _ in range(3):
        incoming.feed(bomb)
        assert incoming.take()
    assert incoming.held > 2 * len(bomb)
    while incoming.take():
        pass
    assert incoming.held == 0


ANSWERS = (
    TWO,
    PLAIN,
    b"HTTP/1.1 100 Go on\r\n\r\n" + TWO[:-2] + b"trailer: 1\r\n\r\n",
    OK + b"\r\nabcde",
    OK + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"abcde" * 9),
    PLAIN + b"more",
    CHUNKED + b"3\r\nabc\r\nnone\r\n",
    CHUNKED + b"3\r\nabc\r\n",
)


def told(pieces: Sequence[bytes]) -> tuple[object, ...]:
    incoming, body = heard(*pieces, closed=True)
    failure = type(incoming.failure)
    return incoming.status, incoming.headers, body, incoming.over, failure


@pytest.mark.parametrize("whole", ANSWERS)
def test_no_cut_changes_what_is_heard(whole: bytes) -> None:
    for at in range(1, len(whole)):
        assert told([whole[:at], whole[at:]]) == told([whole])
    assert told([whole[at : at + 1] for at in range(len(whole))]) == told([whole])


@given(whole=st.sampled_from(ANSWERS), cuts=st.lists(st.integers(0, 200)))
def test_no_cuts_change_what_is_heard(whole: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(places)]
    assert told(pieces) == told([whole])


@given(st.binary(max_size=300), st.sampled_from((b"", OK, CHUNKED)))
def test_nonsense_is_borne(sent: bytes, before: bytes) -> None:
    incoming, _ = heard(before + sent, closed=True)
    assert incoming.over or incoming.failure is not None


@given(st.lists(st.integers(1, 60)))
def test_chunks_are_noted_as_they_were_sent(cuts: list[int]) -> None:
    chunks = [b"abc", b"\n", b"0123456789", b"x"]
    sent = CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in (*chunks, b""))
    places = [0, *sorted(cuts), len(sent)]
    incoming, sizes, body = NotedIncoming(), list[int](), b""
    for start, end in pairwise(places):
        incoming.feed(sent[start:end])
        body += (piece := incoming.take())
        of_piece = incoming.sizes or [len(piece)]  # empty: it was sent in one
        assert sum(of_piece) == len(piece)
        sizes += of_piece
    assert (body, incoming.over) == (b"".join(chunks), True)
    ends = {sum(sizes[:at]) for at in range(len(sizes) + 1)}
    assert {0, 3, 4, 14, 15} <= ends


@given(st.lists(st.integers(1, 60), unique=True))  # a socket never brings nothing
def test_chunks_are_noted_though_they_are_read_at_once(cuts: list[int]) -> None:
    chunks = [b"abc", b"\n", b"0123456789", b"x"]
    sent = CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in (*chunks, b""))
    incoming = NotedIncoming()
    for start, end in pairwise([0, *sorted(cuts), len(sent)]):
        incoming.feed(sent[start:end])
    assert (incoming.take(), incoming.sizes) == (b"".join(chunks), [3, 1, 10, 1])
