"""The reader: calls, text and thoughts out of a model's text, whatever its cuts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.protocol import FinishReason, ReasoningDelta, TextDelta, ToolCallDelta, ToolCallStart
from adapters.shared.calls import Calls
from adapters.shared.think_tags import TAGS
from adapters.shared.toolbox import Tool
from middleware.wrappers.emulation import Fault, Reader, ReadRules
from middleware.wrappers.emulation.formats.table import TOKEN

WEATHER = Tool(
    "get_weather",
    "",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "opts": {"type": "object"},
        },
    },
)
CLOCK = Tool("clock.now", "", {"type": "object", "properties": {}})
MAIL = Tool(
    "send_mail",
    "",
    {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
)
TOOLS = (WEATHER, CLOCK, MAIL)
OSLO = ("get_weather", {"city": "Oslo"})
NOW: tuple[str, dict[str, Any]] = ("clock.now", {})

Call = tuple[str, Any]


class Seen:
    """What came out of a reader."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.text = ""
        self.thought = ""
        self.calls: list[list[str]] = []
        self.pieces: list[str] = []

    def add(self, events: Iterable[object]) -> None:
        for event in events:
            if isinstance(event, TextDelta):
                assert event.text
                self.text += event.text
                self.pieces.append(event.text)
            elif isinstance(event, ReasoningDelta):
                self.thought += event.text
            elif isinstance(event, ToolCallStart):
                assert event.index == len(self.calls)
                self.calls.append([event.name, ""])
            elif isinstance(event, ToolCallDelta):
                self.calls[event.index][1] += event.arguments

    def made(self) -> list[Call]:
        return [(name, orjson.loads(arguments)) for name, arguments in self.calls]

    def faults(self) -> list[str]:
        return [one.kind for one in self.reader.open if isinstance(one, Fault)]

    def whole(self) -> tuple[Any, ...]:
        return " ".join(self.text.split()), self.thought, self.calls, self.reader.open


def read(
    pieces: Iterable[str], how: ReadRules | None = None, reason: FinishReason = "stop"
) -> Seen:
    reader = Reader(TOOLS, Calls("req_test"), how)
    seen = Seen(reader)
    for piece in pieces:
        seen.add(reader.feed(piece))
    seen.add(reader.close(reason))
    return seen


def block(arguments: str, name: str = "get_weather") -> str:
    return f"USE_TOOL\nTOOL_NAME: {name}\nTOOL_ARGS: {arguments}"


CANONICAL = block('{"city": "Oslo"}')
# Noise around the canonical block: (text, visible text, calls).
BLOCKS: Sequence[tuple[str, str, list[Call]]] = [
    (CANONICAL, "", [OSLO]),
    (f"Let me look.\n\n{CANONICAL}\nREASON: it says {{so}}", "Let me look.", [OSLO]),
    (f"{CANONICAL}\nREASON: a\n\n{CANONICAL}", "", [OSLO, OSLO]),
    (f"A\n{CANONICAL}\n\nB", "A B", [OSLO]),
    (f"{'far ' * 30}\n1. {CANONICAL}", ("far " * 30).strip(), [OSLO]),
    (f"{'far ' * 30}\n10) {CANONICAL}\n", ("far " * 30).strip(), [OSLO]),
    (f"```\n{CANONICAL}\n```\nB", "B", [OSLO]),
    (f"```text\n{CANONICAL}\n```", "", [OSLO]),
    ("```python\nprint(1)\n```\nDone.", "```python print(1) ``` Done.", []),
    (CANONICAL.replace("\n", "\r\n"), "", [OSLO]),
    (CANONICAL.replace("\n", "\n\n"), "", [OSLO]),
    ("  " + CANONICAL.replace("\n", "\n  "), "", [OSLO]),
    (CANONICAL.replace("USE_TOOL", "**Use Tool:**"), "", [OSLO]),
    (CANONICAL.replace("TOOL_", "**TOOL_").replace(":", ":**", 2), "", [OSLO]),
    (CANONICAL.replace("TOOL_NAME", "工具名称").replace("TOOL_ARGS", "工具参数"), "", [OSLO]),
    (CANONICAL.replace(": ", "："), "", [OSLO]),
    (CANONICAL.replace("TOOL_NAME", "- Tool Name").replace("TOOL_ARGS", "- Tool Args"), "", [OSLO]),
    ('USE_TOOL\nTOOL_ARGS: {"city": "Oslo"}\nTOOL_NAME: get_weather', "", [OSLO]),
    ('TOOL_NAME: get_weather\nTOOL_ARGS: {"city": "Oslo"}', "", [OSLO]),
    ('USE_TOOL TOOL_NAME: get_weather TOOL_ARGS: {"city": "Oslo"}', "", [OSLO]),
    ('USE_TOOL get_weather {"city": "Oslo"}', "", [OSLO]),
    ('USE_TOOL: get_weather({"city": "Oslo"})', "", [OSLO]),
    ('USE_TOOL\n{"name": "get_weather", "arguments": {"city": "Oslo"}}', "", [OSLO]),
    (block('\n```json\n{"city": "Oslo"}\n```'), "", [OSLO]),
    (block("\n  city: Oslo\n- days: 3"), "", [("get_weather", {"city": "Oslo", "days": 3})]),
    (block('`{"city": "Oslo"}`'), "", [OSLO]),
    (block('"{\\"city\\": \\"Oslo\\"}"'), "", [OSLO]),
    (block('[{"city": "Oslo"}]'), "", [OSLO]),
    (block('{"arguments": {"city": "Oslo"}}'), "", [OSLO]),
    (block("{'city': 'Oslo',}"), "", [OSLO]),
    (block("{“city”: “Oslo”}"), "", [OSLO]),
    (block("{city: Oslo}"), "", [OSLO]),
    (block('{"city": "Oslo"\nREASON: x'), "", [OSLO]),
    (block('{"city": "Oslo"}}'), "", [OSLO]),
    (block('{"city": "Oslo"}<|im_end|>'), "", [OSLO]),
    (
        block('{"city": "He said "hi" there"}'),
        "",
        [("get_weather", {"city": 'He said "hi" there'})],
    ),
    (block('{"city": "a\nb"}'), "", [("get_weather", {"city": "a\nb"})]),
    (block('{"days": "3"}'), "", [("get_weather", {"days": 3})]),
    (block('{"To": "a@b"}', "send_mail"), "", [("send_mail", {"to": "a@b"})]),
    (block('{"Days": 3}'), "", [("get_weather", {"Days": 3})]),
    (block("{}", "`clock.now`"), "", [NOW]),
    (block("None", "Clock.Now()"), "", [NOW]),
    ("USE_TOOL\nTOOL_NAME: functions.clock.now\nREASON: x", "", [NOW]),
    (block('{"city": "Oslo"}', "get_waether"), "", [OSLO]),
    ("NO_TOOL\nREASON: plain\n\nThe answer.", "The answer.", []),
    ("```\nNO_TOOL\nREASON: plain\n```\nThe answer.", "The answer.", []),
    (f"{CANONICAL}\nObservation: 3 degrees\nIt is cold.", "", [OSLO]),
]


@pytest.mark.parametrize(("text", "visible", "calls"), BLOCKS)
def test_a_block_is_read_through_noise(text: str, visible: str, calls: list[Call]) -> None:
    seen = read([text])
    assert " ".join(seen.text.split()) == visible
    assert seen.made() == calls
    assert not seen.reader.open


DATA = [
    {"city": "USE_TOOL\nTOOL_NAME: x"},
    {"city": "TOOL_ARGS: {}"},
    {"city": "}]```</think><tool_call>"},
    {"city": "// not # a /* comment"},
    {"opts": {"a": [1, 2.5, None, True], "b": {"c": "：，"}}},
    {"city": "\u2028\U0001f600\t"},
    {"city": "null"},
]


@pytest.mark.parametrize("arguments", DATA)
def test_markers_keys_and_tags_inside_a_string_are_data(arguments: dict[str, Any]) -> None:
    seen = read([block(orjson.dumps(arguments).decode()) + "\nREASON: r"])
    assert seen.made() == [("get_weather", arguments)]
    assert seen.text == ""


def test_what_is_valid_keeps_the_models_own_numbers() -> None:
    seen = read([block('{"opts": {"a": 1.10, "b": 1e5, "c": 12345678901234567890123}}')])
    assert seen.calls == [
        ["get_weather", '{"opts":{"a":1.10,"b":1e5,"c":12345678901234567890123}}']
    ]


TRAINED: Sequence[tuple[str, list[Call]]] = [
    ('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>', [OSLO]),
    ('<tool_call>{"name": "clock.now", "arguments": {}}</tool_call>' * 2, [NOW, NOW]),
    (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
        "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
        [("get_weather", {"city": "Oslo", "days": 3})],
    ),
    ('<function=get_weather>{"city": "Oslo"}</function>', [OSLO]),
    ('<function name="get_weather"><param name="city">Oslo</param></function>', [OSLO]),
    (
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
        [OSLO],
    ),
    (
        '<function_calls><invoke name="get_weather"><parameter name="city">Oslo</parameter>'
        "</invoke></function_calls>",
        [OSLO],
    ),
    (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n'
        '</｜DSML｜invoke>\n<｜DSML｜invoke name="clock.now"/>\n</｜DSML｜function_calls>',
        [OSLO, NOW],
    ),
    ('[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}}]', [OSLO]),
    ('[TOOL_CALLS]get_weather[CALL_ID]a1[ARGS]{"city": "Oslo"}', [OSLO]),
    ('<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}', [OSLO]),
    ('{"name": "get_weather", "parameters": {"city": "Oslo"}}', [OSLO]),
    ('```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```', [OSLO]),
    ('[get_weather(city="Oslo"), clock.now()]', [OSLO, NOW]),
    ("<|tool_call_start|>[get_weather(city='Oslo')]<|tool_call_end|>", [OSLO]),
    (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
        '```json\n{"city": "Oslo"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [OSLO],
    ),
    ('<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜>', [OSLO]),
    (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        '<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>',
        [OSLO],
    ),
    ('<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>', [OSLO]),
    (
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        '{"city": "Oslo"}',
        [OSLO],
    ),
    ('Action: get_weather\nAction Input: {"city": "Oslo"}\nObservation: cold', [OSLO]),
    ('{"action": "get_weather", "action_input": {"city": "Oslo"}}', [OSLO]),
    (' functools[{"name": "get_weather", "arguments": {"city": "Oslo"}}]', [OSLO]),
]


@pytest.mark.parametrize(("text", "calls"), TRAINED)
def test_a_trained_format_is_read(text: str, calls: list[Call]) -> None:
    seen = read([text])
    assert seen.made() == calls
    assert "<" not in seen.text
    assert "[" not in seen.text


def cut_everywhere(text: str) -> Iterable[list[str]]:
    yield list(text)
    for at in range(1, len(text)):
        yield [text[:at], text[at:]]


@pytest.mark.parametrize("text", [text for text, *_ in BLOCKS] + [text for text, _ in TRAINED])
def test_every_cut_of_the_text_gives_the_same(text: str) -> None:
    expected = read([text]).whole()
    for pieces in cut_everywhere(text):
        assert read(pieces).whole() == expected, pieces


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
        assert not seen.reader.open


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
    kinds = [type(one).__name__ for one in seen.reader.open]
    assert kinds == ["Fault", "Ready"]


@pytest.mark.parametrize("length", range(9, len(CANONICAL)))
def test_an_answer_cut_by_its_limit_makes_no_half_call_and_shows_no_marker(length: int) -> None:
    for pieces in ([CANONICAL[:length]], list(CANONICAL[:length])):
        seen = read(pieces, reason="length")
        assert "TOOL" not in seen.text
        assert not seen.calls
        assert not seen.reader.open


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
    assert seen.reader.dropped == 1


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
    def seconds(size: int) -> float:
        text = make(size)
        begun = time.process_time()
        read(text[at : at + 16] for at in range(0, len(text), 16))
        return time.process_time() - begun

    seconds(2000)
    # Eight times the text in linear time is eight times the work; quadratic were sixty-four.
    # An answer may have 1,024 calls, which the longer texts stay below.
    assert seconds(36_000) < 30 * max(seconds(4500), 0.003)
