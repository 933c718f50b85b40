"""Formats of models that were met after the table was first drawn, and what goes wrong in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from adapters.shared.calls import Calls
from middleware.wrappers.emulation.formats.raw_call import Fault
from middleware.wrappers.emulation.formats.table import TOKENS
from middleware.wrappers.emulation.read.reader import Reader, is_harmless
from middleware.wrappers.emulation.read.rules import ReadRules
from tests.wrappers.emulation.read.formats import FORMATS
from tests.wrappers.emulation.read.reading import NOW, TOOLS, Call, cut_everywhere, read


@pytest.mark.parametrize(("text", "calls"), FORMATS)
def test_a_format_is_read_in_every_cut(text: str, calls: list[Call]) -> None:
    for pieces in ([text], *cut_everywhere(text)):
        seen = read(pieces)
        assert seen.made() == calls, pieces
        assert seen.text.strip() == "", pieces


def test_no_token_is_harmless() -> None:
    assert not [token for token in TOKENS if is_harmless(f"Hello {token}")]


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
        assert not seen.reader.judge.open


def test_a_quoted_token_takes_no_text_with_it() -> None:
    text = "Llama writes <|python_tag|>name\nand so on, to the end."
    seen = read([text])
    assert seen.text == "Llama writes "
    assert [one.text for one in seen.reader.judge.open if isinstance(one, Fault)] == [
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
    reader = Reader(TOOLS, Calls("r"), ReadRules(hold=20))
    assert [len(list(reader.feed(letter))) for letter in "a" * 25] == [0] * 19 + [1] * 6
    reader = Reader(TOOLS, Calls("r"), ReadRules(hold=20))
    assert not [*reader.feed("a" * 18 + "</thi"), *reader.feed("n")]
    assert [type(one).__name__ for one in reader.feed("k>b")] == ["ReasoningDelta", "TextDelta"]
