"""Text for people at a terminal: nothing that a stranger wrote steers it or hides in it."""

from __future__ import annotations

import re

# Controls (escape sequences begin with one), what turns the direction of writing, what has no
# width, tags, and halves of characters. Line breaks and tabs are text.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff"
    "\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def one_line(text: str) -> str:
    """What cannot be printed, line breaks too, as question marks."""
    if text.isprintable():
        return text
    return "".join([letter if letter.isprintable() else "?" for letter in text])


def visible(text: str) -> str:
    """Such characters as JSON escapes them: inside a JSON text they still mean the same."""
    return _UNSEEN.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join([f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)])
