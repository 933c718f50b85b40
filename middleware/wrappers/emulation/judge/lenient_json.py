"""A JSON reader for what models write instead of JSON; runs only after the strict one has failed.

Strings in any quotes, bare keys, trailing, doubled and missing commas, Python's literals, comments,
full-width punctuation, raw line ends and inner quotes in strings, missing closers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from middleware.wrappers.emulation.judge.strict_json import require_few

_DEPTH = 64
_MOST_STEPS = 20_000
_CLOSERS = frozenset("}]｝］)")
_QUOTES: Mapping[str, str] = {
    '"': '"',
    "'": "'",
    "“": "”“",
    "”": "”",
    "‘": "’‘",
    "「": "」",
    "『": "』",
    "＂": "＂",
}
_ESCAPES: Mapping[str, str] = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "'": "'",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "\n": "",
}
_LITERALS: Mapping[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "undefined": None,
    # What JSON does not have: no call is made of it, and null would say something else.
    "nan": float("nan"),
    "infinity": float("inf"),
    "+infinity": float("inf"),
    "-infinity": float("-inf"),
}
_BLANK = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z))+", re.DOTALL)
_COMMAS = re.compile(r"[\s,，、]+")
_ENDS = r"(?=$|[\s,，}\]｝］):：;#/`])"
_NUMBER = re.compile(rf"[+-]?(?:\d[\d_]*+(?:\.[\d_]*+)?|\.\d[\d_]*+)(?:[eE][+-]?\d++)?{_ENDS}")
_LITERAL = re.compile(rf"(true|false|none|null|undefined|nan|[+-]?infinity){_ENDS}", re.IGNORECASE)
_CALL_NAME = re.compile(r"\s*([A-Za-z_][\w.\-]*)\s*\(")
_BARE_KEY = re.compile(r"[^\s:：=,，{}\[\]\"'“”]++(?=\s*[:：=])")
_BARE_VALUE = re.compile(r"[^\n,，{}\[\]｝］]+")
_BARE_ARGUMENT = re.compile(r"[^\n,，{}\[\]｝］)]+")
_SET = re.compile(r"[{｛]\s*(?:'[^'\n]*'|\"[^\"\n]*\")\s*[,，}｝]")
_SEPARATOR = re.compile(r"[\s,;)}]*")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_AFTER_KEY = re.compile(r"\s*[:：=]")
_AFTER_VALUE = re.compile(
    r"\s*+(?:[,，}\]｝］、)]|\Z|```|//|#|/\*)"
    r"|[^\S\n]*+\n\s*+(?:[\"'“{]|[^\s:：=,，{}\[\]\"'“”]++\s*+[:：])"
)
# Behind a text among the arguments of a call: what stands in code between quotes ends none.
_AFTER_ARGUMENT = re.compile(
    r"\s*+(?:,\s*+(?:[A-Za-z_]\w*+\s*+[=:]|\))|\)\s*+(?:[\],;)}]|\Z|```)"
    r"|\)[^\S\n]*+\n\s*+[A-Za-z_][\w.\-]*+\((?:\w++\s*+=|\))|\Z|#)"
)


class Reading(NamedTuple):
    value: Any
    end: int
    closed: bool
    """False: the text ended before its closers came."""


class Unended(ValueError):
    """More text may make it readable."""


class _Text:
    def __init__(self, text: str, bare: re.Pattern[str] = _BARE_VALUE) -> None:
        self.text = text
        self.bare = bare
        self.open_ended = False
        self._steps = 0

    def step(self) -> None:
        """Repair has an end, so that nobody waits for it."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise ValueError("too long to be repaired")


def read(text: str, at: int = 0) -> Reading:
    """Read one value; raise ValueError where even a lenient reader finds none."""
    require_few(text)
    source = _Text(text)
    value, end = _value(source, _blank(source, at), 0)
    return Reading(value, end, not source.open_ended)


def read_call(text: str, at: int = 0) -> tuple[str, Any, int]:
    """Read `name(key=value, …)` as Python writes it: name, arguments, end."""
    name = _CALL_NAME.match(text, at)
    if not name:
        raise ValueError("no call")
    source = _Text(text, _BARE_ARGUMENT)
    arguments, end = _object(source, name.end(), 1)
    if source.open_ended:
        raise Unended("the call does not end")
    return name[1], arguments, end


def read_calls(text: str) -> Reading:
    """Read a call, or calls in square brackets, as objects that name their tool."""
    at = len(text) - len(text.lstrip())
    listed = text.startswith("[", at)
    at += listed
    calls: list[dict[str, Any]] = []
    while at < len(text):
        name, arguments, at = read_call(text, at)
        calls.append({"name": name, "arguments": arguments})
        if not listed:
            return Reading(calls, at, closed=True)
        separator = _SEPARATOR.match(text, at)
        at = separator.end() if separator else at
        if text.startswith("]", at):
            return Reading(calls, at + 1, closed=True)
    return Reading(calls, at, closed=False)


def _blank(source: _Text, at: int) -> int:
    found = _BLANK.match(source.text, at)
    return found.end() if found else at


def _value(source: _Text, at: int, depth: int) -> tuple[Any, int]:
    text = source.text
    if depth > _DEPTH:
        raise ValueError("nested too deeply")
    if at >= len(text):
        raise ValueError("nothing to read")
    first = text[at]
    if _SET.match(text, at):  # Python's, which JSON writes as a list
        return _array(source, at + 1, depth + 1)
    if first in "{｛":
        return _object(source, at + 1, depth + 1)
    if first in "[［":
        return _array(source, at + 1, depth + 1)
    if first in _QUOTES:
        argument = depth == 1 and source.bare is _BARE_ARGUMENT
        return _string(source, at, _AFTER_ARGUMENT if argument else _AFTER_VALUE)
    return _scalar(source, at)


def _scalar(source: _Text, at: int) -> tuple[Any, int]:
    text = source.text
    if number := _NUMBER.match(text, at):
        return _number(number[0]), number.end()
    if literal := _LITERAL.match(text, at):
        return _LITERALS[literal[1].lower()], literal.end()
    bare = source.bare.match(text, at)
    word = bare[0].strip() if bare else ""
    if not bare or not word or word.startswith("```"):
        raise ValueError("no value")
    word = re.split(r"\s(?://|#)", word)[0].rstrip()
    return word, at + bare[0].find(word) + len(word)


def _number(text: str) -> int | float:
    digits = text.replace("_", "").lstrip("+")
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _object(source: _Text, at: int, depth: int) -> tuple[dict[str, Any], int]:
    if depth > _DEPTH:
        raise ValueError("nested too deeply")
    members: dict[str, Any] = {}
    while True:
        at, ended = _next(source, at)
        if ended:
            return members, at
        if source.text[at] in "{｛":  # a template's doubled brace
            inner, at = _object(source, at + 1, depth + 1)
            members.update(inner)
            continue
        key, at = _key(source, at)
        at = _blank(source, at)
        if source.text[at : at + 1] not in (":", "：", "="):
            raise ValueError(f"no colon behind the key {key!r}")
        at = _blank(source, at + 1)
        if at >= len(source.text):
            source.open_ended = True
            return members, at
        members[key], at = _value(source, at, depth)


def _array(source: _Text, at: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while True:
        at, ended = _next(source, at)
        if ended:
            return items, at
        item, at = _value(source, at, depth)
        items.append(item)


def _next(source: _Text, at: int) -> tuple[int, bool]:
    """Skip to the next member; True: the container ends here."""
    text = source.text
    while True:
        source.step()
        before = at
        at = _blank(source, at)
        if commas := _COMMAS.match(text, at):
            at = commas.end()
        if at == before:
            break
    if at >= len(text) or text.startswith("```", at):
        source.open_ended = True
        return at, True
    if text[at] in _CLOSERS:
        return at + 1, True
    return at, False


def _key(source: _Text, at: int) -> tuple[str, int]:
    if source.text[at] in _QUOTES:
        return _string(source, at, _AFTER_KEY)
    bare = _BARE_KEY.match(source.text, at)
    if not bare:
        raise ValueError("no key")
    return bare[0], bare.end()


def _string(source: _Text, at: int, after: re.Pattern[str]) -> tuple[str, int]:
    """Read a string; a quote closes it only where something that may follow a string follows."""
    text, closing = source.text, _QUOTES[source.text[at]]
    pieces: list[str] = []
    stop = re.compile(rf"[\\{closing}]")
    at += 1
    while found := stop.search(text, at):
        source.step()
        pieces.append(text[at : found.start()])
        at = found.end()
        if found[0] == "\\":
            piece, at = _escape(text, at)
            pieces.append(piece)
        elif after.match(text, at):
            return "".join(pieces), at
        else:
            pieces.append(found[0])
    source.open_ended = True
    pieces.append(text[at:])
    return "".join(pieces), len(text)


def _escape(text: str, at: int) -> tuple[str, int]:
    """The character an escape means; an escape JSON does not know stays as it is."""
    letter = text[at : at + 1]
    if letter == "u" and (code := _HEX.match(text, at + 1)):
        return _code_point(text, int(code[0], 16), code.end())
    return _ESCAPES.get(letter, "\\" + letter), at + 1


def _code_point(text: str, code: int, at: int) -> tuple[str, int]:
    low = _HEX.match(text, at + 2) if text.startswith("\\u", at) else None
    if 0xD800 <= code < 0xDC00 and low and 0xDC00 <= int(low[0], 16) < 0xE000:
        pair = 0x10000 + ((code - 0xD800) << 10) + int(low[0], 16) - 0xDC00
        return chr(pair), low.end()
    return (chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd"), at
