"""Tools, texts with calls, and what the reader makes of them in any pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from adapters.protocol import FinishReason, ReasoningDelta, TextDelta, ToolCallDelta, ToolCallStart
from adapters.shared.calls import Calls
from adapters.shared.toolbox import Tool
from middleware.wrappers.emulation.formats.raw_call import Fault
from middleware.wrappers.emulation.read.reader import Reader, is_harmless
from middleware.wrappers.emulation.read.rules import ReadRules

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
        return [one.kind for one in self.reader.judge.open if isinstance(one, Fault)]

    def whole(self) -> tuple[Any, ...]:
        return " ".join(self.text.split()), self.thought, self.calls, self.reader.judge.open


def read(
    pieces: Iterable[str], how: ReadRules | None = None, reason: FinishReason = "stop"
) -> Seen:
    reader = Reader(TOOLS, Calls("req_test"), how)
    seen = Seen(reader)
    text = "".join(said := [*pieces])
    for piece in said:
        seen.add(reader.feed(piece))
    seen.add(reader.close(reason))
    if is_harmless(text) and reason != "length" and not (how and (how.prompted or how.forced)):
        assert (seen.text, seen.made(), seen.faults()) == (text, [], [])
    return seen


def block(arguments: str, name: str = "get_weather") -> str:
    return f"USE_TOOL\nTOOL_NAME: {name}\nTOOL_ARGS: {arguments}"


CANONICAL = block('{"city": "Oslo"}')


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


def cut_everywhere(text: str) -> Iterable[list[str]]:
    yield list(text)
    for at in range(1, len(text)):
        yield [text[:at], text[at:]]
