"""A streamed message: one block at a time, signed thoughts, and the same as the whole one."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import Truncated
from adapters.protocol import (
    Aside,
    Event,
    Finish,
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
from adapters.receipts import Note
from middleware.doors.bursts import BURST
from middleware.doors.messages.words import signer
from tests.doors.messages.answers import STAMP, message_of, parsed, streamed, whole

OPENED = Opened((), Upstream("deepseek"))
SIGNED = {"type": "thinking", "thinking": "why", "signature": "EqQB"}
HIDDEN = {"type": "thinking", "thinking": "", "signature": "EqQC"}
REDACTED = {"type": "redacted_thinking", "data": "Ev8="}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}}
CITED = {"type": "char_location", "cited_text": "so", "document_index": 0}
_text = st.text(min_size=1, max_size=5)
_blocks: tuple[st.SearchStrategy[list[Event]], ...] = (
    _text.map(lambda text: [TextDelta(text), TextDelta("b")]),
    _text.map(lambda text: [ReasoningDelta(text)]),
    _text.map(lambda text: [ReasoningDelta(text), Aside("thinking_blocks", [SIGNED])]),
    st.just([Aside("thinking_blocks", [REDACTED])]),
    st.just([Aside("thinking_blocks", [HIDDEN])]),
    st.just([Aside("own_block", SEARCH)]),
    st.just([TextDelta("so"), Aside("own_citations", [CITED])]),
    st.just([Aside("reasoning", "aside")]),
    st.just(
        [ToolCallStart(0, "call_1", "f"), ToolCallDelta(0, '{"n":'), ToolCallDelta(0, "1.10}")]
    ),
    st.just([RefusalDelta("No.")]),
    st.just([Noted((Note("refusal", "", "why"),))]),
)
_reasons = st.sampled_from(["stop", "length", "tool_calls", "content_filter"])
_usages = st.none() | st.builds(
    Usage, st.just(100), st.just(20), st.none() | st.just(90), st.none() | st.just(5)
)
_finishes = st.builds(
    Finish, _reasons, _usages, st.sampled_from(["", "refusal", "pause_turn"]), st.none(),
    st.none() | st.just("HALT"),
)  # fmt: skip
answers = st.builds(
    lambda said, finish: [OPENED, *(event for block in said for event in block), finish],
    st.lists(st.one_of(_blocks), max_size=6),
    _finishes,
)


@given(answers, st.booleans())
def test_a_stream_comes_to_the_whole_message(events: list[Event], silent: bool) -> None:
    members: Any = {"thinking": {"type": "adaptive", "display": "omitted"}} if silent else {}
    asked = parsed(**members)
    plain = whole(events, asked)
    plain.pop("x_usetool", None)  # a stream tells there what headers tell of a whole message
    assert message_of(streamed([events], asked)) == {**plain, "usage": _both(plain["usage"])}


def _both(usage: dict[str, Any]) -> dict[str, Any]:
    """`message_start` has both figures of the cache."""
    return {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, **usage}


@given(answers, st.data())
def test_however_batches_are_cut_the_bytes_are_the_same(
    events: list[Event], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(events)))
    one, other = parsed().stream(STAMP), parsed().stream(STAMP)
    assert one.render(events) == other.render(events[:cut]) + other.render(events[cut:])


@given(answers, st.booleans())
def test_what_comes_in_a_burst_is_written_as_each_alone(events: list[Event], silent: bool) -> None:
    many: list[Event] = []
    for event in events:
        alike = type(event) in (TextDelta, ReasoningDelta, ToolCallDelta)
        many += [event] * (BURST if alike else 1)
    *many, finish = many
    many += [TextDelta("so"), ReasoningDelta("é")] * BURST
    many.append(finish)
    members: Any = {"thinking": {"type": "adaptive", "display": "omitted"}} if silent else {}
    alone, together = (parsed(**members).stream(STAMP) for _ in range(2))
    frames = [alone.render([event]) for event in many]
    assert b"".join(frames) == together.render(many)


def test_thoughts_of_who_signs_none_are_signed_for_their_upstream() -> None:
    message = whole([OPENED, ReasoningDelta("hm"), TextDelta("a"), Finish("stop")])
    thought = message["content"][0]
    assert signer(b"secret", thought["signature"], "hm") == "deepseek"
    assert signer(b"secret", thought["signature"], "hm!") == ""
    assert signer(b"another", thought["signature"], "hm") == ""


def test_a_signature_comes_where_its_thought_ends() -> None:
    events: list[Event] = [
        OPENED,
        ReasoningDelta("why"),
        Aside("thinking_blocks", [SIGNED]),
        TextDelta("a"),
    ]
    kinds = [event["type"] for event in streamed([[*events, Finish("stop")]])]
    assert kinds == [
        *("message_start", "ping", "content_block_start", "content_block_delta"),
        *("content_block_delta", "content_block_stop", "content_block_start"),
        *("content_block_delta", "content_block_stop", "message_delta", "message_stop"),
    ]
    assert message_of(streamed([[*events, Finish("stop")]]))["content"][0] == SIGNED


def test_a_thought_that_was_hidden_is_not_told_by_its_signature() -> None:
    events: list[Event] = [
        OPENED,
        TextDelta("a"),
        Aside("thinking_blocks", [SIGNED]),
        Finish("stop"),
    ]
    assert [block["type"] for block in whole(events)["content"]] == ["text"]


@pytest.mark.parametrize(
    ("finish", "reason", "sequence"),
    [
        (Finish("stop"), "end_turn", None),
        (Finish("stop", stop="HALT"), "stop_sequence", "HALT"),
        (Finish("tool_calls"), "tool_use", None),
        (Finish("length"), "max_tokens", None),
        (Finish("length", native="pause_turn"), "pause_turn", None),
        (Finish("length", native="model_context_window_exceeded"),
         "model_context_window_exceeded", None),
        (Finish("content_filter"), "refusal", None),
    ],
)  # fmt: skip
def test_why_it_ended(finish: Finish, reason: str, sequence: str | None) -> None:
    message = whole([OPENED, TextDelta("a"), finish])
    assert (message["stop_reason"], message["stop_sequence"]) == (reason, sequence)


def test_calls_win_over_a_stop_and_never_over_a_cut() -> None:
    call: list[Event] = [OPENED, ToolCallStart(0, "call_1", "f"), ToolCallDelta(0, '{"a')]
    assert whole([*call, Finish("stop")])["stop_reason"] == "tool_use"
    cut = whole([*call, Finish("length")])
    assert (cut["stop_reason"], cut["content"][0]["input"]) == ("max_tokens", {})


def test_a_refusal_is_text_unless_its_upstream_said_it_beside_its_answer() -> None:
    said: list[Event] = [OPENED, RefusalDelta("I will not.")]
    message = whole([*said, Finish("stop")])
    assert message["content"] == [{"type": "text", "text": "I will not."}]
    assert message["stop_details"]["explanation"] == "I will not."
    own = whole(
        [OPENED, TextDelta("a"), RefusalDelta("No."), Finish("content_filter", native="refusal")]
    )
    assert own["content"] == [{"type": "text", "text": "a"}]
    assert own["stop_details"]["explanation"] == "No."


def test_an_empty_answer_is_one_empty_text() -> None:
    assert whole([OPENED, Finish("stop")])["content"] == [{"type": "text", "text": ""}]


def test_a_call_that_repeats_an_id_gets_another_and_the_same_each_time() -> None:
    turn = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "call_1", "name": "f", "input": {}}],
    }
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1"}]}
    asked = parsed({"role": "user", "content": "x"}, turn, result)
    events: list[Event] = [OPENED]
    for at, identity in enumerate(("call_1", "a b")):
        events += (ToolCallStart(at, identity, "f"), ToolCallDelta(at, "{}"))
    events.append(Finish("tool_calls"))
    ids = [block["id"] for block in whole(events, asked)["content"]]
    assert ids == [block["id"] for block in message_of(streamed([events], asked))["content"]]
    assert len({*ids, "call_1"}) == 3
    assert all(one.startswith("toolu_") for one in ids)


def test_numbers_of_arguments_stay_as_they_were_written() -> None:
    digits = '{"n":123456789012345678901234567890,"x":1.10}'
    events: list[Event] = [
        OPENED,
        ToolCallStart(0, "c", "f"),
        ToolCallDelta(0, digits),
        Finish("tool_calls"),
    ]
    assert digits.encode() in parsed().fold(STAMP, events)


def test_cached_tokens_are_counted_beside() -> None:
    usage = whole([OPENED, TextDelta("a"), Finish("stop", Usage(1000, 7, 900, 50, 3))])["usage"]
    assert usage == {
        "input_tokens": 50,
        "cache_creation_input_tokens": 50,
        "cache_read_input_tokens": 900,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 3},
    }


def test_what_nobody_counted_is_estimated_and_said() -> None:
    events = streamed([[OPENED, TextDelta("a" * 36), Finish("stop")]])
    assert events[0]["message"]["usage"]["input_tokens"] > 0
    assert events[-2]["usage"]["output_tokens"] == 10
    assert events[-2]["x_usetool"]["warnings"][0]["code"] == "usage_estimated"
    message = whole([OPENED, TextDelta("a" * 36), Finish("stop")])
    assert message["usage"]["output_tokens"] == 10
    assert message["x_usetool"] == events[-2]["x_usetool"]


def test_what_messages_cannot_say_is_named() -> None:
    said: list[Event] = [OPENED, TextDelta("a"), Aside("annotations", []), Aside("images", [])]
    said += [Aside("steps", [{"tool": "t"}]), Finish("stop", Usage(1, 1))]
    end = streamed([said])[-2]
    codes = [note["code"] for note in end["x_usetool"]["warnings"]]
    assert codes == ["annotations_dropped", "answer_member_dropped"]
    assert end["x_usetool"]["steps"] == [{"tool": "t"}]
    assert whole(said)["x_usetool"] == end["x_usetool"]


def test_an_answer_without_an_end_is_none() -> None:
    with pytest.raises(Truncated):
        parsed().fold(STAMP, [OPENED, TextDelta("a")])


def test_heartbeats_are_pings() -> None:
    assert parsed().stream(STAMP).heartbeat() == b'event: ping\ndata: {"type":"ping"}\n\n'


def test_a_broken_stream_ends_in_an_error() -> None:
    frame = parsed().stream(STAMP).error_frame(Truncated("It is cut."), "req_1", ())
    name, data = frame.decode().strip().split("\n")
    assert name == "event: error"
    assert orjson.loads(data[6:]) == {
        "type": "error",
        "error": {"type": "api_error", "message": "It is cut."},
        "request_id": "req_1",
    }
