"""The tokens of trained formats where they stand in the text."""

from __future__ import annotations

import re

from middleware.emulation.bodies import JSON_START
from middleware.emulation.formats import (
    BY_OPENER,
    CLOSERS,
    FRAMES,
    HARMONY,
    INNER,
    LONGEST,
    PLAUSIBLE,
    RESULTS,
    TOKEN,
    UNDECIDED,
    Format,
    any_of,
    held_from,
    is_end,
    may_grow,
    prefixes,
)
from middleware.emulation.found import Found
from middleware.emulation.output import Output
from middleware.emulation.tape import Tape, Waiting

_HEADER = 240
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_NOT_TOOLS = frozenset(("assistant", "self", "user", "all"))
_ENDS_OF_MESSAGE = ("<|end|>", "<|eom|>", "<|call|>", "<|return|>", "<|start|>")
_END_OF_MESSAGE = any_of(_ENDS_OF_MESSAGE)
_ADDRESSEE = re.compile(r"[\w.\-]*(?=<\|content_)")
_ADDRESSEE_BEGUN = re.compile(r"[\w.\-]*(?:<\|?[a-z_]{0,8})?")
_SPECIAL = re.compile(r"<\||<｜|\[[A-Z_]+\]")
_NAME = re.compile(r"\s*+(?:functions[.:])?(?P<name>[\w.\-]++)(?::\d++)?[^\S\n]*+")
_OVER = CLOSERS.union(BY_OPENER)
_LEAD = 512
_LONGEST_WORD = len("[CALL_ID]")


class Trained:
    """Reads what one token begins."""

    def __init__(self, tape: Tape, output: Output) -> None:
        self._tape = tape
        self._output = output
        self._due: set[str] = set()
        """Closers of calls and wrappers that are still to come."""

    def token(self, token: str) -> Waiting[None]:
        """Take what a token begins, at which the tape stands."""
        if token in BY_OPENER:
            yield from self._call(token)
        elif token in HARMONY:
            yield from self.message(token)
        elif token in RESULTS and self._output.behind_call and not self._output.trying:
            yield from self._tape.drop()
        else:
            yield from self._single(token)

    def _single(self, token: str) -> Waiting[None]:
        """A token that begins nothing: a closer, a frame, an end, or text."""
        self._tape.pull(token)
        if token == "<|message_model|>":
            yield from self._skip_addressee()
        if self._output.context.code and (yield from self._tape.ahead(1)) == "`":
            self._output.say(token)
            return
        closed = token in CLOSERS and (self._output.behind_call or token in self._due)
        self._due.discard(token)
        if is_end(token):
            yield from self._ends(token)
        elif not (closed or token in FRAMES):
            self._output.say(token)

    def _skip_addressee(self) -> Waiting[None]:
        """The name between the frame and the content token is not text."""
        while not (found := _ADDRESSEE.match(self._tape.text, self._tape.at)):
            text = self._tape.text[self._tape.at : self._tape.at + _LEAD]
            if self._tape.ended or not _ADDRESSEE_BEGUN.fullmatch(text):
                return
            yield
        self._tape.take(found.end())

    def _ends(self, said: str) -> Waiting[None]:
        """An end token counts only where nothing but further ones follow."""
        while True:
            blank = yield from self._tape.past_blank()
            ahead = yield from self.ahead()
            if (self._tape.ended and not self._tape.peek()) or ahead in HARMONY:
                return
            if not is_end(ahead):
                self._tape.back(blank)
                self._output.say(said)
                return
            said += blank + self._tape.pull(ahead)

    def ahead(self) -> Waiting[str]:
        """The token the tape stands at."""
        while True:
            text = self._tape.peek(LONGEST)
            found = TOKEN.match(text)
            if self._tape.ended or (text and not may_grow(text)):
                return found[0] if found else ""
            yield

    def _call(self, token: str) -> Waiting[None]:
        """One call, through the wrappers around it."""
        raw = ""
        while True:
            raw += self._tape.take(self._tape.at + len(token))
            format = BY_OPENER[token]
            raw += yield from self._past_blank()
            inner = yield from self.ahead()
            if inner not in BY_OPENER:
                break
            token = inner
        if not ((yield from self._plausible(format)) or (yield from self._is_closed(token))):
            self._output.say(raw)
            return
        while True:
            body, whole = yield from self._body(format)
            found = self._found(format, body, whole)
            for one in found:
                self._output.accept(one)
            if not found and not self._withheld(token, body, whole):
                self._output.say(raw + body)
                return
            self._due.update(format.closers)
            self._output.behind_call = True
            if not format.again or not (yield from self._again(format.again)):
                break
        if "\\n" in raw:
            yield from self._to_closer(CLOSERS)

    def _is_closed(self, token: str) -> Waiting[bool]:
        """Does the call end soon, where it begins a line?"""
        format = BY_OPENER[token]
        if self._output.here.line or self._output.here.code or "/>" in format.closers:
            return False
        marks = any_of(format.marks)
        while format.closers:
            text = self._tape.peek(_LEAD)
            if end := marks.search(text):
                return end[0] in format.closers
            if self._tape.ended or len(text) == _LEAD or "\n\n" in text:
                break
            yield
        return False

    def _past_blank(self) -> Waiting[str]:
        """White space inside a tag, also where the line ends came out as `\\n`."""
        taken = yield from self._tape.past_blank()
        while (yield from self._tape.ahead(2)) == "\\n":
            taken += self._tape.pull("\\n") + (yield from self._tape.past_blank())
        return taken

    def _withheld(self, token: str, body: str, whole: bool) -> bool:
        """Nothing was read: what is cut, or stands behind a special token, is not text either."""
        if not whole and self._output.reason == "length":
            self._output.dropped += 1
            return True
        if not (whole or _SPECIAL.match(token)):
            return False
        self._output.fail(_without(body, BY_OPENER[token].closers).strip())
        return True

    def _found(self, format: Format, body: str, whole: bool) -> list[Found]:
        body = _without(body, format.closers)
        unfinished = format.whole and not whole
        found = [one._replace(whole=whole, unfinished=unfinished) for one in format.read(body)]
        if whole and not self._output.fence_line:
            return found
        # What is cut, or shown in a fence, is a call only where it names a declared tool.
        return found if any(self._output.names.find(one.name) for one in found) else []

    def _past_fence(self, format: Format) -> Waiting[None]:
        """The end of a fence around the arguments goes with the closer behind it."""
        blank = yield from self._tape.past_blank()
        if (yield from self._tape.ahead(3)) == "```":
            blank += self._tape.pull("```")
        yield from self._to_closer(frozenset(format.closers), blank)

    def _to_closer(self, closers: frozenset[str], taken: str = "") -> Waiting[None]:
        """Go to the closer, if nothing but white space stands before it."""
        taken += yield from self._past_blank()
        if (yield from self.ahead()) not in closers:
            self._tape.back(taken)

    def _again(self, separator: str) -> Waiting[bool]:
        blank = yield from self._tape.past_blank()
        if self._tape.stands_at(separator):
            self._tape.take(self._tape.at + len(separator))
            return True
        self._tape.back(blank)
        return False

    def _plausible(self, format: Format) -> Waiting[bool]:
        """Does what follows look like a call, or like prose about the tag?"""
        plausible = PLAUSIBLE if format.reads else INNER
        while True:
            text = self._tape.text[self._tape.at : self._tape.at + _LEAD]
            head = UNDECIDED.match(text)
            if head and head.end() == len(text) and not self._tape.ended:
                yield
                continue
            return plausible.match(text) is not None

    def _body(self, format: Format) -> Waiting[tuple[str, bool]]:
        first = self._tape.peek()
        if format.ends == "value" or (format.ends == "either" and first in ("{", "[")):
            if not (yield from self._tape.calls_ahead()):
                return (yield from self._up_to_value(format))
            value = yield from self._tape.value(any_of(format.marks))
            if value.text or not format.closers:
                closed = yield from self._past_strays(format)
                return value.text, value.closed or closed
        head = ""
        if "/>" in format.closers:
            head, whole = yield from self._up_to((">",))
            if head.endswith("/>") or not whole:
                return head, whole
        body, whole = yield from self._up_to(format.closers, format.bounds)
        return head + body, whole

    def _up_to_value(self, format: Format) -> Waiting[tuple[str, bool]]:
        """Up to the end of the JSON value, or to the closer where none begins before it."""
        marks = any_of(format.marks)
        if (body := (yield from self._without_value(format, marks))) is not None:
            return body
        start = JSON_START.search(self._tape.text, self._tape.at)
        lead = self._tape.take(start.start() if start else self._tape.at)
        value = yield from self._tape.value(marks)
        closed = yield from self._past_strays(format)
        if not closed and "```" in lead:
            yield from self._past_fence(format)
        return lead + value.text, value.closed or closed

    def _without_value(
        self, format: Format, marks: re.Pattern[str]
    ) -> Waiting[tuple[str, bool] | None]:
        """The body if no JSON value begins in it."""
        while True:
            text = self._tape.peek(_LEAD)
            start = JSON_START.search(text)
            if name := self._bare_name(text):
                return self._tape.pull(name), True
            end = marks.search(text, 0, start.end() + LONGEST if start else _LEAD)
            if end and not (start and start.start() < end.start()):
                closed = end[0] in format.closers
                return self._tape.pull(text[: end.end() if closed else end.start()]), closed
            if self._tape.ended or len(text) >= _LEAD:
                return None if start else (self._tape.pull(text), False)
            if start and _is_decided(text[start.start() :]):
                return None
            yield

    def _bare_name(self, text: str) -> str:
        """The name of a tool that nothing is given to, with what stands before it."""
        found = _NAME.match(text)
        if not found or not self._output.names.exact(found["name"]):
            return ""
        behind = text[found.end() :]
        token = TOKEN.match(behind)
        if token and token[0] in _OVER:
            return found[0]
        if token or behind[:1] in ("", "\n"):
            behind = behind[token.end() if token else 0 :].lstrip()
            over = self._tape.ended if not behind else behind[0] not in "{[(<:`"
            return found[0] if over else ""
        return ""

    def _past_strays(self, format: Format) -> Waiting[bool]:
        """Closers too many go with the value, before its end mark or where the line ends."""
        if format.closers and (yield from self._tape.before_mark(any_of(format.closers))):
            self._tape.stray()
            return True
        yield from self._tape.direct_stray()
        return False

    def _up_to(
        self, closers: tuple[str, ...], bounds: tuple[str, ...] = ()
    ) -> Waiting[tuple[str, bool]]:
        """Take up to and with the first closer; what else bounds the body stays on the tape."""
        pieces: list[str] = []
        marks, begun = any_of((*closers, *bounds)), prefixes((*closers, *bounds))
        longest = max(map(len, begun), default=0)
        while True:
            text = self._tape.text
            found = marks.search(text, self._tape.at)
            if found:
                closed = found[0] in closers
                pieces.append(self._tape.take(found.end() if closed else found.start()))
                return "".join(pieces), closed
            starts = range(max(self._tape.at, len(text) - longest), len(text))
            held = next((start for start in starts if text[start:] in begun), len(text))
            pieces.append(self._tape.take(len(text) if self._tape.ended else held))
            if self._tape.ended:
                return "".join(pieces), False
            yield

    def message(self, token: str) -> Waiting[None]:
        """Harmony: a header that says who is spoken to, then the message."""
        while True:
            text = self._tape.text[self._tape.at : self._tape.at + _HEADER]
            end = text.find("<|message|>")
            if end >= 0:
                break
            if self._tape.ended or len(text) >= _HEADER:
                self._output.say(self._tape.take(self._tape.at + len(token)))
                return
            yield
        header = self._tape.take(self._tape.at + end + len("<|message|>"))
        recipient, channel = _RECIPIENT.findall(header), _CHANNEL.findall(header)
        if recipient and recipient[-1] not in _NOT_TOOLS:
            yield from self._addressed(recipient[-1])
        elif recipient[-1:] == ["self"] or channel[-1:] == ["analysis"]:
            yield from self._analysis()

    def _addressed(self, name: str) -> Waiting[None]:
        yield from self._tape.past_blank()
        if self._tape.peek() == "{":
            text, whole = yield from self._tape.value()
            self._output.accept(Found(name, text, whole))
        elif self._output.names.find(name):
            text, whole = yield from self._up_to(_ENDS_OF_MESSAGE)
            self._output.accept(Found(name, _END_OF_MESSAGE.sub("", text), whole))

    def _analysis(self) -> Waiting[None]:
        while True:
            found = _END_OF_MESSAGE.search(self._tape.text, self._tape.at)
            text = self._tape.text
            open_end = len(text) if self._tape.ended else held_from(text, self._tape.at)
            self._output.think(self._tape.take(found.start() if found else open_end))
            if found or self._tape.ended:
                break
            yield
        if found and found[0] != "<|start|>":
            self._tape.take(found.end())


def _without(body: str, closers: tuple[str, ...]) -> str:
    for closer in closers:
        body = body.removesuffix(closer)
    return body


def _is_decided(value: str) -> bool:
    """Can no word in square brackets come of it any more?"""
    return value.startswith("{") or len(value) > _LONGEST_WORD
