"""What strangers make a model say costs time in proportion to its length, in any pieces."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from adapters.errors import UpstreamError
from adapters.shared.calls import MOST_CALLS, Calls
from middleware.wrappers.emulation.judge import lenient_json as lenient
from middleware.wrappers.emulation.read.reader import Reader
from tests.linear.measuring import Work, is_long, is_within, longest_of
from tests.support.collector import collecting_as_the_server_does
from tests.wrappers.emulation.read.reading import TOOLS, block, read


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    with collecting_as_the_server_does():
        yield


# What a text may begin with, so that a reader is at work …
STARTS: Sequence[str] = [
    "",
    "x ",
    "```\n",
    "<think>",
    "<think><tool_call>",
    "{",
    '{"name": "get_weather", "arguments": {"city": "',
    '{"name": "get_weather", "arguments": {"days": ',
    "USE_TOOL",
    "USE_TOOL\nTOOL_NAME: get_weather\nTOOL_ARGS:\n",
    "USE_TOOL\nTOOL_NAME: get_weather\nTOOL_ARGS: {",
    "Action: get_weather\n",
    "Action: get_weather\nAction Input: {",
    "get_weather(city='",
    "[TOOL_REQUEST]get_weather\n",
    "[TOOL_CALLS]get_weather",
    "<tool_call>",
    '<tool_call>{"a": "',
    "<tool_call>get_weather<arg_key>a</arg_key>",
    "<function=get_weather><parameter=city>",
    "<invoke name=get_weather>",
    '<|tool_call>call:get_weather{city:<|"|>',
    '<|open|>call tool="get_weather"<|sep|>',
    "<|channel|>",
    "```json\n<tool_call>",
    "`<tool_call>",
]
# … and what it may go on with, over and over.
UNITS: Sequence[str] = [
    *(" ", "\n", "1", "9_", "-", "`", "_", "*", "<", "{", "[", "(", ")]", '"', "\\", "//", "> "),
    *('"x"\n', "]]>", "{'a'", "<tool_call>", "</tool_call>", '<tool_call>{"a": "b', "<|im_end|>"),
    *("<parameter=", "<![CDATA[", "</arg_key>", '<|"|>', "TOOL_NAME: get_weather\n", "f(a='x')"),
    *("<invoke name=get_weather>", "[TOOL_CALLS]", "Action: ", "```\n<tool_call>{}\n", "<a><b>"),
]


def seconds(text: str, cut: int) -> float:
    """How long a reader works; the better of two, since others work here too."""
    best = 1e9
    for _ in range(2):
        begun = time.process_time()
        read(text[at : at + cut] for at in range(0, len(text), cut))
        best = min(best, time.process_time() - begun)
        if best < 1:
            break
    return best


# In linear time some 0.1 s; in quadratic time at least ten.
@pytest.mark.parametrize("start", STARTS)
def test_texts_are_read_in_linear_time(start: str) -> None:
    for number, unit in enumerate(UNITS):
        end = ("", "x", "\n!{}")[number % 3]
        text = start + unit * (16_000 // len(unit)) + end
        assert seconds(text, len(text)) < 1.5, (start, unit, end)
        assert seconds(text[:1500], 1) < 1, (start, unit)


def test_twice_the_pieces_take_twice_the_time() -> None:
    for text in ("word ", "<tool_call>", block('{"city": "'), "`<tool_call>{}", "\n"):
        many = text * (16_000 // len(text))
        assert seconds(many * 2, 1) < 3 * seconds(many, 1) + 0.3, text


LONG: Sequence[Callable[[int], str]] = [
    lambda size: "A line of prose.\n" * (size // 17),
    lambda size: "9" * size + "x",
    lambda size: " " * size + "x",
    lambda size: f"[TOOL_REQUEST]get_weather\n{' ' * size}!{{}}",
    lambda size: block('{"city": "x"' + "\n" * size + "y"),
    lambda size: block(f"{{'city': '{'a' * size}'}}"),
    lambda size: f'<tool_call>{{"city": "{"a" * size}',
    lambda size: "<think>" * (size // 7),
    lambda size: "<tool_call>" * (size // 11),
]


@pytest.mark.parametrize("make", LONG)
def test_a_long_text_in_one_piece_is_read_in_linear_time(make: Callable[[int], str]) -> None:
    assert seconds(make(1 << 18), 1 << 18) < 2


# What waits for its end, each 1 MB long: its last step is a moment, since all others wait for it.
@pytest.mark.parametrize(
    ("start", "unit"),
    [
        ("", '<tool_call>{"a": "b'),
        ("x ", '<tool_call>{"a": "b'),
        ("Lines:\n", '{"name": "get_weather", "arguments": {}}\n'),
        ('USE_TOOL\nTOOL_NAME: get_weather\nTOOL_ARGS: {"city": "', "b\n"),
    ],
)
def test_no_step_is_long_and_neither_is_the_last(start: str, unit: str) -> None:
    text = start + unit * ((1 << 20) // len(unit))

    def longest() -> float:
        return longest_of(_steps(Reader(TOOLS, Calls("req_test")), text, 4096))

    assert not all(is_long(longest(), 0.1) for _ in range(3))


def _steps(reader: Reader, text: str, size: int) -> Iterator[Work]:
    """The steps of a reader: one for each piece, and its end."""
    for at in range(0, len(text), size):
        yield partial(_step, reader.feed, text[at : at + size])
    yield partial(_step, reader.close)


def _step(events: Callable[..., Iterable[Any]], *piece: str) -> None:
    deque(events(*piece), maxlen=0)


@pytest.mark.parametrize("text", ["<tool_call>nothing</tool_call>\n", "<tool_call>{}</tool_call>"])
def test_an_answer_of_countless_faulty_calls_is_refused(text: str) -> None:
    assert len(read([text * MOST_CALLS]).reader.judge.open) == MOST_CALLS
    with pytest.raises(UpstreamError, match="more than 1024 tool calls"):
        read([text * (MOST_CALLS + 1)])


@pytest.mark.parametrize(
    "text",
    [
        "1" * 200_000 + "x",
        '{"a": "x"' + "\n" * 200_000 + "y",
        '{"a": ' + '"x"\n' * 50_000 + "y",
        "{" + "k" * 200_000,
        "{'a" * 70_000,
        "[" + "1 " * 100_000,
        "/*" * 100_000,
    ],
)
def test_the_lenient_reader_is_linear_on_its_own(text: str) -> None:
    def read_it() -> None:
        with suppress(ValueError):
            lenient.read(text)

    assert is_within(3, read_it)


_MOMENT = 1 << 14
"""As much is read before others have their turn."""
CALLS: Mapping[str, str] = {
    "alone": '{{"name": "get_weather", "arguments": {{"tags": [{}1]}}}}',
    "in tags": '<tool_call>{{"name": "get_weather", "arguments": {{"tags": [{}1]}}}}</tool_call>',
    "in a block": block('{{"tags": [{}1]}}'),
    "in a fence": '```json\n{{"name": "get_weather", "arguments": {{"tags": [{}1]}}}}\n```',
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("value", ["1,", "{'a':1},"])
def test_a_call_of_very_many_values_holds_nobody(call: str, value: str) -> None:
    text = CALLS[call].format(value * ((1 << 21) // len(value)))
    reader = Reader(TOOLS, Calls("r"))
    held = longest_of(_steps(reader, text, _MOMENT))
    again = (longest_of(_steps(Reader(TOOLS, Calls("r")), text, _MOMENT)) for _ in range(2))
    assert not is_long(held) or not all(map(is_long, again))
    assert not reader.judge.made


def test_a_call_may_hold_a_long_text_full_of_brackets() -> None:
    said = {"city": '[{"a", ' * 50_000}
    call = json.dumps({"name": "get_weather", "arguments": said})
    assert read([f"<tool_call>{call}</tool_call>"]).made() == [("get_weather", said)]
