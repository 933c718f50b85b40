"""The beginning of an answer: a thought, marked or begun by the model's own template."""

from __future__ import annotations

import re

from middleware.wrappers.emulation.formats.table import (
    BY_OPENER,
    LONGEST,
    THOUGHTS,
    TOKEN,
    held_from,
    prefixes,
)
from middleware.wrappers.emulation.read.output import Output
from middleware.wrappers.emulation.read.tape import Tape, Waiting

# The end of a thought that a template began; not where it is quoted. Apriel's has no opener.
_ENDINGS = (*dict.fromkeys(THOUGHTS.values()), "[BEGIN FINAL RESPONSE]")
_BEGUN = prefixes(_ENDINGS)
_CLOSER = re.compile(r"(?<![`\"'])(?:" + "|".join(map(re.escape, _ENDINGS)) + ")")
_MARKER = re.compile(
    r"^[ \t*_`#>\-•\"]*(?:(?:USE|NO)[ _-]?TOOL[*_`:： \t]*\r?\n|TOOL[ _-]?NAME[*_`\" \t]*[:：=])",
    re.IGNORECASE | re.MULTILINE,
)
_CALL = re.compile(
    "|".join(re.escape(opener) for opener in sorted(BY_OPENER, key=len, reverse=True))
)
_LONGEST = max(LONGEST, *map(len, (*THOUGHTS, *_ENDINGS)))


_LONGEST_CALL = 1 << 16


def read_thought(tape: Tape, output: Output, hold: int) -> Waiting[None]:
    """Take the thought an answer begins with, if it begins with one."""
    blank = yield from tape.past_blank()
    while True:
        bare = tape.peek(_LONGEST)
        opener = next((one for one in THOUGHTS if bare.startswith(one)), None)
        if opener:
            tape.pull(opener)
            yield from _think(tape, output, THOUGHTS[opener])
            break
        if not tape.ended and any(one.startswith(bare) for one in THOUGHTS):
            yield
            continue
        if (yield from _unopened(tape, output, hold)):
            break
        output.hold(blank)
        return
    yield from tape.past_blank()


def _unopened(tape: Tape, output: Output, hold: int) -> Waiting[bool]:
    """A template may have opened the thought: look that far for its end, before any marker."""
    seen = 0
    while hold and tape.peek() not in ("{", "[", "`"):
        text, first = tape.text, tape.at
        start = max(first, first + seen - _LONGEST)
        closer = _CLOSER.search(text, start, first + hold + _LONGEST)
        mark = _mark(tape, start)
        if closer and closer.start() < first + hold and not 0 <= mark < closer.start():
            output.think(tape.take(closer.start()))
            tape.take(closer.end())
            return True
        if closer or mark >= 0 or tape.ended or _is_past(text[first:], hold):
            break
        seen = len(text) - first
        yield
    return False


def _mark(tape: Tape, start: int) -> int:
    """Where the first marker of a call or another token begins; -1: there is none."""
    text = tape.text
    marks = [_MARKER.search(text, text.rfind("\n", tape.at, start) + 1 or tape.at)]
    token = TOKEN.search(text, start)
    if token and (tape.ended or text[token.start() : token.start() + _LONGEST] not in _BEGUN):
        marks.append(token)
    return min((mark.start() for mark in marks if mark), default=-1)


def _is_past(text: str, hold: int) -> bool:
    """Can no end of a thought begin in the first characters any more?"""
    starts = range(max(0, len(text) - _LONGEST), hold)
    return len(text) >= hold and not any(text[start:] in _BEGUN for start in starts)


def _think(tape: Tape, output: Output, closer: str) -> Waiting[None]:
    """Pass the thought on up to its closer; a call in it waits until the closer comes."""
    kept: list[str] = []
    room = _LONGEST_CALL
    while True:
        text = tape.text
        end = text.find(closer, tape.at)
        call = None if kept or room <= 0 else _CALL.search(text, tape.at)
        if call and (end < 0 or call.start() < end):
            output.think(tape.take(call.start()))
            kept.append(tape.take(call.end()))
            continue
        if end >= 0:
            output.think("".join(kept) + tape.take(end))
            tape.take(end + len(closer))
            return
        stop = len(text) if tape.ended else _held(text, tape.at, closer)
        room = _keep(kept, tape.take(stop), room, output)
        if tape.ended:
            break
        yield
    if output.reason == "length":
        output.think("".join(kept))
    else:
        tape.back("".join(kept))  # it never stopped thinking: its call is its answer


def _keep(kept: list[str], piece: str, room: int, output: Output) -> int:
    """Keep a piece behind a call; what comes very far behind it is the thought going on."""
    room -= len(piece) if kept else 0
    if kept and room > 0:
        kept.append(piece)
    else:
        output.think("".join(kept) + piece)
        kept.clear()
    return room


def _held(text: str, at: int, closer: str) -> int:
    for length in range(min(len(closer) - 1, len(text) - at), 0, -1):
        if text.endswith(closer[:length]):
            return min(len(text) - length, held_from(text, at))
    return held_from(text, at)
