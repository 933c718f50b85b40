"""Paths into an ask: `messages[0].content`, `messages[role=tool]`, `tools[*].description`, `*`.

A name with a dot, a bracket or a quote stands as `["a.b"]`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from middleware.cassettes.match.values import Form, JsonValue

Step = str | int | tuple[str, str]
"""A member's name, a position, or what an element must say; `ANY`: each of them."""
ANY = "*"
LONGEST = 500
"""Characters of a path or a pattern."""
_STEP = re.compile(
    r'\[(?:(?P<position>\d{1,9})|(?P<any>\*)|"(?P<quoted>[^"]*+)"'
    r"|(?P<key>\w++)=(?P<value>[^\]]*+))\]|(?P<dot>\.?)(?P<name>[^.\[\]\"\s=]++)"
)
_PLAIN = re.compile(r"[^.\[\]\"\s=*]++")


@lru_cache(maxsize=256)
def steps_of(path: str) -> tuple[Step, ...]:
    """Read a path; raise `ValueError` with what is wrong about it."""
    steps: list[Step] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or (found["name"] and bool(found["dot"]) is not bool(at)):
            raise ValueError(f"{path[at : at + 20]!r} at character {at + 1} is no step of a path")
        steps.append(_step(found))
        at = found.end()
    if not steps:
        raise ValueError("it is empty")
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["position"]:
        return int(found["position"])
    if found["key"]:
        return found["key"], found["value"].strip("\"'")
    step: str = found["any"] or found["name"] or found["quoted"]
    return step


def path_text(steps: Sequence[Step]) -> str:
    """The other way around."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif isinstance(step, tuple):
            text += f"[{step[0]}={step[1]}]"
        elif step == ANY or not _PLAIN.fullmatch(step):
            text += "[*]" if step == ANY else f'["{step}"]'
        else:
            text += f".{step}" if text else step
    return text


def admits(step: Step, name: str | int, value: JsonValue) -> bool:
    """Whether a step leads to this member."""
    if isinstance(step, tuple):
        return isinstance(value, dict) and str(value.get(step[0])) == step[1]
    return step in (ANY, name)


def mask_path(steps: tuple[Step, ...], ask: Form) -> str:
    """Where a mask goes: a whole message; of tools, whose results come again and again, all."""
    messages = ask.get("messages")
    if steps[0] != "messages" or not isinstance(messages, list) or not isinstance(steps[1], int):
        return path_text(steps)
    message = messages[steps[1]] if steps[1] < len(messages) else None
    result = isinstance(message, dict) and message.get("role") == "tool"
    return "messages[role=tool]" if result else path_text(steps[:2])
