"""Ollama's lines as events, wherever the network cuts them; no end without `done`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import GatewayError, Truncated, UpstreamError
from adapters.ollama import State, close, decode, decode_answer
from adapters.protocol import (
    Event,
    Finish,
    Json,
    Note,
    Noted,
    Opened,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from adapters.shared.calls import Calls
from adapters.shared.think_tags import TAGS, Splitter
from adapters.wire.exchange import Exchange, Listener
from adapters.wire.framing import Ndjson

CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
COUNTS: Json = {"prompt_eval_count": 9, "eval_count": 3}


def line(done: Any = False, **message: Any) -> Json:
    said = {"role": "assistant", "content": "", **message}
    return {"model": "qwen3", "created_at": "2026-01-01T00:00:00Z", "message": said, "done": done}


def end(reason: str = "stop", **more: Any) -> Json:
    return {**line(done=True), "done_reason": reason, **COUNTS, **more}


def call(name: str = "weather", arguments: Any = None, **more: Any) -> Json:
    return {"function": {"index": 0, "name": name, "arguments": arguments}, **more}


def raw(*lines: Any) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in lines)


def listener(state: State, streamed: bool = True) -> Listener[State]:
    ask = Exchange("", {}, (), state, streamed, Ndjson, decode, close, decode_answer)
    return Listener("ollama", ask, {})


def heard(
    *pieces: bytes, state: State | None = None, streamed: bool = True
) -> tuple[list[Event], GatewayError | None]:
    ear = listener(state or State(), streamed)
    events: list[Event] = []
    for piece in (*filter(None, pieces), b""):
        events += ear.feed(piece)
        if ear.over or ear.failure:
            break
    return events, ear.failure


def events_of(*lines: Any, state: State | None = None) -> list[Event]:
    """The events of a whole stream; notes are left out, adjoining pieces joined."""
    events, failure = heard(raw(*lines), state=state)
    assert failure is None
    return joined(events)


def joined(events: list[Event]) -> list[Event]:
    found: list[Event] = []
    for event in events:
        last = found[-1] if found else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            found[-1] = TextDelta(last.text + event.text, last.logprobs + event.logprobs)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            found[-1] = ReasoningDelta(last.text + event.text)
        elif not isinstance(event, Opened | Noted):
            found.append(event)
    return found


def notes_of(*lines: Any, state: State | None = None) -> list[Note]:
    events, _ = heard(raw(*lines), state=state)
    told = [event.receipt for event in events if isinstance(event, Opened | Noted)]
    return [note for receipt in told for note in receipt]


DONE = Finish("stop", Usage(9, 3), "stop")
CALLED = Finish("tool_calls", Usage(9, 3), "stop")


# Streams ---------------------------------------------------------------------------------------


def test_text_and_thought_come_as_they_are() -> None:
    lines = [line(thinking="hm"), line(content="你"), line(content="好"), end()]
    assert events_of(*lines) == [ReasoningDelta("hm"), TextDelta("你好"), DONE]


def test_the_first_event_says_who_answers() -> None:
    events, _ = heard(raw(line(content="x"), end()))
    assert isinstance(events[0], Opened)
    assert events[0].upstream.model == "qwen3"


def test_an_end_without_figures_is_an_end() -> None:
    found = events_of(line(content="a"), line(done=True, content="b"))
    assert found == [TextDelta("ab"), Finish("stop", Usage(0, 0))]


def test_an_empty_answer_is_an_answer() -> None:
    assert events_of(end()) == [DONE]


@pytest.mark.parametrize("index", [0, 7])
def test_calls_of_several_lines_are_numbered_by_us(index: int) -> None:
    first = call(arguments={"city": "沈阳"}, id="call_a")
    second = call(arguments={"city": "b"}, id="call_b")
    second["function"]["index"] = index
    apart = events_of(line(tool_calls=[first]), line(tool_calls=[second]), end())
    together = events_of(line(tool_calls=[first, second]), end())
    assert apart == together
    assert apart == [
        ToolCallStart(0, "call_a", "weather"),
        ToolCallDelta(0, '{"city":"沈阳"}'),
        ToolCallStart(1, "call_b", "weather"),
        ToolCallDelta(1, '{"city":"b"}'),
        CALLED,
    ]


@pytest.mark.parametrize("identity", [{}, {"id": ""}, {"id": None}, {"id": 5}])
def test_a_call_without_an_id_gets_one_of_ours_the_same_each_time(identity: Json) -> None:
    lines = [line(tool_calls=[call(**identity), call(**identity)]), end()]
    starts = [one for one in events_of(*lines) if isinstance(one, ToolCallStart)]
    assert starts == [one for one in events_of(*lines) if isinstance(one, ToolCallStart)]
    assert len({one.id for one in starts}) == 2
    assert all(one.id.startswith("call_") for one in starts)


def test_an_id_used_twice_is_kept_once() -> None:
    lines = [line(tool_calls=[call(id="x"), call(id="x")]), end()]
    ids = [one.id for one in events_of(*lines) if isinstance(one, ToolCallStart)]
    assert ids[0] == "x"
    assert ids[1] != "x"


@pytest.mark.parametrize("identity", ["call_a", None])
@pytest.mark.parametrize("arguments", [None, {}, ""])
def test_a_call_without_arguments_says_so_and_keeps_its_id(
    arguments: Any, identity: str | None
) -> None:
    found = events_of(line(tool_calls=[call(arguments=arguments, id=identity)]), end())
    assert found[1] == ToolCallDelta(0, "{}")
    assert isinstance(found[0], ToolCallStart)
    assert found[0].id == (identity or found[0].id)


def test_text_beside_and_behind_a_call_stays_text() -> None:
    lines = [line(content="a", tool_calls=[call(id="x")]), line(content="b"), end()]
    assert [type(one) for one in events_of(*lines)] == [
        TextDelta,
        ToolCallStart,
        ToolCallDelta,
        TextDelta,
        Finish,
    ]


def test_only_the_first_call_passes_where_one_was_asked_for() -> None:
    state = State(calls=Calls("r", parallel=False), schemas={"weather": CITY})
    lines = [line(tool_calls=[call(arguments={"city": "a"}), call(arguments={})]), end()]
    found = events_of(*lines, state=state)
    assert [type(one) for one in found] == [ToolCallStart, ToolCallDelta, Finish]
    state = State(calls=Calls("r", parallel=False), schemas={"weather": CITY})
    assert [note.code for note in notes_of(*lines, state=state)] == ["parallel_calls_dropped"]


@pytest.mark.parametrize(
    ("reason", "calls", "finish", "told"),
    [
        ("stop", False, "stop", []),
        ("stop", True, "tool_calls", []),
        ("length", False, "length", []),
        ("length", True, "length", []),
        ("load", False, "stop", []),
        ("tool_calls", False, "stop", []),
        ("tool_calls", True, "tool_calls", []),
        ("unload", False, "stop", []),
        ("tired", False, "stop", ["finish_unknown"]),
        ("tired", True, "tool_calls", ["finish_unknown"]),
        ("", False, "stop", []),
    ],
)
def test_why_it_stopped(reason: str, calls: bool, finish: str, told: list[str]) -> None:
    lines = [*([line(tool_calls=[call()])] if calls else []), end(reason)]
    found = events_of(*lines)[-1]
    assert isinstance(found, Finish)
    assert (found.reason, found.native) == (finish, reason)
    assert [note.code for note in notes_of(*lines)] == told


@pytest.mark.parametrize(
    ("counts", "usage", "told"),
    [
        ({"prompt_eval_count": 9, "eval_count": 3}, Usage(9, 3), 0),
        ({"eval_count": 3}, Usage(0, 3), 1),
        ({"prompt_eval_count": "9"}, Usage(0, 0), 2),
    ],
)
def test_tokens_that_were_not_counted_are_not_guessed(
    counts: Json, usage: Usage, told: int
) -> None:
    last = {**line(done=True), "done_reason": "stop", **counts}
    assert events_of(last) == [Finish("stop", usage, "stop")]
    assert [note.code for note in notes_of(last)] == ["usage_estimated"] * told


@pytest.mark.parametrize(
    ("prompt", "completion", "told"), [(90, 5, False), (96, 1, True), (50, 50, True)]
)
def test_a_full_context_is_told(prompt: int, completion: int, told: bool) -> None:
    last = end(prompt_eval_count=prompt, eval_count=completion)
    found = [note.code for note in notes_of(last, state=State(window=100))]
    assert found == ["context_may_be_truncated"] * told


def test_log_probabilities_are_in_openais_words() -> None:
    top = {"token": "你", "logprob": -0.1}
    probable = {"token": "你", "logprob": -0.1, "bytes": [228], "top_logprobs": [top]}
    lines = [
        {**line(thinking="h"), "logprobs": [{"token": "h", "logprob": -1}]},
        {**line(content="你"), "logprobs": [probable]},
        {**line(content=""), "logprobs": [{"token": "!", "logprob": -2}]},
        end(),
    ]
    text = events_of(*lines)[1]
    entry = {"token": "你", "logprob": -0.1, "bytes": [228, 189, 160]}
    assert text == TextDelta("你", ({**entry, "bytes": [228], "top_logprobs": [entry]},))
    assert [note.code for note in notes_of(*lines)] == ["logprobs_dropped"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"city": "a"}, []),
        ({"city": 5}, ["arguments_mismatch"]),
        ({}, ["arguments_mismatch"]),
    ],
)
def test_arguments_are_checked_and_passed_on(arguments: Json, told: list[str]) -> None:
    lines = [line(tool_calls=[call(arguments=arguments)]), end()]
    state = State(schemas={"weather": CITY})
    assert [note.code for note in notes_of(*lines, state=state)] == told
    assert len(events_of(*lines, state=State(schemas={"weather": CITY}))) == 3


def test_a_tool_that_was_not_offered_is_told() -> None:
    lines = [line(tool_calls=[call("other", {})]), end()]
    assert [note.code for note in notes_of(*lines, state=State(schemas={"weather": CITY}))] == [
        "tool_unknown"
    ]


def test_arguments_that_came_as_text_stay_the_text() -> None:
    lines = [line(tool_calls=[call(arguments='{"n": 1.10}')]), end()]
    assert events_of(*lines)[1] == ToolCallDelta(0, '{"n": 1.10}')


# Failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status", "more"),
    [
        ("model 'x' not found", 404, {}),
        ("x does not support tools", 400, {}),
        ("server busy, please try again", 503, {}),
        ("llama runner process has terminated", 500, {}),
        ("unauthorized", 502, {}),
        ("you have reached your hourly usage limit", 429, {}),
        ("anything", 429, {"status_code": 429}),
        ("anything", 503, {"status": 503}),
        ("anything", 500, {"status": "x"}),
    ],
)
@pytest.mark.parametrize("opened", [True, False])
def test_an_error_in_a_stream_has_its_status(
    words: str, status: int, more: Json, opened: bool
) -> None:
    first = [line(content="a")] if opened else []
    events, failure = heard(raw(*first, {"error": words, **more}, end()))
    assert failure is not None
    assert failure.status == status
    assert words in failure.message
    assert joined(events) == [TextDelta("a")] * opened


def test_a_plain_answer_that_is_an_error_is_one() -> None:
    _, failure = heard(raw({"error": "no"}), streamed=False)
    assert isinstance(failure, UpstreamError)


@pytest.mark.parametrize(
    "said",
    [
        b"<html>\n",
        b"[]\n",
        b"null\n",
        b"{}\n",
        raw({"done": True, "done_reason": "stop"}),
        raw({"message": "text", "done": True}),
        raw(line(tool_calls=[{"function": {}}])),
        raw(line(tool_calls=["x"])),
        raw(line(tool_calls=[{"function": {"name": 5}}])),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_what_is_no_answer_is_an_error(said: bytes, streamed: bool) -> None:
    events, failure = heard(said, streamed=streamed)
    assert isinstance(failure, UpstreamError)
    assert not any(isinstance(event, Finish) for event in events)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("number", ["123456789012345678901234", "0.12345678901234567890", "1e400"])
def test_numbers_keep_their_digits(number: str, streamed: bool) -> None:
    calls = [call(arguments={"a": 0.5}), call(arguments={"n": [0.25, None]})]
    said = [line(tool_calls=calls), end()] if streamed else [line(done=True, tool_calls=calls)]
    schemas = {"weather": {"type": "object", "properties": {"n": {"type": "array"}}}}
    events, failure = heard(
        raw(*said).replace(b"0.25", number.encode()),
        state=State(schemas=schemas),
        streamed=streamed,
    )
    assert failure is None
    told = [event.arguments for event in events if isinstance(event, ToolCallDelta)]
    assert told == ['{"a":0.5}', f'{{"n":[{number},null]}}']


def test_arguments_too_deep_to_be_written_are_an_error() -> None:
    deep: Any = {}
    for _ in range(300):
        deep = {"a": deep}
    _, failure = heard(raw(line(tool_calls=[call(arguments=deep)]), end()))
    assert isinstance(failure, UpstreamError)


def test_a_stray_object_between_the_lines_is_skipped() -> None:
    assert events_of(line(content="a"), {"status": "x"}, line(content="b"), end()) == [
        TextDelta("ab"),
        DONE,
    ]


def test_what_stands_behind_the_end_is_not_read() -> None:
    assert events_of(line(content="a"), end(), line(content="b"), end()) == [TextDelta("a"), DONE]


@pytest.mark.parametrize("message", [{"content": None, "thinking": []}, {"thinking": 5}, {}])
def test_odd_members_of_a_message_are_nothing(message: Json) -> None:
    odd = {**line(), "message": message}
    assert events_of(odd, end()) == [DONE]


@pytest.mark.parametrize("message", [{"content": 5}, {"tool_calls": True}, {"tool_calls": "f"}, 5])
def test_what_may_have_been_text_or_a_call_is_never_left_out(message: Any) -> None:
    _, failure = heard(raw(line(content="a"), {**line(), "message": message}, end()))
    assert isinstance(failure, UpstreamError)


# Cuts ------------------------------------------------------------------------------------------

LONG = (
    line(thinking="想"),
    line(content="沈"),
    line(content="", tool_calls=[call(arguments={"city": "阳"}, id="call_a")]),
    line(content="!", tool_calls=[call(id="call_b")]),
    end(),
)


def test_every_cut_of_the_bytes_gives_the_same_events() -> None:
    whole = raw(*LONG)
    expected, _ = heard(whole)
    for at in range(len(whole) + 1):
        events, failure = heard(whole[:at], whole[at:])
        assert failure is None
        assert joined(events) == joined(expected)
    singly, _ = heard(*(whole[at : at + 1] for at in range(len(whole))))
    assert joined(singly) == joined(expected)


def test_every_truncation_is_an_error_and_never_an_end() -> None:
    whole = raw(*LONG).rstrip()
    for at in range(len(whole)):
        events, failure = heard(whole[:at])
        assert isinstance(failure, Truncated)
        assert not any(isinstance(event, Finish) for event in events)


def test_the_last_line_needs_no_line_break() -> None:
    events, failure = heard(raw(*LONG).rstrip())
    assert failure is None
    assert joined(events) == events_of(*LONG)


# Plain answers ---------------------------------------------------------------------------------


def test_a_plain_answer_says_the_same_as_a_stream() -> None:
    calls = [call(arguments={"city": "a"}, id="call_a"), call(id="call_b")]
    whole = end(message={"content": "text", "thinking": "hm", "tool_calls": calls})
    plain, _ = heard(raw(whole), streamed=False)
    apart = [line(thinking="hm"), line(content="te"), line(content="xt", tool_calls=calls), end()]
    assert joined(plain) == events_of(*apart)


def test_a_plain_answer_may_leave_done_out_but_not_deny_it() -> None:
    whole = end(message={"content": "text"})
    del whole["done"]
    events, failure = heard(raw(whole), streamed=False)
    assert (joined(events), failure) == ([TextDelta("text"), DONE], None)
    _, failure = heard(raw(line(content="text")), streamed=False)
    assert isinstance(failure, Truncated)


# Calls by grammar ------------------------------------------------------------------------------


def shaped(must_call: bool = True) -> State:
    return State(shaped=True, must_call=must_call, schemas={"weather": CITY})


def test_an_answer_shaped_as_a_call_becomes_one_in_any_pieces() -> None:
    text = ' {\n "name": "weather",\n "arguments": {"city": "沈阳", "n": 1.50} } '
    for size in range(1, len(text) + 1):
        pieces = [line(content=text[at : at + size]) for at in range(0, len(text), size)]
        found = events_of(line(thinking="hm"), *pieces, end(), state=shaped())
        assert [type(one) for one in found] == [
            ReasoningDelta,
            ToolCallStart,
            ToolCallDelta,
            Finish,
        ]
        assert found[2] == ToolCallDelta(0, '{"city": "沈阳", "n": 1.50}')
        assert found[3] == CALLED
    plain, _ = heard(raw(end(message={"content": text})), state=shaped(), streamed=False)
    assert joined(plain)[1:] == found[2:]


def test_a_shaped_call_that_was_cut_stays_as_far_as_it_came() -> None:
    lines = [line(content='{"name":"weather","arguments":{"city":"沈'), end("length")]
    found = events_of(*lines, state=shaped())
    assert found[1:] == [ToolCallDelta(0, '{"city":"沈'), Finish("length", Usage(9, 3), "length")]
    assert [note.code for note in notes_of(*lines, state=shaped())] == ["arguments_invalid"]


@pytest.mark.parametrize(
    "text",
    [
        "I will not.",
        '{"name":',
        '{"name":"other","arguments":{}}',
        '{"name":"weather","arguments":[]}',
        '{"name":"weather","arguments":{},"more":1}',
        '{"name":"weather","arguments":{}',
        '{"name":5,"arguments":{}}',
        '{"answer":1}',
        'x{"name":"weather","arguments":{}}',
    ],
)
@pytest.mark.parametrize("must_call", [True, False])
def test_other_text_stays_text_and_the_missing_call_is_told(text: str, must_call: bool) -> None:
    lines = [*(line(content=letter) for letter in text), end()]
    assert events_of(*lines, state=shaped(must_call)) == [TextDelta(text), DONE]
    told = [note.code for note in notes_of(*lines, state=shaped(must_call))]
    assert told == ["tool_choice_not_enforced"] * must_call


def test_text_that_can_no_longer_be_a_call_leaves_at_once() -> None:
    ear = listener(shaped(must_call=False))
    assert joined([*ear.feed(raw(line(content='{ "na')))]) == []
    assert joined([*ear.feed(raw(line(content='tion": 1')))]) == [TextDelta('{ "nation": 1')]
    assert joined([*ear.feed(raw(line(content="}")))]) == [TextDelta("}")]


@pytest.mark.parametrize("begins", ['{"name": "W', '{"name": "weather", "t', '{"name": 5'])
def test_an_answer_that_begins_with_a_name_leaves_when_no_tool_has_it(begins: str) -> None:
    ear = listener(shaped(must_call=False))
    assert joined([*ear.feed(raw(line(content='{"name": ')))]) == []
    rest = begins.removeprefix('{"name": ')
    assert joined([*ear.feed(raw(line(content=rest)))]) == [TextDelta(begins)]


def test_a_native_call_keeps_the_promise_as_well() -> None:
    lines = [line(tool_calls=[call(arguments={"city": "a"})]), end()]
    assert notes_of(*lines, state=shaped()) == []


def test_shaped_arguments_are_checked() -> None:
    lines = [line(content='{"name":"weather","arguments":{"city":5}}'), end()]
    assert [note.code for note in notes_of(*lines, state=shaped())] == ["arguments_mismatch"]


# Thoughts inside the text ----------------------------------------------------------------------


def test_a_tag_is_only_text_where_the_model_is_not_known_for_it() -> None:
    text = "<think>a</think>b"
    assert events_of(line(content=text), end()) == [TextDelta(text), DONE]


THOUGHTS: list[tuple[str, str, str]] = [
    ("<think>a b</think>c", "a b", "c"),
    ("\n <think>\na\n</think>\n\nc </think> <think>d", "\na\n", "c </think> <think>d"),
    ("plain <think>a</think>", "", "plain <think>a</think>"),
    ("<thinkers>a", "", "<thinkers>a"),
    ("<thinking>a</think></thinking>b", "a</think>", "b"),
    *((f"{opener}a b{closer}\nc", "a b", "c") for opener, closer in TAGS.items()),
    ("<thi", "", "<thi"),
    ("<think>never closed </thin", "never closed </thin", ""),
    ("<think></think>", "", ""),
    ("<think>a</think>  \n", "a", ""),
    ("  text", "", "  text"),
]


@pytest.mark.parametrize(("text", "thought", "answer"), THOUGHTS)
def test_a_thought_at_the_start_is_split_off_in_any_pieces(
    text: str, thought: str, answer: str
) -> None:
    expected: list[Event] = [ReasoningDelta(thought)] * bool(thought)
    expected += [TextDelta(answer)] * bool(answer)
    for size in range(1, len(text) + 1):
        pieces = [line(content=text[at : at + size]) for at in range(0, len(text), size)]
        found = events_of(*pieces, end(), state=State(thought=Splitter()))
        assert found == [*expected, DONE]


# Laws ------------------------------------------------------------------------------------------

LINES = st.lists(
    st.one_of(
        st.builds(lambda text: line(content=text), st.text(max_size=5)),
        st.builds(lambda text: line(thinking=text), st.text(max_size=5)),
        st.builds(
            lambda names: line(tool_calls=[call(name, {"a": name}) for name in names]),
            st.lists(st.sampled_from(["a", "b"]), max_size=3),
        ),
    ),
    max_size=8,
)


@settings(max_examples=80, deadline=None)
@given(LINES, st.sampled_from(["stop", "length", "load"]), st.data())
def test_the_promises_hold_for_any_lines_and_any_cuts(
    lines: list[Json], reason: str, data: st.DataObject
) -> None:
    whole = raw(*lines, end(reason))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True) if a < b]
    events, failure = heard(*pieces)
    assert failure is None
    assert joined(events) == events_of(*lines, end(reason))
    assert [type(one) for one in events].count(Opened) == 1
    assert isinstance(events[0], Opened)
    assert isinstance(events[-1], Finish)
    starts = [one.index for one in events if isinstance(one, ToolCallStart)]
    assert starts == list(range(len(starts)))
    assert all(one.text for one in events if isinstance(one, TextDelta | ReasoningDelta))
    if reason == "stop" and starts:
        assert events[-1].reason == "tool_calls"


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["message", "content", "tool_calls", "function", "name", "done", "error"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=10,
    )
)
def test_whatever_the_server_sends_is_read_or_is_its_error(said: Any) -> None:
    for streamed in (True, False):
        events, failure = heard(raw(said), streamed=streamed)
        ended = any(isinstance(event, Finish) for event in events)
        assert ended != isinstance(failure, GatewayError)
