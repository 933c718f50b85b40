"""Halves of characters: what is left of an emoji that a client cut in two.

JavaScript cuts strings between the two halves, and writes each as an escape of its own. JSON's
grammar has such escapes (RFC 8259, 8.2), but UTF-8 cannot say them, and parsers refuse them.
"""

from __future__ import annotations

import re

# A first half without a second one behind it, and a second one without a first.
_HALVES = re.compile(
    rb"""(?i: \\u d[89ab][0-9a-f]{2} (?! \\u d[c-f][0-9a-f]{2} )
    | (?<! \\u d[89ab][0-9a-f]{2} ) \\u d[c-f][0-9a-f]{2} )""",
    re.VERBOSE,
)
_UNKNOWN = rb"\\ufffd"
_BACKSLASH, _ASIDE = rb"\\", b"\0\0"


def without_surrogates(body: bytes) -> bytes:
    """Put U+FFFD, which stands for what cannot be said, in the place of each."""
    if b"\0" in body:  # no JSON has one
        return body
    # An escaped backslash before a `u` begins no escape.
    apart = body.replace(_BACKSLASH, _ASIDE)
    return _HALVES.sub(_UNKNOWN, apart).replace(_ASIDE, _BACKSLASH)
