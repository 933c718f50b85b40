"""Formats of models that were met after the table was first drawn, and what goes wrong in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from adapters.calls import Calls
from middleware.emulation import Fault, How, Reader
from tests.test_emulation_reader import NOW, OSLO, TOOLS, Call, cut_everywhere, read

PARIS: Call = ("get_weather", {"city": "Paris"})
TWO_DAYS: Call = ("get_weather", {"city": "Oslo", "days": 2})


def marked(mark: str, name: str = "get_weather") -> str:
    return (
        f'<{mark}invoke name="{name}"><{mark}parameter name="city">Oslo</{mark}parameter>'
        f"</{mark}invoke>"
    )


def solar(city: str) -> str:
    return (
        "<|tool_call:start|>get_weather\n"
        f"<|tool_arg:start|>city<|tool_arg:value|>{city}<|tool_arg:end|>\n<|tool_call:end|>"
    )


def glm(before: str = "", behind: str = "", kind: str = "") -> str:
    return (
        f"<{before}tool_call{behind}>get_weather<{before}arg_key{behind}>city"
        f"</{before}arg_key{behind}>{kind}<{before}arg_value{behind}>Oslo"
        f"</{before}arg_value{behind}></{before}tool_call{behind}>"
    )


# Whole answers, and the calls they mean; nothing of them is text.
FORMATS: Sequence[tuple[str, list[Call]]] = [
    (f"<function_calls>\n{marked('antml:')}\n</function_calls>", [OSLO]),
    (f"<｜GCML｜tool_calls>{marked('｜GCML｜')}</｜GCML｜tool_calls>", [OSLO]),
    (
        f"<｜tool_calls_begin｜><｜tool_call_begin｜>{marked('steptml:')}<｜tool_call_end｜>"
        f"<｜tool_sep｜><｜tool_call_begin｜>function<｜tool_sep｜>get_weather\n{marked('steptml:')}"
        "<｜tool_call_end｜><｜tool_calls_end｜>",
        [OSLO, OSLO],
    ),
    (f"{solar('Oslo')}\n{solar('Paris')}", [OSLO, PARIS]),
    ("<|tool_call:start|>clock.now\n<|tool_call:end|>", [NOW]),
    (
        f"<tool_calls:opensource>{glm('', ':opensource')}</tool_calls:opensource>",
        [OSLO],
    ),
    (f"<ifm|tool_calls>{glm('ifm|')}</ifm|tool_calls>", [OSLO]),
    (glm("ifm|", "", "<ifm|arg_type>string</ifm|arg_type>"), [OSLO]),
    (
        "<start_function_call>call:get_weather{city:<escape>Oslo<escape>,days:2}"
        "<end_function_call><start_function_call>call:clock.now{}<end_function_call>",
        [TWO_DAYS, NOW],
    ),
    ('<function_calls>get_weather(city="Oslo")\nclock.now()</function_calls>', [OSLO, NOW]),
    ("<function_calls>[get_weather(city='Oslo')]</function_calls>", [OSLO]),
    ('<|python_tag|>get_weather.call(city="Oslo")', [OSLO]),
    (
        '[TOOL_REQUEST]\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n[END_TOOL_REQUEST]'
        "\n[TOOL_REQUEST]clock.now {}[END_TOOL_REQUEST]",
        [OSLO, NOW],
    ),
    (
        '<tool_call><name>get_weather</name><arguments>{"city": "Oslo"}</arguments></tool_call>',
        [OSLO],
    ),
    # A bracket in a value ends neither the call nor the list of calls.
    ("[get_weather(tags=[])]", [("get_weather", {"tags": []})]),
    (
        "[get_weather(opts={'a': [1]}, tags=['x'])]",
        [("get_weather", {"opts": {"a": [1]}, "tags": ["x"]})],
    ),
    ("[get_weather(city=Oslo), clock.now()]", [OSLO, NOW]),
    (
        "<|tool_call_start|>[get_weather(tags={'a', 'b'})]<|tool_call_end|>",
        [("get_weather", {"tags": ["a", "b"]})],
    ),
    # Calls as Python writes them are the whole answer, or stand in a fence made for them.
    ('get_weather(city="Oslo (N)")', [("get_weather", {"city": "Oslo (N)"})]),
    ('get_weather(city="Oslo")\nclock.now()\n', [OSLO, NOW]),
    ('```tool_code\nget_weather(city="Oslo")\n```', [OSLO]),
    # Objects one after the other, without a list around them.
    (
        '{"name": "get_weather", "parameters": {"city": "Oslo"}}; '
        '{"name": "clock.now", "parameters": {}}',
        [OSLO, NOW],
    ),
    (
        '{"name": "get_weather", "arguments": {"city": "Oslo"}},\n'
        '{"name": "clock.now", "arguments": {}}',
        [OSLO, NOW],
    ),
    ('{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}', [OSLO]),
    (
        '{"tool_calls": [{"id": "a", "type": "function", "function": '
        '{"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}}]}',
        [OSLO],
    ),
    ('{"function_call": {"name": "get_weather", "arguments": {"city": "Oslo"}}}', [OSLO]),
    # Words above the JSON that say what it is.
    (
        'Action: ```json\n[{"tool_name": "get_weather", "parameters": {"city": "Oslo"}}]\n```',
        [OSLO],
    ),
    (
        '**Tool Call:**\n```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```\n'
        '**Tool Call:**\n```json\n{"name": "clock.now", "arguments": {}}\n```',
        [OSLO, NOW],
    ),
    ('Function call: {"name": "get_weather", "arguments": {"city": "Oslo"}}', [OSLO]),
    # The end of a fence in front of the closer, with more behind it.
    (
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
        '```json\n{"city": "Oslo"}\n```<｜tool▁call▁end｜>\n'
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>clock.now\n```json\n{}\n```<｜tool▁call▁end｜>",
        [OSLO, NOW],
    ),
    # Line ends that came out as two characters.
    (
        "<tool_call>\\n<function=get_weather>\\n<parameter=city>Oslo</parameter>\\n</function>\\n"
        "</tool_call>",
        [OSLO],
    ),
    # Harmony: a tool without parameters is called with an empty message.
    ("<|channel|>commentary to=functions.clock.now <|constrain|>json<|message|><|call|>", [NOW]),
    # What the model makes up of its own call's result goes.
    (
        '<tool_call>{"name": "clock.now", "arguments": {}}</tool_call>\n'
        '<tool_response>\n{"now": 12}\n</tool_response>\nIt is noon.',
        [NOW],
    ),
]


@pytest.mark.parametrize(("text", "calls"), FORMATS)
def test_a_format_is_read_in_every_cut(text: str, calls: list[Call]) -> None:
    for pieces in ([text], *cut_everywhere(text)):
        seen = read(pieces)
        assert seen.made() == calls, pieces
        assert seen.text.strip() == "", pieces


def test_elements_nested_without_end_are_a_fault_and_no_crash() -> None:
    space = "]<]minimax[>["
    seen: Any = read(
        [f'{space}<invoke name="get_weather">', f"{space}<opts>" * 3000, f"{space}</invoke>"]
    )
    assert seen.faults() == ["unreadable_arguments"]
    assert seen.text == ""


# Text that looks like one of them and is none.
LOOKALIKES: Sequence[str] = [
    'Action:\n```json\n{"a": 1}\n```\nThat is the config.',
    'Tool calls: {"max": 3} is the limit.',
    "Action: ```sh\nmake\n``` is the target.",
    "Tool call: none was needed.",
    "get_weather(city) returns the weather of a city.",
    'To ask for it, write this:\nget_weather(city="Oslo")\nand wait.',
    '```python\nget_weather(city="Oslo")\n```',
    "get_weather is a tool; clock.now (the other one) needs nothing.",
    "get_weather(" * 20,
    '{"name": "Oslo"}; {"name": "Paris"}',
    'A <tool_response> holds a result; so does "[TOOL_RESULTS]".',
    "Use <start_function_call> in Gemma, <｜tool_call_begin｜> in Step 3.",
    "The marker `<｜tool▁calls▁begin｜>` opens a list, `<invoke name=` a call.",
    "They end with `</think>`, all of them.",
    '```xml\n<function name="f">\n  <param name="x">1</param>\n</function>\n```\nIs a call.',
    'See <invoke name="x"> in the docs.\n\nIt is never closed.',
    # A call that is part of something else, and a tool as a request declares it.
    '{\n  "log": [\n    {"name": "get_weather", "arguments": {"city": "Oslo"}}\n  ]\n}',
    '{"type": "function", "function": {"name": "get_weather", "parameters": {}}}',
    '{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}}}}',
]


@pytest.mark.parametrize("text", LOOKALIKES)
def test_what_only_looks_like_a_call_stays_text(text: str) -> None:
    for pieces in ([text], *cut_everywhere(text)):
        seen: Any = read(pieces)
        assert seen.text == text, pieces
        assert not seen.calls
        assert not seen.reader.open


def test_a_quoted_token_takes_no_text_with_it() -> None:
    text = "Llama writes <|python_tag|>name\nand so on, to the end."
    seen = read([text])
    assert seen.text == "Llama writes "
    assert [one.text for one in seen.reader.open if isinstance(one, Fault)] == [
        "name\nand so on, to the end."
    ]


def test_an_unclosed_call_of_a_tool_that_takes_nothing_is_a_call() -> None:
    assert read(["<tool_call>\n<function=clock.now>\n"]).made() == [NOW]


def test_apriel_ends_its_thought_with_words() -> None:
    text = (
        "I look.\n[BEGIN FINAL RESPONSE]\n"
        '<tool_calls>[{"name": "clock.now", "arguments": {}}]</tool_calls>\n[END FINAL RESPONSE]'
    )
    for pieces in ([text], *cut_everywhere(text)):
        seen = read(pieces)
        assert (seen.thought, seen.text, seen.made()) == ("I look.\n", "", [NOW])


def test_a_token_before_the_end_of_a_thought_is_seen_in_every_cut() -> None:
    text = f"So <tool_call></think>\nUSE_TOOL\nTOOL_NAME: {NOW[0]}"
    expected = read([text]).whole()
    for pieces in cut_everywhere(text):
        assert read(pieces).whole() == expected


def test_a_token_with_a_line_end_in_it_is_whole_in_every_cut() -> None:
    text = (
        "x" * 80 + "<|message_sep|>\n\nfunction call<|role_sep|>\n"
        '{"name": "clock.now", "arguments": {}}'
    )
    for pieces in ([text], *cut_everywhere(text)):
        seen = read(pieces)
        assert (seen.text, seen.made()) == ("x" * 80, [NOW])


def test_the_beginning_waits_no_longer_than_a_thought_may_end_in_it() -> None:
    reader = Reader(TOOLS, Calls("r"), How(hold=20))
    assert [len(list(reader.feed(letter))) for letter in "a" * 25] == [0] * 19 + [1] * 6
    reader = Reader(TOOLS, Calls("r"), How(hold=20))
    assert not [*reader.feed("a" * 18 + "</thi"), *reader.feed("n")]
    assert [type(one).__name__ for one in reader.feed("k>b")] == ["ReasoningDelta", "TextDelta"]
