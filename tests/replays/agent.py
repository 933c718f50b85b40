"""A small agent as people write them: a loop that runs tools until the model has no more calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from openai import OpenAI

from tests.support.cases import TEXT, tool

CITIES = ["沈阳", "Oslo"]
COLD: Mapping[str, str] = {"沈阳": "-12°C, 🌨️", "Oslo": "-3°C"}
TOOLS: Mapping[str, Callable[..., Any]] = {
    "list_cities": lambda: CITIES,
    "get_weather": lambda city: COLD[city],
}
OFFERED: Any = [
    tool("list_cities", "The cities we have offices in."),
    tool("get_weather", "The weather of a city.", city=TEXT),
]
_MOST_ROUNDS = 6


def work(client: OpenAI, model: str, messages: list[Any], **params: Any) -> str:
    """Answer the last of the messages; what was said on the way is put behind them."""
    for _ in range(_MOST_ROUNDS):
        with client.chat.completions.stream(
            model=model, messages=messages, tools=OFFERED, **params
        ) as stream:
            said = stream.get_final_completion().choices[0].message
        calls = [
            {"id": call.id, "type": "function", "function": _function(call.function)}
            for call in said.tool_calls or ()
        ]
        turn = {"role": "assistant", "content": said.content}
        messages.append(turn | ({"tool_calls": calls} if calls else {}))
        if not calls:
            return said.content or ""
        messages += [_result(call) for call in calls]
    raise RuntimeError(f"the model still calls tools after {_MOST_ROUNDS} rounds")


def _function(function: Any) -> dict[str, str]:
    return {"name": function.name, "arguments": function.arguments}


def _result(call: Any) -> dict[str, str]:
    name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
    said = json.dumps(TOOLS[name](**arguments), ensure_ascii=False)
    return {"role": "tool", "tool_call_id": call["id"], "content": said}
