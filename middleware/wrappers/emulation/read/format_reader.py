"""The tokens of trained formats where they stand in the text."""

from __future__ import annotations

import re

from middleware.wrappers.emulation.formats.raw_call import RawCall
from middleware.wrappers.emulation.formats.synonyms import ARGUMENTS, BESIDE, HOLDERS, NAMES
from middleware.wrappers.emulation.formats.table import (
    BY_OPENER,
    CLOSERS,
    FRAMES,
    HARMONY,
    INNER,
    PLAUSIBLE,
    RESULTS,
    UNDECIDED,
    Format,
    any_of,
    held_from,
    is_end,
    is_special,
)
from middleware.wrappers.emulation.read.body import (
    Body,
    is_closed,
    past_blank,
    to_closer,
    token_ahead,
    up_to,
)
from middleware.wrappers.emulation.read.output import Output
from middleware.wrappers.emulation.read.quotation import EXAMPLE
from middleware.wrappers.emulation.read.tape import Tape, Waiting

_HEADER = 240
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_NOT_TOOLS = frozenset(("assistant", "self", "user", "all"))
_ENDS_OF_MESSAGE = ("<|end|>", "<|eom|>", "<|call|>", "<|return|>", "<|start|>")
_END_OF_MESSAGE = any_of(_ENDS_OF_MESSAGE)
_ADDRESSEE = re.compile(r"[\w.\-]*(?=<\|content_)")
_ADDRESSEE_BEGUN = re.compile(r"[\w.\-]*(?:<\|?[a-z_]{0,8})?")
_SPECIAL = re.compile(r"<\||<｜|\[[A-Z_]+\]")
_LEAD = 512
_SAID, _OPEN = r"[^\n`<{\[]{1,200}+\s{0,8}+", r"[{\[][\s{\[]{0,8}+"
_WORDS = re.compile(
    rf"(?P<words>{_SAID}){_OPEN}[\"'“](?:{'|'.join((*NAMES, *ARGUMENTS, *HOLDERS, *BESIDE))})[\"'”]"
)
_ONE_WORD = re.compile(r"[\w.\-:]+\s*")  # a name, which the arguments follow
_WORDS_BEGUN = re.compile(rf"{_SAID}(?:{_OPEN}(?:[\"'“]\w{{0,16}})?)?|\Z")


class FormatReader:
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

    # Here, where no quotation is known: a reader that is over must not hold itself.
    def following(self) -> Waiting[Waiting[None] | None]:
        """The reading of a call that follows, or of the end of what holds calls."""
        blank = yield from self._tape.past_blank()
        token = yield from token_ahead(self._tape)
        if token in BY_OPENER or token in CLOSERS:
            return self.token(token)
        self._tape.back(blank)
        return None

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
        while not (addressee := _ADDRESSEE.match(self._tape.text, self._tape.at)):
            text = self._tape.text[self._tape.at : self._tape.at + _LEAD]
            if self._tape.ended or not _ADDRESSEE_BEGUN.fullmatch(text):
                return
            yield
        self._tape.take(addressee.end())

    def _ends(self, tokens: str) -> Waiting[None]:
        """An end token counts only where nothing but further ones follow."""
        while True:
            blank = yield from self._tape.past_blank()
            ahead = yield from token_ahead(self._tape)
            if (self._tape.ended and not self._tape.peek()) or ahead in HARMONY:
                return
            if not is_end(ahead):
                self._tape.back(blank)
                self._output.say(tokens)
                return
            tokens += blank + self._tape.pull(ahead)

    def _call(self, token: str) -> Waiting[None]:
        """One call, through the wrappers around it."""
        raw, token = yield from self._openers(token)
        format = BY_OPENER[token]
        if words := (yield from self._words(token)):
            yield from self._behind_words(format, raw, words)
            return
        if not ((yield from self._plausible(format)) or (yield from self._is_block(format))):
            self._output.say(raw)
            return
        while True:
            body, whole = yield from Body(self._tape, self._output, format).read()
            calls = self._calls_of(format, body, whole)
            for call in calls:
                self._output.accept(call)
            if not calls and not self._withheld(token, body, whole):
                self._output.say(raw + body)
                return
            self._due.update(format.closers)
            self._output.end_call()
            if not format.again or not (yield from self._again(format.again)):
                break
        if "\\n" in raw:
            yield from to_closer(self._tape, CLOSERS)

    def _openers(self, token: str) -> Waiting[tuple[str, str]]:
        """Take them all; the last is that of the call."""
        raw = ""
        while True:
            raw += self._tape.pull(token) + (yield from past_blank(self._tape))
            inner = yield from token_ahead(self._tape)
            if inner not in BY_OPENER:
                return raw, token
            token = inner

    def _behind_words(self, format: Format, raw: str, words: str) -> Waiting[None]:
        """A call behind words that stand behind its mark: they are text, and the mark is not."""
        output = self._output
        block = yield from self._is_block(format)
        self._tape.pull(words)
        body, whole = yield from Body(self._tape, output, format).read()
        calls = self._calls_of(format, body, whole)
        if not calls or not (block or all(output.names.find(call.name) for call in calls)):
            output.say(raw + words + body)
            return
        output.say(words.rstrip())
        output.hold(words[len(words.rstrip()) :])
        for call in calls:
            output.accept(call)
        self._due.update(format.closers)

    def _words(self, token: str) -> Waiting[str]:
        """What stands on a line of its own before JSON that begins like a call."""
        here = self._output.here
        if here.code or (here.line and not self._output.behind_call):
            return ""
        if not (is_special(token) and BY_OPENER[token].reads):
            return ""
        while True:
            text = self._tape.peek(_LEAD)
            if found := _WORDS.match(text):
                words = found["words"]
                return "" if _ONE_WORD.fullmatch(words) or EXAMPLE.search(words) else words
            if self._tape.ended or not _WORDS_BEGUN.fullmatch(text):
                return ""
            yield

    def _is_block(self, format: Format) -> Waiting[bool]:
        """Is this a block that begins a line and ends soon, whatever it holds?"""
        if self._output.here.line or self._output.here.code or "/>" in format.closers:
            return False
        return bool(format.closers) and (yield from is_closed(self._tape, format))

    def _withheld(self, token: str, body: str, whole: bool) -> bool:
        """Nothing was read: what is cut, or stands behind a special token, is not text either."""
        if not whole and self._output.cut:
            self._output.judge.drop()
            return True
        if not (whole or _SPECIAL.match(token)):
            return False
        self._output.fail(_without(body, BY_OPENER[token].closers).strip())
        return True

    def _calls_of(self, format: Format, body: str, whole: bool) -> list[RawCall]:
        body = _without(body, format.closers)
        unfinished = format.whole and not whole
        calls = [call._replace(whole=whole, unfinished=unfinished) for call in format.read(body)]
        if whole and not self._output.fence_line:
            return calls
        # What is cut, or shown in a fence, is a call only where it names a declared tool.
        return calls if any(self._output.names.find(call.name) for call in calls) else []

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
            self._output.accept(RawCall(name, text, whole))
        elif self._output.names.find(name):
            text, whole = yield from up_to(self._tape, _ENDS_OF_MESSAGE)
            self._output.accept(RawCall(name, _END_OF_MESSAGE.sub("", text), whole))

    def _analysis(self) -> Waiting[None]:
        while True:
            end = _END_OF_MESSAGE.search(self._tape.text, self._tape.at)
            text = self._tape.text
            stop = len(text) if self._tape.ended else held_from(text, self._tape.at)
            self._output.think(self._tape.take(end.start() if end else stop))
            if end or self._tape.ended:
                break
            yield
        if end and end[0] != "<|start|>":
            self._tape.take(end.end())


def _without(body: str, closers: tuple[str, ...]) -> str:
    for closer in closers:
        body = body.removesuffix(closer)
    return body
