"""Frames are the same whatever the network cut them into, and no upstream can make them costly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.errors import UpstreamError
from adapters.protocol import Event, TextDelta
from adapters.wire.alike import alike
from adapters.wire.framing import MAX_FRAME, Framer, Ndjson, Sse
from tests.linear.measuring import is_within
from tests.support.cuts import cut, cuts, each_byte, halves

EVENTS = (
    b": hello\r\n\r\n"
    b'event: message_start\ndata: {"text":"\xe6\xb2\x88\xe9\x98\xb3"}\n\n'
    b"data: one\ndata:two\nid: 7\n\n"
    b"retry: 100\n\n"
    b"data:\n\n"
    b"data: \xf0\x9f\x8c\xa6 last\r\rdata: [DONE]\n\n"
)
PAYLOADS = [
    '{"text":"沈阳"}'.encode(),
    b"one\ntwo",
    "🌦 last".encode(),
    b"[DONE]",
]
LINES = b'{"a":1}\r\n\n  \n{"b":"\xe6\xb2\x88"}\n{"c":3}'
OBJECTS = [{"a": 1}, {"b": "沈"}, {"c": 3}]


def frames(framer: Framer, pieces: Sequence[bytes]) -> list[bytes]:
    found = [frame for piece in pieces for frame in framer.feed(piece)]
    return found + framer.close()


def payloads_by_the_standard(text: str) -> list[bytes]:
    """Server-sent events as the HTML standard reads them, a line at a time."""
    found, data = [], []
    for line in re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff") + "\n\n"):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line:
            found.append("\n".join(data).encode())
            data = []
    return [payload for payload in found if payload]


def test_events_are_read_as_written() -> None:
    assert frames(Sse(), [EVENTS]) == PAYLOADS


@pytest.mark.parametrize("pieces", [*halves(EVENTS), each_byte(EVENTS)], ids=len)
def test_events_do_not_depend_on_cuts(pieces: list[bytes]) -> None:
    assert frames(Sse(), pieces) == PAYLOADS


def test_lines_do_not_depend_on_cuts() -> None:
    whole = frames(Ndjson(), [LINES])
    assert [frame.strip() for frame in whole] == [
        b'{"a":1}', '{"b":"沈"}'.encode(), b'{"c":3}'
    ]  # fmt: skip
    for pieces in (*halves(LINES), each_byte(LINES)):
        assert frames(Ndjson(), pieces) == whole


LINE = st.one_of(
    st.sampled_from(["", "", "", ":", ": ping", "event: x", "id: 1", "retry: 5", "unknown: x"]),
    st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=6).map(
        lambda text: "data:" + text
    ),
)
END = st.sampled_from(["\n", "\r\n", "\r"])


@given(
    lines=st.lists(st.tuples(LINE, END), max_size=14),
    mark=st.booleans(),
    places=cuts(),
)
def test_events_are_those_of_the_standard(
    lines: list[tuple[str, str]], mark: bool, places: list[int]
) -> None:
    text = "\ufeff" * mark + "".join(line + end for line, end in lines)
    assert frames(Sse(), cut(text.encode(), places)) == payloads_by_the_standard(text)


FRAME = st.sampled_from(
    [
        *("data: 1\n\n", "data: 2\n\n", "data:\n\n", "data: \n\n", "data:3\n\n", "data: 4\r\r"),
        *("event: x\ndata: 5\n\n", "event: y\ndata: 6\n\n", "event: x\n\n", "event: x\n\n\n"),
        *(
            "data: 7\ndata: 8\n\n",
            "data: 9\rdata: 0\n\n",
            "data: a\r",
            "data: b\n",
            "\n",
            ": c\n\n",
        ),
    ]
)


@given(pieces=st.lists(FRAME, max_size=8))
def test_events_that_come_one_by_one_are_those_of_the_standard(pieces: list[str]) -> None:
    sent = [piece.encode() for piece in pieces]
    assert frames(Sse(), sent) == payloads_by_the_standard("".join(pieces))


@given(
    pieces=st.lists(st.tuples(FRAME, st.integers(1, 9)), max_size=12),
    usual=st.sampled_from(["data: ", "event: x\ndata: "]),
    mark=st.booleans(),
    places=cuts(),
)
@example(pieces=[("event: x\n\n\n", 1)], usual="event: x\ndata: ", mark=False, places=[18])
def test_events_that_come_together_are_those_of_the_standard(
    pieces: list[tuple[str, int]], usual: str, mark: bool, places: list[int]
) -> None:
    many = "".join(f"{usual}{word}\n\n" for word in range(50))
    text = "".join(piece * times for piece, times in pieces)
    for whole in (many + text + many, text + many + text, many + text):
        sent = ("\ufeff" * mark + whole).encode()
        expected = payloads_by_the_standard("\ufeff" * mark + whole)
        assert frames(Sse(), [sent]) == expected
        assert frames(Sse(), cut(sent, places)) == expected


@pytest.mark.parametrize("event", ["event: error\n\n\n", "data: 3\n\n\n", "event: x\n\n\n\n\n"])
def test_a_newline_too_many_makes_no_event(event: str) -> None:
    many = b"".join(b"data: %d\n\n" % word for word in range(200))
    sent = many + event.encode() + many
    assert frames(Sse(), [sent]) == frames(Sse(), each_byte(sent))


@given(places=cuts())
def test_a_byte_order_mark_is_no_part_of_the_first_event(places: list[int]) -> None:
    assert frames(Sse(), cut(b"\xef\xbb\xbfdata: 1\n\n", places)) == [b"1"]


@pytest.mark.parametrize(
    ("framer", "frame", "end"), [(Sse, b"data: ", b"\n\n"), (Ndjson, b"", b"\n")]
)
@pytest.mark.parametrize("step", [1 << 14, 1 << 22], ids=["in pieces", "at once"])
def test_a_frame_has_a_largest_size(
    framer: type[Framer], frame: bytes, end: bytes, step: int
) -> None:
    fits = frame + b"x" * (MAX_FRAME - len(frame)) + end
    grown = frame + b"x" * (MAX_FRAME + 1) + end
    (kept,) = frames(framer(), _steps(fits, step))
    assert len(kept) == MAX_FRAME - len(frame)
    with pytest.raises(UpstreamError) as caught:
        frames(framer(), _steps(grown, step))
    assert caught.value.code == "upstream_too_large"


def test_a_frame_without_an_end_is_refused_while_it_grows() -> None:
    framer = Sse()
    for _ in range(MAX_FRAME // 1024):
        framer.feed(b"x" * 1024)
    with pytest.raises(UpstreamError):
        framer.feed(b"x")


@pytest.mark.parametrize("piece", [b"\nx", b"x\n", b"\rx", b"x"])
def test_small_pieces_cost_linear_time(piece: bytes) -> None:
    def feed() -> None:
        framer = Sse()
        for _ in range(200_000):
            framer.feed(piece)

    assert is_within(3, feed)


def _steps(data: bytes, step: int) -> list[bytes]:
    return [data[start : start + step] for start in range(0, len(data), step)]


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        (b"event: error\ndata: It broke.\n\n", b'{"error":"It broke."}'),
        (b"event:error\ndata: a\ndata: b\n\n", b'{"error":"a\\nb"}'),
        (b'event: error\nid: 1\ndata: {"code":1}\n\n', b'{"error":{"code":1}}'),
        (b'event: error\ndata: {"error": {}}\n\n', b'{"error":{"error":{}}}'),
        (b'event: error\ndata: {"error": {"a": 1}}\n\n', b'{"error": {"a": 1}}'),
        (b'event: errors\ndata: {"a": 1}\n\n', b'{"a": 1}'),
        (b"event: ping\ndata: {}\n\n", b"{}"),
    ],
)
def test_an_error_event_is_an_error_in_every_language(event: bytes, payload: bytes) -> None:
    for pieces in ([event], each_byte(event)):
        assert frames(Sse(), pieces) == [payload]


# Frames that are alike ---------------------------------------------------------------------------

PATH = ("choices", 0, "delta", "content")


def _said(texts: list[str], _state: None) -> Iterable[Event]:
    return map(TextDelta, texts)


def _frame(text: str, **more: object) -> bytes:
    delta = {"role": "assistant", "content": text}
    return json.dumps({"id": "x", **more, "choices": [{"index": 0, "delta": delta}]}).encode()


def read(first: bytes, frames: Sequence[bytes]) -> tuple[list[str], bytes, list[bytes]]:
    """Texts, the first frame that is not alike, and what was left behind it."""
    known = alike(first, PATH, _said)
    assert known is not None
    others = iter(frames)
    texts, other = known.texts(next(others), others)
    return texts, other, [*others]


def test_only_the_text_is_read() -> None:
    texts = ["a", "沈", '"}', "\\", "\n", " }]}", "😀"]
    assert read(_frame("first"), [*map(_frame, texts)]) == (texts, b"", [])


OTHERS = {
    "empty": _frame(""),
    "beside it something else": _frame("b", model="m"),
    "another form": _frame("b").replace(b": ", b":"),
    "no text": _frame("b").replace(b'"b"', b"7"),
    "nothing": _frame("b").replace(b'"b"', b"null"),
    "two texts": _frame("b").replace(b'"b"', b'"b","role":"c"'),
    "half a character": _frame("b").replace(b'"b"', b'"\\ud83d"'),
    "no UTF-8": _frame("b").replace(b'"b"', b'"\xff"'),
    "not closed": _frame("b").replace(b'"b"', b'"b\\"'),
    "cut": _frame("b")[:-1],
    "more behind it": _frame("b") + b" ",
    "several lines": _frame("b") + b"\n" + _frame("b"),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_is_not_alike_is_left_to_who_reads_all(other: bytes) -> None:
    left = [_frame("c")]
    assert read(_frame("first"), [_frame("a"), other, *left]) == (["a"], other, left)


@pytest.mark.parametrize(
    "first",
    [
        b"{}",
        b'{"choices":[]}',
        _frame("a").replace(b'"content"', b'"refusal"'),
        _frame("a").replace(b'"a"', b'{"content": "a"}'),
        _frame("a").replace(b'"a"', b'"a", "in": {"content": "a"}'),
        _frame("a").replace(b'"a"', b'"a.", "in": {"content": "a"}'),
        _frame("a").replace(b'"a"', b"null"),
        _frame("a", system_fingerprint="f" * 2000),
        _frame("\ud83d"),
    ],
)
def test_nothing_is_alike_where_a_text_does_not_stand_there_for_certain(first: bytes) -> None:
    assert alike(first, PATH, _said) is None


@pytest.mark.parametrize("behind", [b', "more": 1', b', "more": "b"', b', "in": ["\\"a\\":"]'])
def test_what_stands_behind_a_text_is_the_same_in_all(behind: bytes) -> None:
    first = _frame("a").replace(b'"a"', b'"a"' + behind)
    same, other = (first.replace(b'"a"', text) for text in (b'"b"', b'"b", "even": 2'))
    assert read(first, [same, other]) == (["b"], other, [])


def test_of_members_written_twice_the_last_counts() -> None:
    first = _frame("a").replace(b'"a"', b'"old", "content": "a"')
    assert read(first, [first.replace(b'"a"', b'"b"')])[0] == ["b"]
    assert read(first, [first.replace(b'"old"', b'"new"')])[0] == []
