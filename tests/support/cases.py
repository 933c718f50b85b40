"""What every upstream is asked for its cassettes: one list for all of them.

The last line of a prompt tells a scripted provider what to answer; a real model reads the sentence
above it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adapters.protocol import Json


def tool(name: str, description: str, **properties: Any) -> Json:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TEXT = {"type": "string"}
WEATHER = tool("get_weather", "The weather of a city.", city=TEXT)
CLOCK = tool("get_time", "The time now.")
NOTES = tool("save_note", "Saves a note.", title=TEXT, body=TEXT, tags={"type": "array"})
SCHEMA = {
    "type": "object",
    "properties": {"city": TEXT, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
NOTE = {
    "title": "沈阳 \"Shěnyáng\" \\ 🌨️ </note>\t\n",
    "body": "雪 снег ثلج " * 60 + "end",
    "tags": ["a/b", "\u2028", "é", ""],
}  # fmt: skip


def ask(sentence: str, directive: str, **params: Any) -> Json:
    prompt = f"{sentence}\n{directive}"
    return {"messages": [{"role": "user", "content": prompt}], **params}


def after_a_call(sentence: str, directive: str) -> Json:
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city":"沈阳"}'},
    }
    result = {"role": "tool", "tool_call_id": "call_1", "content": "-12°C, 🌨️"}
    request = ask(sentence, directive, tools=[WEATHER])
    request["messages"] += [{"role": "assistant", "content": None, "tool_calls": [call]}, result]
    return request


REASONING = ("reasoning", "reasoning_call")
FAILING = ("bad_request", "rate_limited", "overloaded")
CASES: Mapping[str, Json] = {
    "text": ask("Greet the city.", "SAY 你好, 沈阳! It's -12°C 🌨️ today."),
    "one_call": ask("How cold is it?", 'CALL get_weather {"city":"沈阳"}', tools=[WEATHER]),
    "parallel_calls": ask(
        "Compare two cities.",
        'PARALLEL get_weather {"city":"沈阳"} ;; get_weather {"city":"Oslo"}',
        tools=[WEATHER],
    ),
    "text_before_call": ask(
        "Say what you do, then do it.", 'PREAMBLE get_weather {"city":"沈阳"}', tools=[WEATHER]
    ),
    "tool_result_turn": after_a_call("How cold is it outside?", 'CALL get_weather {"city":"沈阳"}'),
    "reasoning": ask("Think first.", "THINK SAY Because of the continental climate."),
    "reasoning_call": ask(
        "Think, then look it up.", 'THINK CALL get_weather {"city":"沈阳"}', tools=[WEATHER]
    ),
    "no_argument_call": ask("What time is it?", "CALL get_time {}", tools=[CLOCK]),
    "long_arguments": ask(
        "Save this note word for word.",
        f"CALL save_note {json.dumps(NOTE, ensure_ascii=False)}",
        tools=[NOTES],
    ),
    "structured_output": ask(
        "Answer in JSON.",
        'JSON {"city":"沈阳","degrees":-12}',
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True},
        },
    ),
    "bad_request": ask("Refuse.", "FAIL 400"),
    "rate_limited": ask("Refuse.", "FAIL 429"),
    "overloaded": ask("Refuse.", "FAIL {overload}"),
}
