"""Halves of characters: what is left of an emoji that a client cut in two.

JavaScript cuts strings between the two halves, and writes each as an escape of its own. JSON's
grammar has such escapes (RFC 8259, 8.2), but UTF-8 cannot say them, and parsers refuse them.
"""

from __future__ import annotations

import re

# Whole characters and every other escape are passed over, so that none is taken for a half.
_ESCAPES = re.compile(
    rb"(?i:\\u d[89ab][0-9a-f]{2} \\u d[c-f][0-9a-f]{2} | (\\u d[89a-f][0-9a-f]{2}) ) | \\.",
    re.VERBOSE | re.DOTALL,
)
_UNKNOWN = rb"\ufffd"


def without_halves(body: bytes) -> bytes:
    """Put U+FFFD, which stands for what cannot be said, in the place of each."""
    return _ESCAPES.sub(lambda found: _UNKNOWN if found[1] else found[0], body)
