"""The chunks of a stream: OpenAI's grammar, whatever the events; and the same answer as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

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
from middleware.doors.chat.chunks import Chunks
from middleware.doors.chat.fold import Fold
from tests.doors.chat.written import LOGPROB, OPENED, heading, read, whole, written

KINDS: tuple[CallKind, ...] = ("function", "custom")
REASONS: tuple[FinishReason, ...] = ("stop", "length", "tool_calls", "content_filter")


# Any answer ------------------------------------------------------------------------------------


texts = st.text(min_size=1, max_size=8) | st.sampled_from(["\0", ",\0,", '",'])
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


@given(answers(), st.lists(small | pieces, min_size=1, max_size=3), st.booleans())
def test_many_events_at_once_are_written_as_each_alone(
    events: list[Event], said: list[Event | list[str]], usage_chunk: bool
) -> None:
    many: list[Event] = []
    for one in said:
        alike = [ToolCallDelta(0, text) for text in one] if isinstance(one, list) else [one]
        many += alike * BURST
    *events, finish = events
    events = [OPENED, ToolCallStart(0, "call_0", "f"), *events, *many, *events, finish]
    alone = Chunks(heading(usage_chunk=usage_chunk))
    frames = [alone.render(batch) for batch in batches(events, range(len(events)))]
    assert b"".join(frames) == Chunks(heading(usage_chunk=usage_chunk)).render(events)
    one_by_one, together = Fold(heading()), Fold(heading())
    for event in events:
        one_by_one.add([event])
    together.add(events)
    assert one_by_one.body() == together.body()


def test_an_answer_that_opens_anew_is_written_as_often_in_a_burst() -> None:
    events: list[Event] = [OPENED, OPENED, *[TextDelta("a")] * BURST]
    alone = Chunks(heading())
    frames = [alone.render([event]) for event in events]
    assert b"".join(frames) == Chunks(heading()).render(events)


def test_texts_of_which_some_have_logprobs_are_written_as_each_alone() -> None:
    mixed: list[Event] = [TextDelta("a"), TextDelta("b", (LOGPROB,)), TextDelta("c")] * BURST
    alone, together = (Chunks(heading()) for _ in range(2))
    frames = [alone.render([event]) for event in [OPENED, *mixed]]
    assert b"".join(frames) == together.render([OPENED, *mixed])
    whole = Fold(heading())
    whole.add(mixed)
    assert whole.logprobs == [LOGPROB] * BURST


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
    chunks.keep_for_last_frame(tuple(receipt))
    grammar.read(read(chunks.render([OPENED, *events])))
    told = [
        *receipt,
        *(note for event in events if isinstance(event, Noted) for note in event.receipt),
    ]
    assert grammar.warnings == [note._asdict() for note in told]
