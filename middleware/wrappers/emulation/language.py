"""The words of USE_TOOL: markers, keys and what may stand around them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

Key = Literal["name", "args", "reason"]

# Markdown that models put around a word: blanks, emphasis, headings, quotes, bullets, numbers.
_DECO = r"(?:[\s*_`#>\-•\"'“”]|\d{1,2}[.)]\s)*"
_AFTER = r"[*_`\"'“”\s]*"
_WORDS: Mapping[Key, tuple[str, ...]] = {
    "name": ("TOOL NAME", "FUNCTION NAME", "TOOL", "工具名称", "工具名"),
    "args": (
        *("TOOL ARGS", "TOOL ARGUMENTS", "TOOL INPUT", "TOOL PARAMS", "TOOL PARAMETERS"),
        *("ARGUMENTS", "ARGS", "PARAMETERS", "工具参数", "参数"),
    ),
    "reason": ("REASON", "原因", "理由"),
}


def _words(key: Key) -> str:
    spelled = "|".join(word.replace(" ", "[ _-]?") for word in _WORDS[key])
    return f"(?P<{key}>{spelled})"


_KEY = re.compile(
    rf"{_DECO}(?:{_words('args')}|{_words('name')}|{_words('reason')}){_AFTER}[:：=]",
    re.IGNORECASE,
)
_INLINE_KEY = re.compile(
    r"\s[*_`]*(?:TOOL[ _-]?(?:ARGS|ARGUMENTS|INPUT)|REASON)[*_`]*\s*[:：=]", re.IGNORECASE
)
_MARKER = re.compile(
    rf"{_DECO}(?P<which>USE|NO)[ _-]?TOOL(?:{_AFTER}+[:：][*_`]*+(?=\s|$)|{_AFTER}(?=\s|$))",
    re.IGNORECASE,
)
_NAME_KEY = re.compile(rf"{_DECO}TOOL[ _-]?NAME{_AFTER}[:：=]", re.IGNORECASE)
_QUOTED = re.compile(r"\s*[\"'“]")
_QUOTED_KEY = re.compile(r"\s*[\"'“][\w ]+[\"'”]\s*[:：=]")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)[^`\n]*$")
_PLAIN = re.compile(_DECO)
_NUMBER = re.compile(r"\d{1,2}[.)]?")
# A tool's name behind the marker: JSON follows it, on its line or on the next one.
_SHORT = re.compile(r"(?:[^\s{}()\[\]<>\"'`|:]{1,200}[ \t]*(?:[:(|][ \t]*)*)?(?P<end>\{|$)")
_OPENERS = ("USETOOL", "NOTOOL", "TOOLNAME")
KEYS = tuple(word.replace(" ", "") for words in _WORDS.values() for word in words)
_WORD = re.compile(r"[A-Za-z工具名称参数原因理由_ \-]*")
_LONGEST_DECO = 24
_INVENTED = re.compile(
    rf"{_DECO}(?:END[ _]?)?(?:TOOL[ _]RESULT|Observation){_AFTER}+(?:[:：]|$)", re.IGNORECASE
)


class KeyLine(NamedTuple):
    key: Key
    end: int
    """Where its value begins."""


def key_line(line: str) -> KeyLine | None:
    match = _KEY.match(line)
    if not match:
        return None
    key: Key = "args" if match["args"] else "name" if match["name"] else "reason"
    return KeyLine(key, match.end())


def inline_key(value: str) -> int:
    """Where in the value of a name another key begins (one-line blocks); -1: nowhere."""
    key = _INLINE_KEY.search(value)
    return key.start() + 1 if key else -1


def is_fence(line: str) -> bool:
    return _FENCE.match(line.rstrip("\r\n")) is not None


def is_barrier(line: str, quoted: bool) -> bool:
    """Can no JSON go on with this line? `quoted`: not even with a key in quotation marks."""
    if _QUOTED.match(line) and not (quoted and _QUOTED_KEY.match(line)):
        return False
    found = _KEY.match(line)
    if found and not found["reason"] and _TOOLISH.search(found[0]):
        return True
    if found and found["reason"]:
        return bool(_SHOUTED.search(found[0])) or not _JSON_VALUE.match(line, found.end())
    return _MARKER.match(line) is not None or is_fence(line)


_TOOLISH = re.compile(r"TOOL|FUNCTION|工具", re.IGNORECASE)
_SHOUTED = re.compile(r"REASON|原因|理由")
_JSON_VALUE = re.compile(r"\s*[\"'“\[{\d]")


def is_invented(line: str) -> bool:
    """A model that goes on with the result of its own call."""
    return _INVENTED.match(line) is not None


class Opening(NamedTuple):
    """How a line may begin a block."""

    kind: Literal["use", "no", "name", "wait", "text"]
    end: int = 0
    """Where the marker ends; what follows it belongs to the block."""


_TEXT, _WAIT = Opening("text"), Opening("wait")


def opening(line: str, complete: bool) -> Opening:
    """What the beginning of a line is, or that more of it must be seen."""
    if marker := _MARKER.match(line):
        return _behind_marker(line, marker, complete)
    if _NAME_KEY.match(line):
        return Opening("name")
    return _WAIT if not complete and may_begin(line, _OPENERS) else _TEXT


def _behind_marker(line: str, marker: re.Match[str], complete: bool) -> Opening:
    kind: Literal["use", "no"] = "use" if marker["which"].upper() == "USE" else "no"
    rest = line[marker.end() :].strip(" \t\r\n*_`")
    if not rest:
        return Opening(kind, marker.end()) if complete else _WAIT
    short = _SHORT.match(rest) if kind == "use" else None
    if key_line(rest) or (short and (short["end"] or complete)):
        return Opening(kind, marker.end())
    return _WAIT if not complete and (short or may_begin(rest, KEYS)) else _TEXT


def may_begin(line: str, words: tuple[str, ...] = KEYS) -> bool:
    """Is this the beginning of one of the words, or one of them with its separator to come?"""
    deco = _PLAIN.match(line)
    body = line[deco.end() :] if deco else line
    if not body:
        return len(line) <= _LONGEST_DECO
    word = _WORD.match(body)
    said = re.sub(r"[ _\-]", "", word[0]).upper() if word else ""
    if not word or not said:
        return _NUMBER.fullmatch(body) is not None
    if word.end() == len(body):
        return any(one.startswith(said) or said == one for one in words)
    left = body[word.end() :]
    return said in words and not left.strip("*_`\"'“” \t:：=\r")


def beginning(word: str, behind: str) -> str:
    """A pattern of every beginning of a word, and of the whole word with what stands behind it."""
    pattern = behind
    for letter in reversed(word):
        pattern = f"(?:{'[ _]' if letter == ' ' else re.escape(letter)}{pattern})?"
    return pattern


def is_protocol(line: str) -> bool:
    """Does a line begin like one of the protocol's?"""
    found = _KEY.match(line)
    toolish = found is not None and _TOOLISH.search(found[0]) is not None
    return toolish or _MARKER.match(line) is not None or is_invented(line)
