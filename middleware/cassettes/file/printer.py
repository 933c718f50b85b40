"""Values → YAML that people read: the same bytes for the same value, small diffs."""

from __future__ import annotations

import json
import math
import re
from typing import Any

WIDTH = 80
"""What is longer, or deeper than a map in a map, has a line for each of its entries."""
_LONGEST_KEY = 1000
"""Characters; of longer ones YAML wants to be told that they are keys."""
# What only double quotes can say: control characters, and what YAML takes for a line's end.
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_HALF = re.compile("[\ud800-\udfff]")
# Text that needs no quotes anywhere: begins with a letter, nothing in it that structures.
_PLAIN = re.compile(r"[^\W\d][^:#,?\[\]{}\t\n]*(?<! )")
_WORDS = frozenset(["true", "false", "yes", "no", "on", "off", "y", "n", "null"])


def dump(value: object) -> str:
    """Write a JSON value; `parser.parse` reads the same value from it."""
    out: list[str] = []
    _entry(out, value, 2 if isinstance(value, str) else 0, "")
    return "".join([*out, "\n"]).removeprefix(" ")


def _entry(out: list[str], value: Any, column: int, ahead: str) -> None:
    """What stands behind `key:` or `-`; several lines are indented, `ahead` is before a block's."""
    line = _line(value)
    if line is not None:
        out += (" ", line)
    elif isinstance(value, str):
        _literal(out, value, "\n" + " " * column)
    else:
        out.append(ahead)
        _block(out, value, column)


def _block(out: list[str], value: Any, column: int) -> None:
    """A line for each entry, or several; the first begins where the writer stands."""
    ahead, next_line = "", "\n" + " " * column
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(value, list):
            out.append(f"{ahead}-")
            _entry(out, item, column + 2, " ")
        else:
            key = _quoted(str(name))
            is_long = len(key) > _LONGEST_KEY
            out.append(f"{ahead}? {key}{next_line}:" if is_long else f"{ahead}{key}:")
            inner = column if isinstance(item, list) and not is_long else column + 2
            _entry(out, item, inner, "\n" + " " * inner)
        ahead = next_line


def _literal(out: list[str], text: str, next_line: str) -> None:
    lines = text.split("\n")
    # Blanks at its beginning would pass for indentation.
    head = " |2" if text[0] in " \t\n" else " |"
    if lines[-1]:
        head += "-"
    else:
        lines.pop()
        head += "" if lines[-1] else "+"
    out.append(head)
    out += [next_line + line if line else "\n" for line in lines]


def _line(value: Any, depth: int = 2) -> str | None:
    """The text of a value that stands on one line; None: it has lines of its own."""
    if isinstance(value, str):
        return None if _is_literal(value) else _quoted(value)
    if not isinstance(value, dict | list):
        return _atom(value)
    # Numbers, or pairs of them, are read as one thing, however many they are.
    if isinstance(value, list) and (_is_numbers(value) or all(map(_is_pair, value))):
        return f"[{', '.join([_line(one) or '' for one in value])}]"
    return _flow(value, depth - 1) if value and depth else None if value else "{}"


def _flow(value: Any, depth: int) -> str | None:
    """`{a: 1}` or `[a]`, if it is short, and not deep; maps stand below each other."""
    is_map, texts = isinstance(value, dict), []
    for name, one in value.items() if is_map else enumerate(value):
        if isinstance(one, dict) and (not is_map or len(one) > 1 < len(value)):
            return None
        text = _line(one, depth)
        if text is None or len(text) > WIDTH:
            return None
        texts.append(f"{_quoted(str(name))}: {text}" if is_map else text)
    said = ", ".join(texts)
    if len(said) > WIDTH:
        return None
    return f"{{{said}}}" if is_map else f"[{said}]"


def _is_numbers(value: list[object]) -> bool:
    return all(type(one) is int or type(one) is float for one in value)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_numbers(value)


def _is_literal(text: str) -> bool:
    return "\n" in text and not _ODD.search(text) and not text.isspace()


def _quoted(text: str) -> str:
    if _ODD.search(text) or "\n" in text:
        said = json.dumps(_HALF.sub("\ufffd", text), ensure_ascii=False)
        return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", said)
    if _PLAIN.fullmatch(text) and (len(text) > 5 or text.lower() not in _WORDS):
        return text
    return "'" + text.replace("'", "''") + "'"


def _atom(value: object) -> str:
    if not isinstance(value, float):
        return json.dumps(value)
    if not math.isfinite(value):
        return "null"  # as JSON has it
    text = repr(value)
    # YAML 1.1 wants a point before the exponent.
    return text if "e" not in text or "." in text else text.replace("e", ".0e")
