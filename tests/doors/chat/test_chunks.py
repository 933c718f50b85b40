"""The chunks of a stream: OpenAI's grammar, whatever the events; and the same answer as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import RateLimited, Truncated
from adapters.protocol import (
    Aside,
    CallKind,
    Event,
    Finish,
    FinishReason,
    Json,
    Note,
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
from middleware.doors.chat import Chunks, Fold, Heading, error_body, error_frame
from middleware.doors.x_usetool import warnings_header

OPENED = Opened((), Upstream("up"))
USAGE = Usage(3, 4)
END = Finish("stop", USAGE)
NOTE = Note("code", "field", "text")
LOGPROB = {"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}
KINDS: tuple[CallKind, ...] = ("function", "custom")
REASONS: tuple[FinishReason, ...] = ("stop", "length", "tool_calls", "content_filter")


def heading(legacy: bool = False, usage_chunk: bool = False) -> Heading:
    return Heading("chatcmpl-1", 1763456400, "客户", legacy, usage_chunk)


def read(frames: bytes) -> list[Json]:
    """The chunks of a complete stream, without its `[DONE]`."""
    *data, done, rest = frames.split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    return [chunk_of(frame) for frame in data]


def chunk_of(frame: bytes) -> Json:
    assert frame.startswith(b"data: {")
    assert b"\n" not in frame
    chunk: Json = orjson.loads(frame[6:])
    return chunk


def written(*events: Event, legacy: bool = False, usage_chunk: bool = False) -> list[Json]:
    return read(Chunks(heading(legacy, usage_chunk)).render([OPENED, *events]))


def deltas(*events: Event, legacy: bool = False) -> list[Json]:
    """What stands between the role and the reason."""
    chunks = written(*events, END, legacy=legacy)
    return [chunk["choices"][0]["delta"] for chunk in chunks[1:-1]]


def whole(*events: Event, legacy: bool = False) -> Json:
    fold = Fold(heading(legacy))
    fold.add([OPENED, *events])
    said: Json = orjson.loads(fold.body())
    return said


# Any answer ------------------------------------------------------------------------------------

texts = st.text(min_size=1, max_size=8)
notes = st.builds(Note, st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"]), texts)
logprobs = st.lists(st.just(LOGPROB), max_size=2).map(tuple)
asides = st.builds(
    Aside,
    st.sampled_from(["annotations", "images", "thinking_blocks"]),
    st.lists(st.just({"type": "x"}), min_size=1, max_size=2),
)
small = (
    st.builds(TextDelta, texts, logprobs)
    | st.builds(ReasoningDelta, texts)
    | st.builds(RefusalDelta, texts)
    | asides
    | st.builds(Noted, st.lists(notes, min_size=1, max_size=2).map(tuple))
)
pieces = st.lists(texts, min_size=1, max_size=3)
calls = st.tuples(texts, st.sampled_from(KINDS), pieces)
usages = st.none() | st.builds(
    Usage,
    st.integers(0, 9),
    st.integers(0, 9),
    st.none() | st.integers(0, 9),
    st.none() | st.integers(0, 9),
    st.none() | st.integers(0, 9),
)
finishes = st.builds(Finish, st.sampled_from(REASONS), usages)


@st.composite
def answers(draw: st.DrawFn, most_calls: int = 3) -> list[Event]:
    """What a leaf may yield behind `Opened`."""
    parts = draw(st.lists(small | calls, max_size=8))
    events: list[Event] = []
    index = 0
    for part in parts:
        if not isinstance(part, tuple):
            events.append(part)
        elif index < most_calls:
            name, kind, arguments = part
            events.append(ToolCallStart(index, f"call_{index}", name, kind))
            events += [ToolCallDelta(index, piece) for piece in arguments]
            index += 1
    return [*events, draw(finishes)]


class Grammar:
    """Reads one stream as a client does, and fails where OpenAI's state machine would."""

    def __init__(self, usage_chunk: bool) -> None:
        self.usage_chunk = usage_chunk
        self.message: Json = {}
        self.calls: list[Json] = []
        self.logprobs: list[Json] = []
        self.reason: str | None = None
        self.usage: Json | None = None
        self.warnings: list[Json] = []

    def read(self, chunks: Sequence[Json]) -> None:
        first, *rest = chunks
        self._check_heading(chunks)
        self._check_role(first)
        if self.usage_chunk:
            *rest, last = rest
            assert last["choices"] == []
            self.usage = last["usage"]
        *body, end = rest
        for chunk in body:
            self._read_body(chunk)
        self._read_end(end)

    def _check_heading(self, chunks: Sequence[Json]) -> None:
        names = ("id", "object", "created", "model")
        heads = {tuple(chunk[name] for name in names) for chunk in chunks}
        assert heads == {("chatcmpl-1", "chat.completion.chunk", 1763456400, "客户")}
        for chunk in chunks[:-1] if self.usage_chunk else chunks:
            assert ("usage" in chunk) is self.usage_chunk
            assert chunk.get("usage") is None
            (choice,) = chunk["choices"]
            assert set(choice) == {"index", "delta", "logprobs", "finish_reason"}
            assert choice["index"] == 0

    def _check_role(self, chunk: Json) -> None:
        delta = chunk["choices"][0]["delta"]
        assert delta in ({"role": "assistant", "content": content} for content in ("", None))
        self.message = dict(delta)

    def _read_body(self, chunk: Json) -> None:
        choice = chunk["choices"][0]
        assert choice["finish_reason"] is None
        assert "x_usetool" not in chunk
        ((name, value),) = choice["delta"].items()
        if choice["logprobs"]:
            assert name == "content"
            self.logprobs += choice["logprobs"]["content"]
        if name == "tool_calls":
            self._read_call(*value)
        else:
            assert value
            self._join(name, value)

    def _join(self, name: str, value: Any) -> None:
        known = self.message.get(name)
        self.message[name] = value if known is None else known + value

    def _read_call(self, piece: Json) -> None:
        if "id" in piece:
            assert piece["index"] == len(self.calls)
            assert set(piece) == {"index", "id", "type", piece["type"]}
            self.calls.append({name: piece[name] for name in piece if name != "index"})
            return
        assert piece["index"] == len(self.calls) - 1
        call = self.calls[-1]
        assert set(piece) == {"index", call["type"]}
        ((name, text),) = piece[call["type"]].items()
        assert text
        call[call["type"]][name] += text

    def _read_end(self, chunk: Json) -> None:
        choice = chunk["choices"][0]
        assert choice["finish_reason"] in REASONS
        self.reason = choice["finish_reason"]
        for name, value in choice["delta"].items():
            self._join(name, value)
        self.warnings = chunk.get("x_usetool", {}).get("warnings", [])

    def said(self) -> Json:
        message = {"refusal": None, **self.message}
        if self.calls:
            message["tool_calls"] = self.calls
        return message


def batches(events: Sequence[Event], places: Sequence[int]) -> Iterator[Sequence[Event]]:
    """Cut a stream into reads; `Opened` leaves together with what opened it."""
    edges = sorted({place % len(events) for place in places} - {0, 1} | {len(events)})
    start = 0
    for edge in edges:
        yield events[start:edge]
        start = edge


@given(answers(), st.booleans(), st.lists(st.integers(0, 99), max_size=5))
def test_every_answer_is_written_in_openais_grammar(
    events: list[Event], usage_chunk: bool, places: list[int]
) -> None:
    chunks = Chunks(heading(usage_chunk=usage_chunk))
    frames = b"".join(chunks.render(batch) for batch in batches([OPENED, *events], places))
    grammar = Grammar(usage_chunk)
    grammar.read(read(frames))
    assert frames == Chunks(heading(usage_chunk=usage_chunk)).render([OPENED, *events])


@given(answers(), st.booleans())
def test_a_folded_stream_is_the_plain_answer(events: list[Event], usage_chunk: bool) -> None:
    grammar = Grammar(usage_chunk)
    grammar.read(written(*events, usage_chunk=usage_chunk))
    plain = whole(*events)
    (choice,) = plain["choices"]
    message = grammar.said()
    # The one thing a stream cannot know when it begins is that it will have no text.
    for said in (message, choice["message"]):
        said["content"] = said["content"] or None
    assert message == choice["message"]
    assert grammar.reason == choice["finish_reason"]
    assert grammar.logprobs == (choice["logprobs"] or {"content": []})["content"]
    if usage_chunk and "usage" in plain:
        assert grammar.usage == plain["usage"]


@given(answers(), st.lists(notes, max_size=2))
def test_what_is_learned_late_is_on_the_finish_chunk(
    events: list[Event], receipt: list[Note]
) -> None:
    chunks, grammar = Chunks(heading()), Grammar(usage_chunk=False)
    chunks.late(tuple(receipt))
    grammar.read(read(chunks.render([OPENED, *events])))
    told = [
        *receipt,
        *(note for event in events if isinstance(event, Noted) for note in event.receipt),
    ]
    assert grammar.warnings == [note._asdict() for note in told]


# Kind by kind ----------------------------------------------------------------------------------


def test_a_text_begins_with_an_empty_one() -> None:
    role = written(TextDelta("a"), END)[0]["choices"][0]["delta"]
    assert role == {"role": "assistant", "content": ""}


@pytest.mark.parametrize(
    "first",
    [
        (ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}")),
        (ReasoningDelta("a"),),
        (RefusalDelta("a"),),
        (Noted((NOTE,)), ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}")),
    ],
)
def test_what_begins_without_a_text_begins_with_null(first: tuple[Event, ...]) -> None:
    role = written(*first, END)[0]["choices"][0]["delta"]
    assert role == {"role": "assistant", "content": None}


def test_a_plain_answer_has_openais_members_and_the_clients_name_for_the_model() -> None:
    said = whole(TextDelta("a"), END)
    assert said == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1763456400,
        "model": "客户",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "a", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }


def test_an_empty_answer_is_a_role_and_a_reason() -> None:
    first, last = written(END)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert last["choices"][0] == {
        "index": 0,
        "delta": {},
        "logprobs": None,
        "finish_reason": "stop",
    }


def test_a_call_says_its_id_and_name_once_and_its_arguments_in_pieces() -> None:
    events = (
        ToolCallStart(0, "a", "f"),
        ToolCallDelta(0, '{"城":'),
        ToolCallDelta(0, "1}"),
        ToolCallStart(1, "b", "g"),
        ToolCallDelta(1, "{}"),
    )
    assert [delta["tool_calls"] for delta in deltas(*events)] == [
        [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}],
        [{"index": 0, "function": {"arguments": '{"城":'}}],
        [{"index": 0, "function": {"arguments": "1}"}}],
        [{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}],
        [{"index": 1, "function": {"arguments": "{}"}}],
    ]


def test_a_custom_call_has_an_input() -> None:
    events = (ToolCallStart(0, "a", "f", "custom"), ToolCallDelta(0, "x"), ToolCallDelta(0, "y"))
    assert [delta["tool_calls"] for delta in deltas(*events)] == [
        [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": ""}}],
        [{"index": 0, "custom": {"input": "x"}}],
        [{"index": 0, "custom": {"input": "y"}}],
    ]
    (call,) = whole(*events, END)["choices"][0]["message"]["tool_calls"]
    assert call == {"id": "a", "type": "custom", "custom": {"name": "f", "input": "xy"}}


def test_a_function_call_after_a_custom_one_has_arguments_again() -> None:
    events = (ToolCallStart(0, "a", "f", "custom"), ToolCallDelta(0, "x"))
    last = (ToolCallStart(1, "b", "g"), ToolCallDelta(1, "{}"))
    assert deltas(*events, *last)[-1]["tool_calls"] == [
        {"index": 1, "function": {"arguments": "{}"}}
    ]


def test_who_sent_functions_gets_a_function_call() -> None:
    events = (
        TextDelta("a"),
        ToolCallStart(0, "a", "f"),
        ToolCallDelta(0, "{"),
        ToolCallDelta(0, "}"),
    )
    end = Finish("tool_calls", USAGE)
    assert deltas(*events, legacy=True)[1:] == [
        {"function_call": {"name": "f", "arguments": ""}},
        {"function_call": {"arguments": "{"}},
        {"function_call": {"arguments": "}"}},
    ]
    assert written(*events, end, legacy=True)[-1]["choices"][0]["finish_reason"] == "function_call"
    (choice,) = whole(*events, end, legacy=True)["choices"]
    assert choice["finish_reason"] == "function_call"
    assert choice["message"]["function_call"] == {"name": "f", "arguments": "{}"}
    assert "tool_calls" not in choice["message"]


def test_another_reason_is_the_same_for_who_sent_functions() -> None:
    assert written(END, legacy=True)[-1]["choices"][0]["finish_reason"] == "stop"
    assert whole(END, legacy=True)["choices"][0]["finish_reason"] == "stop"


def test_probabilities_stand_beside_their_text() -> None:
    chunks = written(TextDelta("a", (LOGPROB,)), TextDelta("b"), TextDelta("c", (LOGPROB,)), END)
    said = [(chunk["choices"][0]["delta"], chunk["choices"][0]["logprobs"]) for chunk in chunks]
    one = {"content": [LOGPROB], "refusal": None}
    assert said[1:-1] == [
        ({"content": "a"}, one),
        ({"content": "b"}, None),
        ({"content": "c"}, one),
    ]
    plain = whole(TextDelta("a", (LOGPROB,)), TextDelta("c", (LOGPROB,)), END)
    assert plain["choices"][0]["logprobs"] == {"content": [LOGPROB] * 2, "refusal": None}


def test_further_members_of_the_message_come_as_they_are() -> None:
    assert deltas(Aside("annotations", [1]), TextDelta("a")) == [
        {"annotations": [1]},
        {"content": "a"},
    ]


def test_thoughts_to_echo_stand_on_the_finish_chunk() -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "s"}
    events = (ReasoningDelta("hm"), Aside("thinking_blocks", [block]), END)
    assert deltas(*events[:-1]) == [{"reasoning_content": "hm"}]
    assert written(*events)[-1]["choices"][0]["delta"] == {"thinking_blocks": [block]}
    assert whole(*events)["choices"][0]["message"]["thinking_blocks"] == [block]


def test_a_refusal_leaves_no_text() -> None:
    message = whole(RefusalDelta("n"), RefusalDelta("o"), END)["choices"][0]["message"]
    assert message == {"role": "assistant", "content": None, "refusal": "no"}


@pytest.mark.parametrize(
    ("events", "content"),
    [
        ((END,), ""),
        ((TextDelta("a"), END), "a"),
        ((ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}"), END), None),
        ((TextDelta("a"), ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}"), END), "a"),
    ],
)
def test_the_content_of_a_plain_answer_is_null_only_where_something_else_is_said(
    events: tuple[Event, ...], content: str | None
) -> None:
    assert whole(*events)["choices"][0]["message"]["content"] == content


def test_who_answered_is_in_every_chunk() -> None:
    opened = Opened((), Upstream("up", fingerprint="fp", tier="default"))
    for chunk in read(Chunks(heading(usage_chunk=True)).render([opened, TextDelta("a"), END])):
        assert (chunk["system_fingerprint"], chunk["service_tier"]) == ("fp", "default")
    fold = Fold(heading())
    fold.add([opened, END])
    said = orjson.loads(fold.body())
    assert (said["system_fingerprint"], said["service_tier"]) == ("fp", "default")


# Usage -----------------------------------------------------------------------------------------


def test_usage_says_what_the_upstream_said_and_no_more() -> None:
    bare = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert whole(END)["usage"] == bare
    assert written(END, usage_chunk=True)[-1]["usage"] == bare
    full = Usage(3, 4, 1, 0, 2, {"prompt_tokens_details": {"audio_tokens": 5}})
    assert whole(Finish("stop", full))["usage"] == {
        **bare,
        "prompt_tokens_details": {"audio_tokens": 5, "cached_tokens": 1, "cache_write_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }


def test_unknown_usage_is_absent_and_where_it_was_asked_for_called_unknown() -> None:
    assert "usage" not in whole(Finish("stop"))
    assert "x_usetool" not in written(Finish("stop"))[-1]
    *_, finish, last = written(Finish("stop"), usage_chunk=True)
    assert last["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    (note,) = finish["x_usetool"]["warnings"]
    assert (note["code"], note["field"]) == ("usage_unknown", "usage")


# Ends that are none, and headers ---------------------------------------------------------------


@pytest.mark.parametrize("events", [(), (OPENED,), (OPENED, TextDelta("a"))])
def test_an_answer_without_an_end_is_no_answer(events: tuple[Event, ...]) -> None:
    fold = Fold(heading())
    fold.add(events)
    with pytest.raises(Truncated):
        fold.body()


def test_an_error_has_openais_members_as_body_and_as_frame() -> None:
    error = RateLimited("slow down", param="model")
    said = {
        "error": {
            "message": "slow down (request id req_1)",
            "type": "rate_limit_error",
            "param": "model",
            "code": "rate_limit_exceeded",
        }
    }
    assert orjson.loads(error_body(error, "req_1")) == said
    assert error_frame(error, "req_1") == b"data: " + orjson.dumps(said) + b"\n\n"
    assert orjson.loads(error_body(error))["error"]["message"] == "slow down"


@pytest.mark.parametrize(
    ("fields", "header"),
    [
        (["a"], "code:a"),
        (["a", "b", "a"], "code:a, code:b"),
        ([""], "code"),
        (["tools[0].function.strict"], "code:tools[0].function.strict"),
        (["查询"], "code:\\u67e5\\u8be2"),
        (["a\r\nset-cookie: b"], "code:a\\r\\nset-cookie: b"),
        (["\x00\x7f"], "code:\\x00\\x7f"),
    ],
)
def test_the_warnings_header_is_one_line_of_ascii(fields: list[str], header: str) -> None:
    assert warnings_header(tuple(Note("code", field, "t") for field in fields)) == header


def test_a_long_warnings_header_ends_at_a_whole_entry() -> None:
    fitting = tuple(Note("c" * 8, f"{n:07}", "t") for n in range(110))
    header = warnings_header((*fitting, Note("c" * 12, "f" * 7, "t")))
    assert len(header) == 2000
    assert header.endswith("c:fffffff")
    longer = warnings_header((*fitting, Note("c" * 13, "f" * 7, "t")))
    assert longer == ", ".join([*(f"cccccccc:{n:07}" for n in range(110)), "more"])


@pytest.mark.parametrize(
    ("known", "value", "both"),
    [
        (None, [1], [1]),
        ([1], [2], [1, 2]),
        ("a", "b", "ab"),
        ({"a": 1, "b": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ([1], "b", "b"),
        ("a", [2], [2]),
        ({"a": 1}, [2], [2]),
        ([1], {"b": 2}, {"b": 2}),
    ],
)
def test_pieces_of_a_member_are_joined_where_they_can_be(known: Any, value: Any, both: Any) -> None:
    pieces = [Aside("x", piece) for piece in (known, value) if piece is not None]
    assert whole(*pieces, END)["choices"][0]["message"]["x"] == both
