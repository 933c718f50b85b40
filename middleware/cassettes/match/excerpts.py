"""Of two long texts what differs first, and what kinds of values differ in them."""

from __future__ import annotations

import re

from middleware.cassettes.match.differences import alike_at_ends
from middleware.cassettes.match.patterns import tokens

_AROUND, _MOST_READ = 64, 8000
"""Characters read beside what differs, hardly a value is longer; and in all."""
_LEAD, _WIDEST = 40, 160
"""Characters shown beside what differs, and in all."""
_MARK = re.compile(r"\0([^\0]*+)\0\0?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def excerpts(*texts: str) -> list[str]:
    """What differs first in two texts, with what stands around it in its line."""
    start, same = alike_at_ends(*texts)
    begin = max(0, start - _LEAD, texts[0].rfind("\n", 0, start) + 1)
    ends = [min(len(text) - same + _LEAD, len(text), begin + _WIDEST) for text in texts]
    return [
        ("…" if begin else "") + shown(text[begin:end]) + ("…" if end < len(text) else "")
        for text, end in zip(texts, ends, strict=True)
    ]


def shown(text: str) -> str:
    """On one line, with a readable word for each value that may differ."""
    return _CONTROL.sub(" ", _MARK.sub(r"[\1]", text))


def kinds_apart(*texts: str) -> list[str]:
    """Kinds of the values that differ, where both texts have values of the same kinds."""
    start, same = alike_at_ends(*texts)
    start, same = max(0, start - _AROUND), max(0, same - _AROUND)
    parts = [text[start : len(text) - same][:_MOST_READ] for text in texts]
    found = [[it for it in tokens().finditer(part) if it.lastgroup] for part in parts]
    pairs = zip(*found, strict=False)
    kinds = [
        old.lastgroup for old, new in pairs if old.lastgroup == new.lastgroup and old[0] != new[0]
    ]
    return list(dict.fromkeys(filter(None, kinds)))
