"""What comes at once says the same as what comes piece by piece."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.claude.decode import State, close, decode, decode_answer
from adapters.protocol import (
    Json,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from adapters.shared.calls import Calls
from adapters.wire.exchange import Exchange
from adapters.wire.framing import Sse
from tests.adapters.together import Heard, heard_of, listener_of
from tests.support.cuts import cut, cuts
from tests.support.upstreams.claude_wire import begin, call, end, sse, text, thought


def exchange_of(state: State) -> Exchange[State]:
    return Exchange("", {}, (), state, True, Sse, decode, close, decode_answer)


def listen(*pieces: bytes) -> Heard:
    return heard_of(exchange_of(State(Calls("req_1", custom=frozenset({"free"})))), *pieces)


def one_by_one(data: bytes) -> Heard:
    """In pieces of one frame: none has another to be alike to."""
    *frames, rest = data.split(b"\n\n")
    return listen(*[frame + b"\n\n" for frame in frames], *([rest] if rest else []))


WORDS = st.lists(
    st.sampled_from(["a", "", "{", "}", '{"a":', '"b"}', "沈", '\\"', "\n"]), max_size=9
)
BLOCKS = st.one_of(
    WORDS.map(lambda said: [*text(0, *said)]),
    WORDS.map(lambda said: [*thought(0, *said)]),
    WORDS.map(lambda said: [*call(0, "toolu_1", "get_weather", *said)]),
    WORDS.map(lambda said: [*call(0, "toolu_2", "free", *said)]),
)


def delta(**said: object) -> Json:
    return {"type": "content_block_delta", "index": 0, "delta": said}


ODD = st.sampled_from(
    [
        {"type": "ping"},
        delta(type="text_delta", text="b"),
        delta(type="text_delta", text=None),
        delta(type="text_delta", text=7),
        delta(type="input_json_delta", partial_json="c"),
        delta(type="thinking_delta", thinking="d", estimated_tokens=3),
        delta(type="text_delta", text="e", more="f"),
        delta(text="g", type="text_delta"),
        {**delta(type="text_delta", text="h"), "index": 1},
        delta(type="text_delta", text="i.", inner={"text": "i"}),
        delta(type=[]),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "content_block": {"type": "server_tool_use"}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
    ]
)


@given(
    blocks=st.lists(BLOCKS, max_size=4),
    odd=st.lists(st.tuples(st.integers(0, 40), ODD), max_size=3),
    places=cuts(3),
)
def test_frames_that_come_together_say_what_they_say_alone(
    blocks: list[list[Json]], odd: list[tuple[int, Json]], places: list[int]
) -> None:
    events = [begin(), *[event for block in blocks for event in block], *end()]
    for place, event in odd:
        events.insert(place, event)
    data = sse(*events)
    alone = one_by_one(data)
    assert listen(data) == alone
    assert listen(*filter(None, cut(data, places))) == alone


def test_each_text_stays_an_event_of_its_own() -> None:
    words = [str(at) for at in range(50)]
    said, *_ = listen(
        sse(begin(), *thought(0, *words), *text(1, *words), *call(2, "t", "f", '{"a":', *words))
    )
    assert [event.text for event in said if isinstance(event, ReasoningDelta)] == words
    assert [event.text for event in said if isinstance(event, TextDelta)] == words
    pieces = [event.arguments for event in said if isinstance(event, ToolCallDelta)]
    assert pieces == ['{"a":', *words]


@pytest.mark.parametrize(
    ("said", "around", "guesses"), [("", "", 7), ("a", "", 8), ("a", "b" * 2000, 0)]
)
def test_what_frames_look_like_is_guessed_eight_times_in_vain_and_never_of_one_alone(
    said: str, around: str, guesses: int
) -> None:
    opening, *_ = thought(0)
    frames = [opening, *[delta(type="thinking_delta", thinking=said, more=around)] * 50]
    together, alone = (listener_of(exchange_of(State())) for _ in range(2))
    together.feed(sse(*frames))
    for frame in frames:
        alone.feed(sse(frame))
    assert together.state.guesses == guesses
    assert alone.state.alike is None


def test_spaces_that_hide_how_long_a_text_is_change_nothing() -> None:
    frames = [
        orjson.dumps(delta(type="text_delta", text=f"w{at}"))[:-1] + b" " * (at % 4) + b"}"
        for at in range(20)
    ]
    data = sse(begin(), *[*text(0, "first")][:2])
    data += b"".join(b"event: content_block_delta\ndata: %b\n\n" % frame for frame in frames)
    data += sse({"type": "content_block_stop", "index": 0}, *end())
    assert listen(data) == one_by_one(data)


def test_a_text_that_stands_elsewhere_is_not_taken_for_the_one_that_is_said() -> None:
    frame = delta(type="text_delta", text="a.", inner={"text": "a"})
    said, *_ = listen(sse(begin(), *[*text(0)][:1], *[frame] * 9))
    assert [event for event in said if isinstance(event, TextDelta)] == [TextDelta("a.")] * 9


def test_a_delta_whose_type_is_no_text_is_passed_over() -> None:
    opening, *rest = text(0, "a")
    said, _, broken, _ = listen(
        sse(begin(), opening, delta(type=[]), delta(type={}), *rest, *end())
    )
    assert said[0] == TextDelta("a")
    assert broken == "None"
