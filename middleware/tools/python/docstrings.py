"""What a docstring says of a function and of its parameters: Google, Sphinx, NumPy."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_MOST = 600
_SECTIONS = (
    *("Args", "Arguments", "Parameters", "Params", "Keyword Args", "Other Parameters", "Returns"),
    *("Return", "Yields", "Raises", "Example", "Examples", "Note", "Notes", "Warning", "See Also"),
    *("Attributes", "References", "Todo"),
)
_HEAD = re.compile(rf"({'|'.join(_SECTIONS)})\s*(:?)\s*$")
_RULE = re.compile(r"-{3,}\s*$")
_FIELD = re.compile(r":\w[^:]*:")
_OF_PARAMETERS = ("Args", "Arguments", "Parameters", "Params", "Keyword Args", "Other Parameters")
_GOOGLE = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(.*)$")
_SPHINX = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$"
)
_NUMPY = re.compile(r"\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")


class Described(NamedTuple):
    """What the text says, each as one line."""

    whole: str
    parameters: dict[str, str]


def described(text: str | None) -> Described:
    lines = inspect.cleandoc(text or "").splitlines()
    found: dict[str, list[str]] = {}
    for name, words in (*_sphinx(lines), *_sections(lines)):
        found.setdefault(name, []).append(words)
    parameters = {name: " ".join(filter(None, words)) for name, words in found.items()}
    return Described(" ".join(_first(lines))[:_MOST], parameters)


def _first(lines: Sequence[str]) -> Iterator[str]:
    """The first paragraph."""
    for at, line in enumerate(lines):
        if not line.strip() or _FIELD.match(line) or _head(lines, at):
            return
        yield line.strip()


def _head(lines: Sequence[str], at: int) -> str:
    """The section that begins here, if one does."""
    found = _HEAD.match(lines[at])
    ruled = at + 1 < len(lines) and _RULE.match(lines[at + 1])
    return found[1] if found and (found[2] or ruled) else ""


def _sphinx(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    name = ""
    for line in lines:
        if found := _SPHINX.match(line):
            name = found[1]
            yield name, found[2].strip()
        elif not line.strip() or not line[0].isspace():
            name = ""
        elif name:
            yield name, line.strip()


def _sections(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at in range(len(lines)):
        if _head(lines, at) in _OF_PARAMETERS:
            if lines[at].rstrip().endswith(":"):
                yield from _google(lines[at + 1 :])
            else:
                yield from _numpy(lines[at + 2 :])


def _google(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    name, margin = "", 0
    for line in lines:
        words, indent = line.strip(), len(line) - len(line.lstrip())
        if not words:
            continue
        if not indent:
            return
        margin = margin or indent
        if indent > margin:
            yield name, words
        elif found := _GOOGLE.match(words):
            name = found[1]
            yield name, found[2]


def _numpy(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    names: list[str] = []
    for at, line in enumerate(lines):
        if _head(lines, at):
            return
        if not line.strip():
            continue
        if line[0].isspace():
            yield from ((name, line.strip()) for name in names)
        elif found := _NUMPY.match(line):
            names = re.split(r"\s*,\s*", found[1])
        else:
            return
