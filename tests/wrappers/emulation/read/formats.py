"""Formats of models that were met after the table was first drawn."""

from __future__ import annotations

from collections.abc import Sequence

from tests.wrappers.emulation.read.reading import NOW, OSLO, Call

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
