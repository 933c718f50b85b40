"""What a request may ask llama.cpp to compile: its parsers call themselves once a bracket.

They run where nothing but their own process can end; a 400 is still the better answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from adapters.errors import BadRequest

_COMPILED = ("grammar", "json_schema", "response_format", "tools", "chat_template_kwargs")
_DEEPEST, _LONGEST = 200, 256 << 10
_BRACKET = re.compile(r"[\[({\])}]")


def check(body: Mapping[str, Any]) -> None:
    for name in _COMPILED:
        if value := body.get(name):
            _check(name, value)


def _check(name: str, value: Any) -> None:
    try:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
    except TypeError:  # deeper than it writes
        raise _too("nests too deep", f"{_DEEPEST} brackets", name) from None
    if len(text) > _LONGEST:
        raise _too("is too long", f"{_LONGEST} characters", name)
    # Brackets in quotes count too: what is a quote differs between grammars.
    if _depth(text) > _DEEPEST:
        raise _too("nests too deep", f"{_DEEPEST} brackets", name)


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in _BRACKET.findall(text):
        depth = depth + 1 if bracket in "[({" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def _too(what: str, most: str, name: str) -> BadRequest:
    return BadRequest(
        f"'{name}' {what} for the embedded model, which takes {most}. Make it simpler.", param=name
    )
