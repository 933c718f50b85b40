"""Ids of answers and of their items: made of the request's, so that an item's says whose it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

_PLAIN = re.compile(r"[0-9a-z]{1,64}")
_OF_ITEM = re.compile(r"(?:msg|rs|fc|ctc|tsc|lsh)_([0-9a-z]{1,64})[0-9a-f]{4}")
_INPUT = 0x8000
_PREFIXES: Mapping[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "tool_search_call": "tsc",
    "local_shell_call": "lsh",
}
THOUGHT = "rs_"
"""Begins the id of a reasoning item."""


def response_id(request: str) -> str:
    stem = request.removeprefix("req_")
    if not _PLAIN.fullmatch(stem):
        stem = sha256(stem.encode()).hexdigest()[:24]
    return f"resp_{stem}"


def item_id(kind: str, response: str, position: int) -> str:
    """Of an item of the answer."""
    return f"{_PREFIXES[kind]}_{response.removeprefix('resp_')}{position:04x}"


def input_id(kind: str, response: str, position: int) -> str:
    """Of an item that was sent."""
    return f"{_PREFIXES.get(kind, 'msg')}_{response.removeprefix('resp_')}{_INPUT + position:04x}"


def response_of(item: str) -> str | None:
    """The answer that an item belongs to; None: its id is not ours."""
    found = _OF_ITEM.fullmatch(item)
    return f"resp_{found[1]}" if found else None
