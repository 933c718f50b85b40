"""The grammar of a stream, whatever the events; and the same answer as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import Busy, RateLimited, Refused, Truncated
from adapters.protocol import (
    Aside,
    CallKind,
    Event,
    Finish,
    FinishReason,
    Json,
    Noted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from adapters.receipts import Note
from middleware.doors.bursts import BURST
from tests.doors.responses.written import OPENED, STAMP, frames, kinds, read, streamed, whole

A, B = TextDelta("a"), TextDelta("b")
HM = ReasoningDelta("hm")
NO = RefusalDelta("no")
STOP = Finish("stop", Usage(3, 2, cached=1, reasoning=1))
CALL: tuple[Event, ...] = (
    ToolCallStart(0, "c1", "look"),
    ToolCallDelta(0, '{"a":'),
    ToolCallDelta(0, "1}"),
)
PATCH: tuple[Event, ...] = (ToolCallStart(0, "c1", "patch", "custom"), ToolCallDelta(0, "*** x"))
SIGNED = Aside("thinking_blocks", [{"type": "thinking", "thinking": "hm", "signature": "s"}])
SOURCES = Aside("annotations", [{"type": "url_citation", "url_citation": {"url": "u"}}])
BEGUN = ["created", "in_progress"]
TEXT = ["output_item.added", "content_part.added", "output_text.delta"]
TEXT_DONE = ["output_text.done", "content_part.done", "output_item.done"]
THOUGHT = ["output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"]
THOUGHT_DONE = ["reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"]
CALLED = ["output_item.added", *["function_call_arguments.delta"] * 2]
CALL_DONE = ["function_call_arguments.done", "output_item.done"]

GRAMMAR: tuple[tuple[str, Sequence[Event], list[str]], ...] = (
    ("text", (A, B, STOP), [*TEXT, "output_text.delta", *TEXT_DONE, "completed"]),
    ("thought", (HM, A, STOP), [*THOUGHT, *THOUGHT_DONE, *TEXT, *TEXT_DONE, "completed"]),
    ("call", (*CALL, STOP), [*CALLED, *CALL_DONE, "completed"]),
    ("custom", (*PATCH, STOP), ["output_item.added", "custom_tool_call_input.delta",
                                "custom_tool_call_input.done", "output_item.done", "completed"]),
    ("text behind a call", (*CALL, A, STOP), [*CALLED, *CALL_DONE, *TEXT, *TEXT_DONE, "completed"]),
    ("text within a call", (*CALL[:2], A, CALL[2], STOP),
     [*CALLED, *CALL_DONE, *TEXT, *TEXT_DONE, "completed"]),
    ("refusal", (A, NO, Finish("content_filter")),
     [*TEXT, *TEXT_DONE[:2], "content_part.added", "refusal.delta", "refusal.done",
      *TEXT_DONE[1:], "completed"]),
    ("empty", (STOP,), [*TEXT[:2], *TEXT_DONE, "completed"]),
    ("cut", (A, Finish("length")), [*TEXT, *TEXT_DONE, "incomplete"]),
    ("a cut thought", (HM, Finish("length")), [*THOUGHT, *THOUGHT_DONE, "incomplete"]),
    ("a cut call", (A, *CALL[:2], Finish("length")),
     [*TEXT, *TEXT_DONE, *CALLED[:2], "incomplete"]),
    ("a hidden thought", (SIGNED, A, STOP),
     ["output_item.added", "output_item.done", *TEXT, *TEXT_DONE, "completed"]),
    ("sources", (A, SOURCES, STOP),
     [*TEXT, "output_text.annotation.added", *TEXT_DONE, "completed"]),
)  # fmt: skip


@pytest.mark.parametrize(("events", "expected"), [(row[1], row[2]) for row in GRAMMAR],
                         ids=[row[0] for row in GRAMMAR])  # fmt: skip
def test_the_grammar(events: Sequence[Event], expected: list[str]) -> None:
    assert kinds(streamed(*events)) == BEGUN + expected


# Any answer ------------------------------------------------------------------------------------

texts = st.text(min_size=1, max_size=6)
CALL_KINDS: tuple[CallKind, ...] = ("function", "custom")
ENDS: tuple[FinishReason, ...] = ("stop", "length", "tool_calls", "content_filter")
small = (
    st.builds(TextDelta, texts)
    | st.builds(ReasoningDelta, texts)
    | st.builds(RefusalDelta, texts)
    | st.just(SIGNED)
    | st.just(Aside("images", ["x"]))
    | st.builds(Noted, st.just((Note("refusal", "", "t"),)))
)
pieces = st.lists(texts, max_size=3)
calls = st.tuples(st.sampled_from(CALL_KINDS), pieces)
parts = st.lists(small | calls, max_size=8)


@st.composite
def answers(draw: st.DrawFn) -> list[Event]:
    events: list[Event] = []
    count = 0
    for part in draw(parts):
        if isinstance(part, tuple):
            kind, said = part
            members = (f'"{at}":{orjson.dumps(one).decode()},' for at, one in enumerate(said))
            said = ["{", *members, '"z":0}']
            events.append(ToolCallStart(count, f"c{count}", "look", kind))
            events += [ToolCallDelta(count, one) for one in said]
            count += 1
        else:
            events.append(part)
    return [*events, Finish(draw(st.sampled_from(ENDS)), draw(st.none() | st.just(Usage(1, 2))))]


def checked(events: Sequence[Json]) -> list[Json]:
    """Hold a stream to what clients rely on; its items."""
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    items: list[Json] = []
    said, open_item = "", False
    for event in events[2:-1]:
        kind = event["type"]
        if kind == "response.output_item.added":
            assert not open_item
            assert event["output_index"] == len(items)
            items.append(event["item"])
            open_item, said = True, ""
            continue
        assert open_item
        assert event["output_index"] == len(items) - 1
        assert event.get("item_id", items[-1]["id"]) == items[-1]["id"]
        if kind.endswith("part.added"):
            said = ""
        elif kind.endswith(".delta"):
            said += event["delta"]
        elif kind.endswith(
            (".text.done", "_text.done", "refusal.done", "arguments.done", "input.done")
        ):
            names = ("text", "refusal", "arguments", "input")
            assert next(event[name] for name in names if name in event) == said
        elif kind == "response.output_item.done":
            assert event["item"]["id"] == items[-1]["id"]
            items[-1], open_item = event["item"], False
    last = events[-1]["response"]
    assert [one["id"] for one in last["output"]] == [one["id"] for one in items]
    assert len({one["id"] for one in items}) == len(items)
    for done, told in zip(items, last["output"], strict=True):
        assert told["status"] != "in_progress"
        if done["status"] != "in_progress":  # else it was cut
            assert done == told
    return items


@given(answers(), st.lists(st.integers(1, 30), max_size=6))
def test_every_stream_holds_and_is_the_plain_answer(events: list[Event], cuts: list[int]) -> None:
    heard = streamed(*events)
    assert streamed(*events, cuts=cuts) == heard
    checked(heard)
    assert heard[-1]["response"] == whole(*events)


def repeated(event: Event) -> list[Event]:
    if isinstance(event, ToolCallDelta):
        return [event, *[ToolCallDelta(event.index, " ")] * BURST]
    return [event] * (BURST if isinstance(event, TextDelta | ReasoningDelta) else 1)


@given(answers(), st.booleans())
def test_what_comes_in_a_burst_is_written_as_each_alone(events: list[Event], logged: bool) -> None:
    *said, finish = events
    words = (A, TextDelta(""), HM, TextDelta("100 %", ({"token": "%"},) if logged else ()))
    many = [OPENED, *[one for event in said for one in repeated(event)], *words * BURST, finish]
    together, alone = (read(stream=True).stream(STAMP) for _ in range(2))
    frames = [alone.render([event]) for event in many]
    assert together.render(many) == b"".join(frames)


@pytest.mark.parametrize("reason", ENDS)
@pytest.mark.parametrize("usage", [None, Usage(1, 2), Usage(1, 2, parts=(("a", None),))])
def test_a_text_alone_is_written_as_one_of_pieces(
    reason: FinishReason, usage: Usage | None
) -> None:
    asked, end = read(), Finish(reason, usage)
    one, two = (OPENED, TextDelta("ab"), end), (OPENED, TextDelta("a"), TextDelta("b"), end)
    assert asked.fold(STAMP, one) == asked.fold(STAMP, two)


def test_the_object_counts_what_was_used_and_hides_what_it_need_not_repeat() -> None:
    tools = [{"type": "function", "name": "look"}]
    first, _, *_, last = streamed(A, STOP, tools=tools)
    assert first["response"]["tools"] == []
    assert first["response"]["usage"] is None
    assert last["response"]["tools"] == tools
    assert last["response"]["usage"] == {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 1},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 5,
    }


def test_unknown_usage_is_null_and_named() -> None:
    said = whole(A, Finish("stop"))
    assert said["usage"] is None
    assert said["x_usetool"]["warnings"][0]["code"] == "usage_unknown"


def test_a_call_is_told_as_it_was_made() -> None:
    (item,) = whole(*CALL, STOP)["output"]
    assert item == {
        "id": "fc_" + "ab" * 12 + "0000",
        "type": "function_call",
        "status": "completed",
        "call_id": "c1",
        "name": "look",
        "arguments": '{"a":1}',
    }


def test_what_tools_did_stands_on_the_last_object() -> None:
    steps = [{"tool": "x"}]
    heard = streamed(Aside("step", steps[0]), A, Aside("steps", steps), STOP)
    assert heard[-1]["response"]["x_usetool"] == {"steps": steps}


def test_thoughts_in_another_member_are_thoughts_here() -> None:
    (thought, _) = whole(Aside("reasoning", "hm"), A, STOP)["output"]
    assert thought["summary"] == [{"type": "summary_text", "text": "hm"}]


def test_logprobs_stand_with_their_text() -> None:
    logprob = {"token": "a", "logprob": -1.0}
    heard = streamed(TextDelta("a", (logprob,)), B, STOP)
    assert [one["logprobs"] for one in heard if "delta" in one] == [[logprob], []]
    assert heard[-1]["response"]["output"][0]["content"][0]["logprobs"] == [logprob]


# Silence and failures --------------------------------------------------------------------------


def test_a_heartbeat_is_an_event_that_never_begins_an_answer_anew() -> None:
    writer = read(stream=True).stream(STAMP)
    heard = frames(writer.heartbeat() + writer.heartbeat() + writer.render((OPENED, HM)))
    heard += frames(writer.heartbeat() + writer.render((A, STOP)))
    assert kinds(heard)[:3] == ["created", "in_progress", "in_progress"]
    assert "keepalive" in kinds(heard)
    assert kinds(heard).count("in_progress") == 2
    checked(_renumbered(heard))


def _renumbered(heard: list[Json]) -> list[Json]:
    """Without heartbeats; the numbers of all were right."""
    assert [one["sequence_number"] for one in heard] == [*range(len(heard))]
    kept = [one for one in heard[:2] + heard[3:] if one["type"] != "keepalive"]
    return [one | {"sequence_number": at} for at, one in enumerate(kept)]


FAILURES = (
    (Truncated("cut"), "server_error"),
    (RateLimited("slow", retry_after="1.5"), "rate_limit_exceeded"),
    (Refused("long", code="context_length_exceeded"), "context_length_exceeded"),
    (Refused("no"), "invalid_prompt"),
    (RateLimited("money", code="insufficient_quota"), "insufficient_quota"),
    (Busy("full"), "server_is_overloaded"),
)


@pytest.mark.parametrize(("error", "code"), FAILURES)
def test_a_failure_ends_the_stream_in_words(error: Truncated, code: str) -> None:
    writer = read(stream=True).stream(STAMP)
    heard = frames(writer.render((OPENED, A)) + writer.error_frame(error, "req_1", ()))
    assert heard[-1]["type"] == "response.failed"
    said = heard[-1]["response"]
    assert (said["status"], said["error"]["code"]) == ("failed", code)
    assert error.message in said["error"]["message"]
    if error.retry_after:
        assert said["error"]["message"].endswith("Please try again in 1.5s.")
    assert said["output"][0]["status"] == "incomplete"
    assert kinds(heard)[:2] == BEGUN


def test_a_failure_of_a_stream_that_only_beat_has_its_beginning() -> None:
    writer = read(stream=True).stream(STAMP)
    assert kinds(frames(writer.error_frame(Truncated("cut"), "req_1", ()))) == [*BEGUN, "failed"]


def test_an_answer_without_an_end_is_none() -> None:
    with pytest.raises(Truncated):
        read().fold(STAMP, [OPENED, A])
