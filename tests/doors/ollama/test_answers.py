"""Events as lines and as one object, which say the same however they were cut."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import BadRequest, Busy, Truncated, Unauthorized, UnknownModel
from adapters.protocol import (
    Aside,
    Event,
    Finish,
    Json,
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
from middleware.doors.door import Stamp
from middleware.doors.ollama.errors import error_body
from middleware.doors.ollama.forms import CHAT_LINES, GENERATE_LINES, LineForm, loaded
from middleware.doors.ollama.lines import Lines
from middleware.doors.ollama.whole import whole

OPENED = Opened((), Upstream("up"))
LATE = Note("usage_estimated", "usage", "counted here")
DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z")


def stamp() -> Stamp:
    ticks = count(1_800_000_000.25, 0.5)
    return Stamp("req_1", 1_800_000_000, lambda: next(ticks), 1_800_000_000.0)


def streamed(batches: Sequence[Sequence[Event]], form: LineForm = CHAT_LINES) -> list[Json]:
    lines = Lines(form, "m", stamp())
    text = b"".join(lines.render(batch) for batch in batches)
    assert b"\n\n" not in text
    assert not text or text.endswith(b"\n")
    return [orjson.loads(line) for line in text.splitlines()]


def plain(events: Sequence[Event], form: LineForm = CHAT_LINES) -> Json:
    answer: Json = orjson.loads(whole(form, "m", stamp(), events))
    return answer


def folded(lines: Sequence[Json]) -> Json:
    """What a client makes of lines."""
    message: Json = {"role": "assistant", "content": ""}
    for line in lines:
        assert WHEN.fullmatch(line["created_at"])
        assert (line["model"], line["message"]["role"]) == ("m", "assistant")
        said = line["message"]
        for name in ("content", "thinking"):
            if name in said:
                message[name] = message.get(name, "") + said[name]
        if "tool_calls" in said:
            message["tool_calls"] = [*message.get("tool_calls", ()), *said["tool_calls"]]
    assert [line["done"] for line in lines] == [*[False] * (len(lines) - 1), True]
    return {"message": message, "done_reason": lines[-1]["done_reason"]}


def call(index: int, name: str, *pieces: str) -> tuple[Event, ...]:
    made = (ToolCallDelta(index, piece) for piece in pieces)
    return ToolCallStart(index, f"call_{index}", name), *made


CALLS: tuple[Event, ...] = (
    OPENED,
    ReasoningDelta("hm"),
    TextDelta("Let me look."),
    *call(0, "f", '{"a": 1.50,\n', ' "b":"沈"}'),
    *call(1, "g", "{}"),
    Finish("tool_calls", Usage(3, 4)),
)
ANSWERS: tuple[tuple[Event, ...], ...] = (
    (OPENED, TextDelta("a"), TextDelta("b\n"), Finish("stop", Usage(1, 2))),
    (OPENED, RefusalDelta("no"), Finish("content_filter")),
    (OPENED, TextDelta("cut"), Finish("length", Usage(0, 1))),
    (OPENED, *call(0, "f", '{"a":'), Finish("length")),
    (OPENED, *call(0, "f", "{}"), Finish("length")),
    (OPENED, Aside("thinking_blocks", [{}]), Noted((LATE,)), Finish("stop")),
    CALLS,
)


def test_calls_are_objects_on_one_line_and_numbered() -> None:
    lines = streamed([CALLS])
    assert len(lines) == 4
    first, second = lines[2]["message"]["tool_calls"]
    assert first == {
        "id": "call_0",
        "function": {"index": 0, "name": "f", "arguments": {"a": 1.5, "b": "沈"}},
    }
    assert second["function"] == {"index": 1, "name": "g", "arguments": {}}
    assert b'{"a":1.50,"b":' in Lines(CHAT_LINES, "m", stamp()).render(CALLS)
    assert lines[3]["done_reason"] == "stop"


def test_the_last_line_says_how_much_and_how_long() -> None:
    *_, last = streamed([CALLS])
    assert (last["prompt_eval_count"], last["eval_count"]) == (3, 4)
    assert all(type(last[name]) is int and last[name] >= 1 for name in DURATIONS)
    assert last["total_duration"] == last["load_duration"] + last["eval_duration"]
    still = Lines(CHAT_LINES, "m", Stamp("req_1", 7, lambda: 7, 7))
    frozen = orjson.loads(still.render((OPENED, Finish("stop"))))
    assert [frozen[name] for name in DURATIONS] == [1, 1, 1, 1]
    assert "eval_count" not in frozen


@pytest.mark.parametrize(
    ("events", "reason", "notes"),
    [
        (ANSWERS[3], "length", ["tool_call_withheld"]),
        (ANSWERS[4], "length", ["tool_call_withheld"]),
        (ANSWERS[1], "stop", ["refusal"]),
        ((OPENED, Aside("annotations", [1]), Finish("stop")), "stop", ["annotations_dropped"]),
        ((OPENED, Aside("audio", {}), Finish("stop")), "stop", ["block_not_shown"]),
        ((OPENED, *call(0, "f", "[]"), Finish("tool_calls")), "length", ["tool_call_withheld"]),
    ],
)
def test_what_has_no_place_is_named_on_the_last_line(
    events: tuple[Event, ...], reason: str, notes: list[str]
) -> None:
    for last in (streamed([events])[-1], plain(events)):
        assert "tool_calls" not in last["message"]
        told = [note["code"] for note in last["x_usetool"]["warnings"]]
        assert (last["done_reason"], told) == (reason, notes)


@pytest.mark.parametrize("events", ANSWERS)
def test_lines_say_what_one_object_says(events: tuple[Event, ...]) -> None:
    whole_answer = plain(events)
    kept = {name: whole_answer[name] for name in ("message", "done_reason")}
    for batches in ([events], [(event,) for event in events]):
        assert folded(streamed(batches)) == kept


WORDS = st.text(max_size=5)


@given(
    st.lists(st.one_of(WORDS.map(TextDelta), WORDS.map(ReasoningDelta), WORDS.map(RefusalDelta))),
    st.data(),
)
def test_how_events_were_cut_makes_no_difference(said: list[Event], data: Any) -> None:
    events: list[Event] = [OPENED, *said, Finish("stop")]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)))))
    edges = zip([0, *cuts], [*cuts, len(events)], strict=True)
    found = folded(streamed([events[start:end] for start, end in edges]))["message"]
    expected = plain(events)["message"]
    assert {name: text for name, text in found.items() if text} == {
        name: text for name, text in expected.items() if text
    }


LOGGED = TextDelta("a", ({"token": "a", "logprob": -1.0},))


@given(
    st.lists(
        st.one_of(
            st.lists(WORDS.map(TextDelta) | st.just(LOGGED), max_size=3),
            st.lists(WORDS.map(ReasoningDelta), max_size=3),
            st.lists(WORDS.map(RefusalDelta), max_size=2),
            st.sampled_from([CALLS[3:6], (Noted((LATE,)),), (Aside("own_block", 1),)]),
        )
    ),
    st.sampled_from((CHAT_LINES, GENERATE_LINES)),
)
def test_many_events_at_once_are_written_as_each_alone(
    said: list[Sequence[Event]], form: LineForm
) -> None:
    events: list[Event] = [OPENED, *[one for run in said for one in [*run] * BURST], CALLS[-1]]
    still = Stamp("req_1", 1_800_000_000, lambda: 1_800_000_000.25, 1_800_000_000.0)
    alone, together = (Lines(form, "m", still) for _ in range(2))
    assert together.render(events) == b"".join([alone.render([event]) for event in events])


def test_a_prompts_answer_is_a_response() -> None:
    events = (OPENED, ReasoningDelta("hm"), TextDelta("a"), Finish("stop"))
    lines = streamed([events], GENERATE_LINES)
    assert [(one["response"], one.get("thinking"), one["done"]) for one in lines] == [
        ("", "hm", False), ("a", None, False), ("", None, True),
    ]  # fmt: skip
    answer = plain(events, GENERATE_LINES)
    assert (answer["response"], answer["thinking"], answer["done"]) == ("a", "hm", True)
    assert orjson.loads(loaded(GENERATE_LINES, "m", True, 1.0))["done_reason"] == "unload"


def test_logprobs_stand_on_the_line_of_their_text() -> None:
    events = (OPENED, TextDelta("a", ({"token": "a"},)), Finish("stop"))
    assert streamed([events])[0]["logprobs"] == plain(events)["logprobs"] == [{"token": "a"}]


def test_late_words_heartbeats_and_failures_are_lines_too() -> None:
    lines = Lines(CHAT_LINES, "m", stamp())
    beat = orjson.loads(lines.heartbeat())
    assert (beat["message"], beat["done"]) == ({"role": "assistant", "content": ""}, False)
    lines.keep_for_last_frame((LATE,))
    lines.tell("cost", 0.5)
    usage = Usage(1, 2, parts=(("answerer", None),))
    own = orjson.loads(lines.render((OPENED, Finish("stop", usage))))["x_usetool"]
    assert [note["code"] for note in own.pop("warnings")] == [LATE.code]
    assert own == {"cost": 0.5, "usage": {"answerer": None}}
    frame = lines.error_frame(Truncated("it stopped"), "req_1", (LATE,))
    assert frame.endswith(b"\n")
    assert orjson.loads(frame)["error"] == "it stopped"
    with pytest.raises(Truncated):
        plain((OPENED, TextDelta("a")))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (UnknownModel("The model 'x' does not exist here. There are: a."), "model 'x' not found. "),
        (BadRequest("The model 'x' cannot call tools: why"), '"x" does not support tools: why'),
        (Unauthorized("no key"), "unauthorized: no key"),
        (Busy("full"), "server busy, please try again.  maximum pending requests exceeded: full"),
    ],
)
def test_words_that_clients_look_for(error: Any, words: str) -> None:
    said = orjson.loads(error_body(error, "req_1"))
    assert said["error"].startswith(words)
    assert said.keys() == {"error"}
