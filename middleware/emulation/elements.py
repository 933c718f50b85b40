"""Elements behind a name-space token, as MiniMax M3 nests them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

SPACE = "]<]minimax[>["
_DEPTH = 64
_OPENER = re.compile(re.escape(SPACE) + r"<([\w.\-]+)>")


def elements(text: str) -> list[tuple[str, str]]:
    """The outermost name-spaced elements and what they hold, verbatim."""
    pairs, at = [], 0
    while found := _OPENER.search(text, at):
        end = _closing(text, found[1], found.end())
        pairs.append((found[1], text[found.end() : end]))
        at = end + len(SPACE) + len(found[1]) + 3
    return pairs


def _closing(text: str, tag: str, at: int) -> int:
    depth = 1
    tags = re.compile(re.escape(SPACE) + rf"<(/?){re.escape(tag)}>")
    for found in tags.finditer(text, at):
        depth += -1 if found[1] else 1
        if depth == 0:
            return found.start()
    return len(text)


def nested(text: str, depth: int = 0) -> Any:
    """The value of name-spaced elements: `item`s are a list, others an object."""
    if depth > _DEPTH:
        raise ValueError("nested too deeply")
    if not text.lstrip().startswith(SPACE):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    pairs = elements(text)
    if all(key == "item" for key, _ in pairs):
        return [nested(value, depth + 1) for _, value in pairs]
    return gathered([(key, nested(value, depth + 1)) for key, value in pairs])


def gathered(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object; what stands in it several times is a list."""
    values: dict[str, list[Any]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return {key: one if len(one) > 1 else one[0] for key, one in values.items()}
