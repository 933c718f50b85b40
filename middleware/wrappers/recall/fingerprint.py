"""What was said, in a form that survives what clients do to a history. Pure.

Clients mint new ids, escape and order arguments differently, put thoughts into the text, replace
images by a word. None of that changes what was said, so none of it may change a key.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import orjson

from adapters.protocol import Json
from adapters.shared.think_tags import CLOSER, OPENER

_LINE_END = re.compile(r"[ \t]*+(?:\n|\Z)")
_EXACT = 1 << 53
"""From here on JavaScript clients round whole numbers."""
_MOST_REMEMBERED = 2048
"""Characters of arguments whose meaning is remembered: longer ones are read each time."""

Call = tuple[str, str]
"""Name and argument values."""


def plain_text(content: Any) -> str:
    """The text of a message without the thoughts some clients put into it; images are a word."""
    text = content if isinstance(content, str) else _joined(content)
    if "think>" in text:
        text = _without_thoughts(split_thought(text)[1])
    return text.strip()


# Not `think_tags.Splitter`: clients send whole texts, with thoughts in any place, and a text that
# quotes a tag must keep its key. A text may be all tags, so each is looked for once: from where the
# last one was found.
def _without_thoughts(text: str) -> str:
    """What stands outside of the tags; nothing, if the text begins with one that has no end."""
    kept, at = [], 0
    while (start := text.find(OPENER, at)) >= 0 and (end := text.find(CLOSER, start)) >= 0:
        kept.append(text[at:start])
        at = end + len(CLOSER)
    rest = "".join(kept) + text[at:]
    return "" if rest.lstrip().startswith(OPENER) else rest


def split_thought(text: str) -> tuple[str, str]:
    """The thought a text begins with, if it has its end on a line of its own, and the rest."""
    end = _end_of_opening(text) if CLOSER in text else 0
    if not end:
        return "", text
    thought = text[:end].strip().removeprefix(OPENER).removesuffix(CLOSER)
    return thought.strip(), text[end:].lstrip()


def _end_of_opening(text: str) -> int:
    """Where the thought is over that a text begins with, or its template did; 0: it has none."""
    bare = text.lstrip()
    at = len(text) - len(bare) + (len(OPENER) if bare.startswith(OPENER) else 0)
    following = text.find(OPENER, at)
    limit = len(text) if following < 0 else following
    while (closer := text.find(CLOSER, at, limit)) >= 0:
        at = closer + len(CLOSER)
        if over := _LINE_END.match(text, at):
            return over.end()
    return 0


def _joined(content: Any) -> str:
    return "\n".join(_part(part) for part in content or ())


def _part(part: Json) -> str:
    text = part.get("text") or part.get("refusal")
    if text is not None:
        return str(text)
    # The words Dify puts in the place of images and files from the second round of tools on.
    return "[image]" if part["type"] == "image_url" else "[file]"


def image_digests(message: Json) -> list[str]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [digest(part["image_url"]).hex() for part in content if part["type"] == "image_url"]


def argument_values(arguments: str) -> str:
    """What arguments mean, whatever the order of keys, the escapes and the form of numbers."""
    return _remembered(arguments) if len(arguments) <= _MOST_REMEMBERED else _values(arguments)


@lru_cache(maxsize=512)  # a history says the same in every request
def _remembered(arguments: str) -> str:
    return _values(arguments)


def _values(arguments: str) -> str:
    try:
        parsed = orjson.loads(arguments or "{}")
        return orjson.dumps(_numbers_alike(parsed), option=orjson.OPT_SORT_KEYS).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return arguments  # no JSON, or nested deeper than anybody reads


def _numbers_alike(value: Any) -> Any:
    kind = type(value)  # arguments may be a million numbers
    if kind is dict:
        return {name: _numbers_alike(item) for name, item in value.items()}
    if kind is list:
        return [_numbers_alike(item) for item in value]
    if kind is float and abs(value) < _EXACT and value.is_integer():
        return int(value)
    return float(value) if kind is int and abs(value) >= _EXACT else value


def calls_of(message: Json) -> tuple[Call, ...]:
    return tuple(_call(call) for call in message.get("tool_calls") or ())


def _call(call: Json) -> Call:
    if "custom" in call:
        return call["custom"]["name"], call["custom"]["input"]
    function = call["function"]
    return function["name"], argument_values(function.get("arguments") or "")


def collapsed(calls: tuple[Call, ...]) -> tuple[Call, ...]:
    """Each call with the last values of its name: all that Dify keeps of calls of one name."""
    last = dict(calls)
    return tuple((name, last[name]) for name, _ in calls)


@lru_cache(maxsize=512)  # one client asks one model, mostly
def start(scope: str, owner: str, model: str, kind: str) -> bytes:
    """Where the keys of a client's conversations with a model begin."""
    return digest(scope, owner, model, kind)


def digest(*parts: Any) -> bytes:
    """Sixteen bytes that stand for the parts."""
    return blake2b(orjson.dumps(parts), digest_size=16).digest()


def identity_of(value: bytes) -> bytes:
    """What tells one memory from every other."""
    return blake2b(value, digest_size=16).digest()
