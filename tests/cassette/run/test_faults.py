"""Faults by hand: how rules are read, which one fits, and what becomes of the exchanges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import from_status
from adapters.wire.framing import Ndjson, Sse
from middleware.cassettes.cassette import ExchangeFailure, RecordedExchange
from middleware.cassettes.replay.faults import (
    Applied,
    FaultMistake,
    FaultRule,
    applied,
    find_fault,
    read_faults,
)
from tests.linear.measuring import is_within

EVENTS = (b'data: {"a": 1}\n\n', b'event: x\r\ndata: {"a": 2}\r\n\r\n', b"data: [DONE]\n\n")
STREAM = b": ping\n\n".join(EVENTS)
LINES = b'{"a": 1}\n\n{"a": 2}\r\n{"a": 3}'


def exchange(body: bytes = STREAM, *sizes: int, gap: int = 20) -> RecordedExchange:
    """Cut into pieces of these sizes and one of what is left."""
    left = len(body) - sum(sizes)
    pieces = tuple((gap, size) for size in (*sizes, *([left] if left else [])))
    return RecordedExchange("up", "/chat", b"{}", body=body, pieces=pieces)


def rule(**value: Any) -> FaultRule:
    (found,) = read_faults(value, "the header")
    return found


def acted(value: dict[str, Any], *exchanges: RecordedExchange) -> Applied:
    found = applied(rule(**value), exchanges)
    assert found is not None
    return found


def joined(one: RecordedExchange) -> int:
    return sum(size for _, size in one.pieces)


# Reading ------------------------------------------------------------------------------------------


def test_every_example_of_the_overlay_is_read() -> None:
    found = read_faults(
        [
            {"turn": 2, "cut": {"after_event": 7}},
            {"turn": 2, "cut": {"after_piece": 3, "at": "door"}},
            {"turn": 1, "first": {"status": 429, "headers": {"Retry-After": "1"}}},
            {"turn": 3, "stall": {"after_event": 2, "seconds": 90, "real": True}},
            {"match": {"model": "sonnet"}, "nth": 4, "status": 529},
            {"match": {"model": "sonnet"}, "slow": 2.5},
            {"turn": 4, "finish": "length"},
        ],
        "t.faults.yaml",
    )
    at = [f"t.faults.yaml, rule {number}" for number in range(1, 8)]
    assert [(one.where, one.kind) for one in found] == [
        *zip(at, ("cut", "cut", "first", "stall", "status", "slow", "finish"), strict=True)
    ]
    assert found[1].says.items() >= {"turn": 2, "after_piece": 3, "at": "door"}.items()
    assert found[2].says.items() >= {"status": 429, "headers": {"Retry-After": "1"}}.items()
    assert found[3].says.items() >= {"after_event": 2, "seconds": 90, "real": True}.items()
    assert found[4].says.items() >= {"model": "sonnet", "nth": 4, "status": 529}.items()


@pytest.mark.parametrize("kind", ["garbage", "empty", "refuse"])
def test_a_header_has_one_rule_for_its_own_request(kind: str) -> None:
    assert read_faults({kind: True}, "the header") == (FaultRule("the header", kind, {kind: True}),)


def test_an_empty_overlay_has_no_rules() -> None:
    assert read_faults(None, "t.faults.yaml") == read_faults([], "t.faults.yaml") == ()


MISTAKES: tuple[tuple[Any, str], ...] = (
    ({"turn": 1, "explode": True}, "property 'explode' is not known"),
    ({"turn": 1, "cut": {"after_word": 1}}, "cut: property 'after_word' is not known"),
    ({"turn": 1, 5: 6}, "property '5' is not known"),
    ("cut", 'must be of type "object"'),
    ({"turn": 1}, "say one of cut, stall, first"),
    ({"turn": 1, "empty": True, "status": 500}, "say one of cut, stall, first"),
    ({"status": 500}, "say one of turn, match"),
    ({"turn": 1, "match": {"model": "m"}, "status": 500}, "say one of turn, match"),
    ({"turn": 0, "status": 500}, "turn: must be at least 1"),
    ({"turn": True, "status": 500}, "turn: must be of type"),
    ({"turn": "1", "status": 500}, "turn: must be of type"),
    ({"match": {"model": "m"}, "nth": 0, "status": 500}, "nth: must be at least 1"),
    ({"match": {}, "status": 500}, "match: required property 'model' is missing"),
    ({"match": {"model": ""}, "status": 500}, "match.model: needs at least 1"),
    ({"match": "m", "status": 500}, "match: must be of type"),
    ({"turn": 1, "cut": {}}, "say one of after_event, after_piece"),
    (
        {"turn": 1, "cut": {"after_event": 1, "after_piece": 1}},
        "say one of after_event, after_piece",
    ),
    ({"turn": 1, "cut": {"after_event": -1}}, "cut.after_event: must be at least 0"),
    ({"turn": 1, "cut": {"after_event": 1, "at": "upstream"}}, "cut.at: must be one of"),
    ({"turn": 1, "stall": {"after_event": 1}}, "stall: required property 'seconds' is missing"),
    ({"turn": 1, "stall": {"seconds": 1}}, "say one of after_event, after_piece"),
    ({"turn": 1, "stall": {"after_event": 1, "seconds": 1, "real": 1}}, "stall.real: must be"),
    ({"turn": 1, "slow": 0}, "slow: must be more than 0"),
    ({"turn": 1, "slow": float("nan")}, "slow: must be more than 0"),
    ({"turn": 1, "slow": float("inf")}, "slow: must be at most"),
    ({"turn": 1, "first": {"headers": {}}}, "first: required property 'status' is missing"),
    ({"turn": 1, "first": {"status": 200}}, "first.status: must be at least 400"),
    ({"turn": 1, "status": 600}, "status: must be at most 599"),
    ({"turn": 1, "status": 429, "headers": {"retry-after": 1}}, "headers.retry-after: must be of"),
    ({"turn": 1, "status": 429, "headers": {"a": "1\r\nb: 2"}}, "headers.a: does not match"),
    ({"turn": 1, "garbage": False}, "garbage: must be one of [true]"),
    ({"turn": 1, "finish": "end"}, 'finish: must be one of ["stop", "length"'),
    ({"turn": 1, "finish": ["stop"]}, "finish: must be one of"),
)


@pytest.mark.parametrize(("value", "words"), MISTAKES)
def test_every_mistake_is_named_with_its_place(value: Any, words: str) -> None:
    with pytest.raises(FaultMistake) as found:
        read_faults([{"turn": 1, "empty": True}, value], "f.yaml")
    assert str(found.value).startswith(f"f.yaml, rule 2: {words}")
    assert str(found.value).endswith("There are cut, stall, first, status, garbage, empty, "
                                     "refuse, slow, finish.")  # fmt: skip


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("cut", "expected a list of rules"),
        ({"turn": 1, "status": 500}, "property 'turn' is not known"),
        ({"match": {"model": "m"}, "status": 500}, "property 'match' is not known"),
        ({}, "say one of cut, stall, first"),
    ],
)
def test_one_rule_is_for_its_own_request(value: Any, words: str) -> None:
    with pytest.raises(FaultMistake) as found:
        read_faults(value, "f.yaml")
    assert str(found.value).startswith(f"f.yaml: {words}")


# Which one ----------------------------------------------------------------------------------------


def test_the_first_rule_that_fits_acts() -> None:
    rules = read_faults(
        [
            {"turn": 1, "first": {"status": 429}},
            {"turn": 1, "empty": True},
            {"match": {"model": "m"}, "nth": 2, "status": 500},
            {"match": {"model": "other"}, "status": 529},
        ],
        "f.yaml",
    )
    once, turn, nth, model = rules
    assert find_fault(rules, 1, "m", 1) is once
    assert find_fault(rules, 1, "m", 2, fired=[once]) is turn
    assert find_fault(rules, 1, "m", 2, fired=[once, turn]) is turn, "only `first` is for one ask"
    assert find_fault(rules, 7, "m", 2) is nth
    assert find_fault(rules, 7, "m", 3) is None
    assert [find_fault(rules, 7, "other", number) for number in (1, 9)] == [model, model]
    assert find_fault([rule(empty=True)], 7, "any", 3) == rule(empty=True)


# Acting -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 2, 3])
@pytest.mark.parametrize(("body", "framer"), [(STREAM, Sse), (LINES, Ndjson)])
def test_a_cut_keeps_so_many_events(body: bytes, framer: Any, number: int) -> None:
    one = exchange(body, 5, 9)
    (cut,) = acted({"cut": {"after_event": number}}, one).exchanges
    reader, whole = framer(), framer()
    heard = reader.feed(cut.body) + reader.close()
    assert heard == (whole.feed(body) + whole.close())[:number]
    assert body.startswith(cut.body)
    assert joined(cut) == len(cut.body)
    assert cut.ended == "cut"
    assert cut.failure is not None
    assert (cut.failure.code, cut.failure.status) == ("upstream_truncated", 502)
    assert "'up' broke off" in cut.failure.message


def test_a_byte_order_mark_hides_no_event() -> None:
    marked = exchange(b"\xef\xbb\xbf" + STREAM)
    (cut,) = acted({"cut": {"after_event": 1}}, marked).exchanges
    assert cut.body == b"\xef\xbb\xbf" + EVENTS[0]


def test_a_cut_after_a_piece_keeps_the_pieces_before() -> None:
    (cut,) = acted({"cut": {"after_piece": 2}}, exchange(STREAM, 3, 4, 5)).exchanges
    assert (cut.body, cut.pieces) == (STREAM[:7], ((20, 3), (20, 4)))


def test_a_cut_at_the_door_says_behind_which_piece() -> None:
    found = acted({"cut": {"after_event": 1, "at": "door"}}, exchange(STREAM, 3, 4))
    assert found.door_cut == len(found.exchanges[-1].pieces) == 3
    assert found.exchanges[-1].body == EVENTS[0]
    assert acted({"cut": {"after_event": 1}}, exchange()).door_cut is None


@pytest.mark.parametrize(
    "value",
    [
        {"cut": {"after_event": 4}},
        {"cut": {"after_piece": 3}},
        {"stall": {"after_event": 4, "seconds": 1}},
        {"stall": {"after_event": 3, "seconds": 1}},
    ],
)
def test_what_lies_behind_the_end_does_not_act(value: dict[str, Any]) -> None:
    assert applied(rule(**value), (exchange(STREAM, 3),)) is None


@pytest.mark.parametrize("value", [{"cut": {"after_event": 0}}, {"slow": 2}])
def test_a_turn_without_bytes_cannot_be_cut_or_slow(value: dict[str, Any]) -> None:
    assert applied(rule(**value), ()) is None
    assert applied(rule(**value), (exchange(b""),)) is None


def test_a_stall_lengthens_the_gap_behind_an_event() -> None:
    one = exchange(STREAM, len(EVENTS[0]), 4)
    (late,) = acted({"stall": {"after_event": 1, "seconds": 1.5}}, one).exchanges
    assert late.body == STREAM
    assert late.pieces == (one.pieces[0], (1520, 4), *one.pieces[2:])


def test_a_stall_in_the_middle_of_a_piece_parts_it() -> None:
    found = acted({"stall": {"after_event": 1, "seconds": 2, "real": True}}, exchange())
    first = len(EVENTS[0])
    assert found.exchanges[0].pieces == ((20, first), (2000, len(STREAM) - first))
    assert found.real
    assert not acted({"stall": {"after_event": 1, "seconds": 2}}, exchange()).real


def test_slow_stretches_every_gap() -> None:
    (late,) = acted({"slow": 2.5}, exchange(STREAM, 7)).exchanges
    assert late.pieces == ((50, 7), (50, len(STREAM) - 7))


def test_first_puts_a_refusal_in_front() -> None:
    recorded = (exchange(), exchange(LINES))
    value = {"first": {"status": 429, "headers": {"Retry-After": "1"}}}
    found = acted(value, *recorded)
    refusal, *rest = found.exchanges
    assert found.first
    assert tuple(rest) == recorded
    error = from_status(refusal.status, refusal.headers, refusal.body, refusal.upstream, ())
    assert (error.status, error.code, error.retry_after) == (429, "rate_limit_exceeded", "1")
    assert "A fault rule says so." in error.message


def test_a_status_stands_for_the_last_answer() -> None:
    failure = ExchangeFailure("upstream_truncated", 502, "never", "it broke off")
    broken = replace(exchange(), ended="cut", failure=failure)
    found = acted({"status": 529}, exchange(LINES), broken)
    before, last = found.exchanges
    assert before == exchange(LINES)
    assert (last.status, last.ended, last.failure) == (529, "whole", None)
    assert (last.upstream, last.path, last.sent) == ("up", "/chat", b"{}")
    assert joined(last) == len(last.body)
    assert not found.first


@pytest.mark.parametrize(("body", "framer"), [(STREAM, Sse), (LINES, Ndjson)])
def test_garbage_is_a_frame_that_is_no_json(body: bytes, framer: Any) -> None:
    (last,) = acted({"garbage": True}, exchange(body)).exchanges
    assert framer().feed(last.body) == [b'{"this": is no JSON']
    assert (last.status, joined(last)) == (200, len(last.body))


def test_empty_is_a_good_status_and_nothing() -> None:
    (last,) = acted({"empty": True}, replace(exchange(), status=500)).exchanges
    assert (last.status, last.body, last.pieces) == (200, b"", ())


def test_an_answer_written_by_hand_can_fail_too() -> None:
    for value, count in (({"status": 500}, 1), ({"first": {"status": 500}}, 1)):
        assert [one.status for one in acted(value).exchanges] == [500] * count


def test_what_no_wire_can_say_is_a_mark() -> None:
    assert acted({"finish": "length"}, exchange()) == Applied((exchange(),), finish="length")
    assert acted({"refuse": True}, exchange()) == Applied((exchange(),), refuse=True)


BODIES = st.lists(
    st.sampled_from([b"data: x", b"\n", b"\r\n", b"\r", b": data:", b"{}", b"event: e"]),
    max_size=12,
).map(b"".join)


@given(BODIES, st.lists(st.integers(1, 9), max_size=8), st.integers(0, 6), st.booleans())
def test_pieces_always_add_up_to_the_body(
    body: bytes, sizes: list[int], after: int, by_piece: bool
) -> None:
    while sum(sizes) > len(body):
        sizes = sizes[:-1]
    one = exchange(body, *sizes)
    place = {"after_piece" if by_piece else "after_event": after}
    cut = applied(rule(cut=place), (one,))
    late = applied(rule(stall={**place, "seconds": 3}), (one,))
    if cut is not None:
        (heard,) = cut.exchanges
        assert body.startswith(heard.body)
        assert joined(heard) == len(heard.body)
        assert all(size > 0 for _, size in heard.pieces)
    if late is not None:
        assert cut is not None
        (whole,) = late.exchanges
        assert joined(whole) == len(body)
        gaps = [sum(gap for gap, _ in found.pieces) for found in (one, whole)]
        assert gaps[1] - gaps[0] == 3000


@given(BODIES)
def test_events_are_counted_as_the_gateway_reads_them(body: bytes) -> None:
    reader = Sse()
    frames = [] if body[:1] == b"{" else reader.feed(body) + reader.close()
    for number in range(1, len(frames) + 1):
        found = applied(rule(cut={"after_event": number}), (exchange(body),))
        assert found is not None
        again = Sse()
        assert again.feed(found.exchanges[0].body) + again.close() == frames[:number]


@pytest.mark.parametrize("part", [b"\r", b"\r\n", b"data: x\n", b"data", b"{\n", b"\n{"])
def test_long_answers_are_read_in_linear_time(part: bytes) -> None:
    never, long = rule(cut={"after_event": 999_999}), exchange(part * 100_000)
    assert is_within(1, lambda: applied(never, (long,)))
