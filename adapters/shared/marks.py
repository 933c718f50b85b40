"""The marks of a JSON text, found at the speed of bytes: how much there is before it is read."""

from __future__ import annotations

_ALIKE = bytes.maketrans(b"{}", b"[]")
_NO_OPENERS = bytes(set(range(256)) - set(b"[{"))
_NO_MARKS = bytes(set(range(256)) - set(b'[]{},"'))
# With what may follow a backslash in JSON, so that none comes to stand before another's follower.
_NO_MARKS_OR_ESCAPES = bytes(set(_NO_MARKS) - set(b"\\/bfnrtu"))

_EACH_VALUE = 64
"""Bytes that Python takes for a value beside its characters."""
_FEW = 16
"""Characters to a value, or more: the text of a message has few."""


def most_openers(text: bytes) -> int:
    """How many brackets open; those in strings count too."""
    return len(text.translate(None, _NO_OPENERS))


def marks(text: bytes) -> bytes:
    """The commas and brackets; those in strings do not count. All brackets come as square ones."""
    found = text.translate(_ALIKE, _NO_MARKS_OR_ESCAPES)
    plain = found.replace(b"\\\\", b"").replace(b'\\"', b"")
    quoted = plain.translate(None, _NO_MARKS).replace(b'""', b"")
    return b"".join(quoted.split(b'"')[::2])


def room_of_values(text: bytes) -> int:
    """Bytes that Python takes for all values beside the text; 0: they are too few to count."""
    most = text.count(b",") + text.count(b"[") + text.count(b"{")
    if most * _FEW < len(text):
        return 0
    found = marks(text)
    return _EACH_VALUE * (len(found) - found.count(b"]"))


def are_deeper(found: bytes, most: int) -> bool:
    """Whether brackets stand in more levels: the innermost go, a level at a time."""
    brackets = found.replace(b",", b"")
    for _ in range(most):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return False
    return bool(brackets)
