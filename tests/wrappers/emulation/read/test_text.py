"""The reader and text: what is no call stays, thoughts are told apart, nothing waits for long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.protocol import FinishReason
from adapters.shared.calls import Calls
from adapters.shared.think_tags import TAGS
from middleware.wrappers.emulation.formats.table import TOKEN
from middleware.wrappers.emulation.read.reader import Reader
from middleware.wrappers.emulation.read.rules import ReadRules
from tests.linear.measuring import Work, is_within, seconds
from tests.wrappers.emulation.read.reading import (
    CANONICAL,
    NOW,
    OSLO,
    TOOLS,
    Call,
    Seen,
    block,
    cut_everywhere,
    read,
)

PROSE = [
    "You can USE_TOOL when needed. NO_TOOL is a word too.",
    "USE_TOOL is what I would write.\nNow more.",
    "Text.\nUSE_TOOL\n\nand nothing behind it",
    "The <tool_call> tag belongs to Hermes; [TOOL_CALLS] is Mistral's and <invoke> is Claude's.",
    'Example:\n```json\n{"city": "Paris", "ok": true}\n```\nThat is all.',
    '{"city": "Oslo"}',
    '[{"key": "value"}] and more',
    "1. one\n2. two\n\n- a\n- b\n\n> quote\n\n# head\n**bold** `code`",
    'Use {"name": "get_weather"} inline.',
    "  leading and trailing  \n",
    "a < b and c[0] << 3 </div>",
    "Action: think hard\nNothing else.",
    "No, I would not. Use the door. Tools are heavy.",
]


@pytest.mark.parametrize("text", PROSE)
def test_prose_comes_out_as_it_is(text: str) -> None:
    for pieces in ([text], list(text)):
        seen = read(pieces)
        assert seen.text == text
        assert not seen.calls
        assert not seen.reader.judge.open


def test_one_exact_call_in_json_amid_prose_is_a_call_and_two_are_examples() -> None:
    one = 'Sure:\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\nWait.'
    assert read([one]).made() == [OSLO]
    assert read([one], ReadRules(prose=False)).text == one
    for ending in ("", "\n\n", "\nIt ends.\n"):
        left = one.removesuffix("\nWait.") + ending
        assert read(list(left), ReadRules(prose=False)).text == left
    two = one + "\n" + one
    assert read([two]).text == two
    assert len(read([two], ReadRules(forced=True)).calls) == 2


def test_json_is_no_call_where_the_client_asked_for_json() -> None:
    text = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    assert read([text], ReadRules(bare=False)).text == text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (block("{}", "launch_rocket"), "unknown_tool"),
        (block("{}", "[tool name]"), "unknown_tool"),
        (block("{}", "<tool name>"), "unknown_tool"),
        (block("[not, an, object]"), "unreadable_arguments"),
        (block("{}", "send_mail"), "schema"),
        (block('{"days": []}'), "schema"),
        (
            "<tool_call>nothing_known<arg_key>a</arg_key><arg_value>b</arg_value></tool_call>",
            "unknown_tool",
        ),
        ("<function=get_weather>\n<parameter=city>\nOslo", "unreadable_arguments"),
    ],
)
def test_a_call_that_cannot_be_passed_on_is_a_fault_and_never_text(text: str, kind: str) -> None:
    for pieces in ([text], list(text)):
        seen = read(pieces)
        assert seen.faults() == [kind]
        assert seen.text == ""
        assert not seen.calls


def test_calls_behind_a_faulty_one_wait_so_that_their_order_stays() -> None:
    seen = read([block("{}", "clock.now") + "\n" + block("{}", "send_mail") + "\n" + CANONICAL])
    assert seen.made() == [NOW]
    kinds = [type(one).__name__ for one in seen.reader.judge.open]
    assert kinds == ["Fault", "Ready"]


@pytest.mark.parametrize("length", range(9, len(CANONICAL)))
def test_an_answer_cut_by_its_limit_makes_no_half_call_and_shows_no_marker(length: int) -> None:
    for pieces in ([CANONICAL[:length]], list(CANONICAL[:length])):
        seen = read(pieces, reason="length")
        assert "TOOL" not in seen.text
        assert not seen.calls
        assert not seen.reader.judge.open


THOUGHTS = [
    ("<think>a b</think>\n\nText", "a b", "Text", []),
    (f"<think>\nOption:\n{CANONICAL}\nno\n</think>\n{CANONICAL}", None, "", [OSLO]),
    (f"I should call.\n</think>\n{CANONICAL}", "I should call.\n", "", [OSLO]),
    ("<think>only thinking", "only thinking", "", []),
    *((f"{opener}a b{closer}\nText", "a b", "Text", []) for opener, closer in TAGS.items()),
    (f"I look.<|close|> think <|sep|>\n{CANONICAL}", "I look.", "", [OSLO]),
    ("[THINK]hm[/THINK][TOOL_CALLS]clock.now[ARGS]{}", "hm", "", [NOW]),
    (block('{"city": "</think>"}'), "", "", [("get_weather", {"city": "</think>"})]),
    (
        "<think>so <tool_call>{}</tool_call> no</think>Hi",
        "so <tool_call>{}</tool_call> no",
        "Hi",
        [],
    ),
    ('<think>go<tool_call>{"name": "clock.now", "arguments": {}}</tool_call>', "go", "", [NOW]),
]


@pytest.mark.parametrize(("text", "thought", "visible", "calls"), THOUGHTS)
def test_thoughts_are_told_apart(
    text: str, thought: str | None, visible: str, calls: list[Call]
) -> None:
    for pieces in cut_everywhere(text):
        seen = read(pieces)
        assert thought is None or seen.thought == thought
        assert seen.text == visible
        assert seen.made() == calls


def test_text_leaves_with_the_chunk_that_rules_a_call_out() -> None:
    reader = Reader(TOOLS, Calls("r"), ReadRules(hold=0))
    seen = Seen(reader)
    for piece, out in [
        ("Hello", "Hello"),
        (" world, ", "Hello world, "),
        ("a <", "Hello world, a "),
        ("b", "Hello world, a <b"),
        ("\n", "Hello world, a <b"),
        ("To", "Hello world, a <b"),
        ("day", "Hello world, a <b\nToday"),
        ("\n- item", "Hello world, a <b\nToday\n- item"),
    ]:
        seen.add(reader.feed(piece))
        assert seen.text == out


def test_the_beginning_waits_only_as_long_as_it_may_be_an_unmarked_thought() -> None:
    reader = Reader(TOOLS, Calls("r"), ReadRules(hold=20))
    seen = Seen(reader)
    for _ in range(60):
        seen.add(reader.feed("a"))
    assert len(seen.text) == 60


def test_no_call_allowed_takes_whole_blocks_out_and_leaves_all_else() -> None:
    how = ReadRules(trained=False, bare=False, withheld=True)
    seen = read([f"A\n{CANONICAL}\nB <tool_call>"], how)
    assert seen.text.split() == ["A", "B", "<tool_call>"]
    assert not seen.calls
    assert seen.reader.judge.dropped == 1


WORDS = st.sampled_from(
    [
        *("USE_TOOL", "NO_TOOL", "TOOL_NAME: ", "TOOL_ARGS: ", "REASON: ", "get_weather", "\n"),
        *('{"city": "Oslo"}', "{", "}", '"', "'", "```", "```json\n", "<tool_call>", " "),
        *("</tool_call>", "<function=", "</function>", "<think>", "</think>", "[TOOL_CALLS]"),
        *("<|python_tag|>", "text", "1. ", "**", "[", "]", "Action: ", "Action Input: ", "<"),
        *('{"name": "clock.now", "arguments": {}}', "<|im_end|>", "Observation:", "\\", "：", ","),
        *(
            "get_weather(",
            'city="Oslo"',
            ")",
            ";",
            "Tool call:",
            "\\n",
            "<invoke name=",
            "</think>",
        ),
        *("<tool_response>", "[TOOL_REQUEST]", "<|tool_call:start|>", "`", "clock.now()", "(", "'"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=14), st.data(), st.sampled_from(["stop", "length"]))
def test_any_text_in_any_cuts_gives_the_same(
    words: list[str], data: st.DataObject, reason: FinishReason
) -> None:
    text = "".join(words)
    at = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]
    assert read(pieces, reason=reason).whole() == read([text], reason=reason).whole()


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
def test_text_without_a_call_is_lost_nowhere(text: str) -> None:
    seen = read(list(text))
    if not seen.thought and "USE" not in text.upper() and not TOKEN.search(text):
        assert seen.text == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=6), JSON, max_size=3), st.integers(1, 7))
def test_any_arguments_survive_the_round_trip(arguments: dict[str, Any], size: int) -> None:
    try:
        written = orjson.dumps({"opts": arguments}).decode()
    except TypeError:  # integers orjson does not write, lone surrogates
        return
    text = f"Hm.\n{block(written)}\nREASON: r\n\nDone."
    seen = read([text[at : at + size] for at in range(0, len(text), size)])
    assert seen.made() == [("get_weather", orjson.loads(written))]
    assert seen.text.split() == ["Hm.", "Done."]


REPEATED: Sequence[Callable[[int], str]] = [
    lambda size: "word " * (size // 5),
    lambda size: "A line of prose.\n" * (size // 17),
    lambda size: block("{}", "clock.now\n") * (size // 45),
    lambda size: (block('{"city": 1') + "\n") * (size // 50),
    lambda size: (block('{"city": "1') + "\n") * (size // 50),
    lambda size: block('{"city": "' + "a" * size + '"}'),
    lambda size: "<" * size,
    lambda size: "{\n" * (size // 2),
    lambda size: "<tool_call>{" * (size // 12),
    lambda size: "\n" * size,
    lambda size: "*" * size,
    lambda size: "Action: get_weather\nAction Input: " + "a b\n" * (size // 4),
    lambda size: "Action: ```json\n" * (size // 16),
    lambda size: "[get_weather(\n" * (size // 14),
    lambda size: "get_weather(city='\n)))" * (size // 22),
    lambda size: '{"name": "clock.now", "arguments": {}};' * (size // 39),
    lambda size: "<function_calls>[get_weather(" * (size // 29),
    lambda size: "<tool_call>get_weather" + "<arg_key>" * (size // 9) + "</tool_call>",
    lambda size: "<function=get_weather>" + "<parameter=" * (size // 11),
    lambda size: "<function=get_weather>" + "<parameter=a><![CDATA[" * (size // 22),
    lambda size: "<invoke name=get_weather>" + "<a>" * (size // 3) + "</invoke>",
    lambda size: '<|open|>call tool="clock.now"<|sep|>' + "<|open|>argument<|sep|>" * (size // 22),
]


@pytest.mark.parametrize("make", REPEATED)
def test_time_grows_with_the_text_and_not_faster(make: Callable[[int], str]) -> None:
    def reading(size: int) -> Work:
        text = make(size)
        return lambda: read(text[at : at + 16] for at in range(0, len(text), 16))

    # Eight times the text in linear time is eight times the work; quadratic were sixty-four.
    # An answer may have 1,024 calls, which the longer texts stay below.
    assert is_within(30 * max(seconds(reading(4500)), 0.003), reading(36_000))
