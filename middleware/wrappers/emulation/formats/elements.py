"""Elements behind a name-space token, as MiniMax M3 nests them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

SPACE = "]<]minimax[>["
_DEPTH = 64


def elements(text: str, space: str = SPACE) -> list[tuple[str, str]]:
    """The outermost elements of a name space and what they hold, verbatim."""
    pairs, at = [], 0
    opener = re.compile(re.escape(space) + r"<([\w.\-]+)>")
    while element := opener.search(text, at):
        end = _closing(text, space, element[1], element.end())
        pairs.append((element[1], text[element.end() : end]))
        at = end + len(space) + len(element[1]) + 3
    return pairs


def _closing(text: str, space: str, tag: str, at: int) -> int:
    depth = 1
    tags = re.compile(re.escape(space) + rf"<(/?){re.escape(tag)}>")
    for mark in tags.finditer(text, at):
        depth += -1 if mark[1] else 1
        if depth == 0:
            return mark.start()
    return len(text)


def nested(text: str, space: str = SPACE, depth: int = 0) -> Any:
    """The value of elements: `item`s are a list, others an object."""
    if depth > _DEPTH:
        raise ValueError("nested too deeply")
    if not text.lstrip().startswith(f"{space}<"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    pairs = [(key, nested(value, space, depth + 1)) for key, value in elements(text, space)]
    is_list = all(key == "item" for key, _ in pairs)
    return [value for _, value in pairs] if is_list else gathered(pairs)


def gathered(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object; what stands in it several times is a list."""
    values: dict[str, list[Any]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return {key: one if len(one) > 1 else one[0] for key, one in values.items()}
