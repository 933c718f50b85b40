"""Takes secrets out of what is recorded; in the place of each stands a stable `[secret:NAME]`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import orjson

from adapters.protocol import Json
from middleware.cassettes.match.edits import Edit, edited
from middleware.cassettes.match.paths import Step, admits, steps_of
from middleware.cassettes.match.patterns import SECRET, pattern_of
from middleware.cassettes.secrets.frames import frames_of, said_anew
from middleware.cassettes.secrets.needles import known_secrets, written_forms
from middleware.cassettes.secrets.search import search_for_any
from middleware.cassettes.secrets.shapes import is_credential, shapes_of, trace_in

_PART = 2
"""The level of JSON whose parts are searched as a whole: one message, one tool."""
_MOST_CLEAN = 100_000
_LONG = 16 << 10


@dataclass(frozen=True, slots=True)
class Redaction:
    """What people name that is to be taken out too."""

    values: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Paths into asks."""
    patterns: tuple[str, ...] = ()


_NOTHING = Redaction()


class Blotter:
    """All that is to be taken out of any turn; remembers in which texts there is nothing."""

    def __init__(
        self, known: Mapping[str, str], more: Redaction = _NOTHING, shapes: bool = True
    ) -> None:
        self.patterns = tuple(map(re.compile, more.patterns))
        self.paths = tuple(map(steps_of, more.paths))
        self.shapes = shapes
        self.clean: set[int] = set()
        values = dict.fromkeys(filter(None, more.values), "redacted")
        self._names = tuple((known_secrets(known) | values).items())

    def turn(self, key: str = "") -> TurnBlotter:
        """`key`: what the client of this turn came with."""
        return TurnBlotter(self, _needles(self._names, key))


class TurnBlotter:
    """Equal secrets of a turn get equal marks, others other ones; its ask has to come first."""

    def __init__(self, blotter: Blotter, needles: _Needles) -> None:
        self._blotter, self._needles = blotter, needles
        self._marks: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def ask(self, body: Json) -> Json:
        """What the paths that people name lead to is taken out of the whole turn."""
        found = {text for steps in self._blotter.paths for text in _texts_at(body, steps) if text}
        if new := found - self._needles.names.keys():
            names = {**self._needles.names} | dict.fromkeys(sorted(new), "redacted")
            self._needles = _needles(tuple(names.items()), "")
        blotted: Json = self.json(body)
        return blotted

    def form(self, value: Json) -> Json:
        """What asks are compared by: the same object, if there is nothing to take out."""
        data = _dumped(value)
        # What is longer is an agent's, of which most parts are known.
        if 0 < len(data) < _LONG and self.finds_nothing(data):
            return value
        blotted: Json = self.json(value)
        return blotted

    def json(self, value: Any, level: int = 0) -> Any:
        """The same object, if there is nothing to take out."""
        data = _dumped(value) if level == _PART else b""
        if data and self.is_clean(data):
            return value
        new: Any
        if level == _PART or not isinstance(value, dict | list | tuple):
            new = said_anew(value, self._said)
        elif isinstance(value, list | tuple):
            new = [self.json(one, level + 1) for one in value]
        else:
            new = {self.text(name): self._member(name, value[name], level) for name in value}
        if new != value:
            return new
        if data:
            self._remember(data)
        return value

    def _member(self, name: str, value: Any, level: int) -> Any:
        return self._said(name, value) if isinstance(value, str) else self.json(value, level + 1)

    def text(self, text: str) -> str:
        edits = [*self._edits(text)]
        return "".join(edited(text, edits, [len(text)])) if edits else text

    def sent(self, data: bytes) -> bytes:
        """JSON as the gateway writes it."""
        if self.is_clean(data):
            return data
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            return self.heard(data, ())[0]
        blotted = self.json(value)
        return data if blotted is value else orjson.dumps(blotted)

    def heard(self, data: bytes, sizes: Sequence[int]) -> tuple[bytes, list[int]]:
        """A body, and of how many bytes its pieces are now; their count stays.

        A line that was changed belongs to the piece in which it began. Once the turn had a secret,
        or where values are named, what a stream said in small parts is searched joined, too.
        """
        if not self._marks and self._blotter.shapes and self.is_clean(data):
            return data, [*sizes]
        text = data.decode("latin-1")
        pieces = edited(text, self._frame_edits(text), [*accumulate(sizes), len(text)])
        return "".join(pieces).encode("latin-1"), [*map(len, pieces[:-1])]

    def _frame_edits(self, text: str) -> Iterator[Edit]:
        frames = [*frames_of(text)]
        said: dict[str, list[str]] = {}

        def note(name: str, text: str) -> str:
            said.setdefault(name, []).append(text)
            return text

        for frame in frames:
            said_anew(frame.value, note)
        new = {name: iter(self._joined(name, texts)) for name, texts in said.items()}
        for frame in frames:
            value = said_anew(frame.value, lambda name, _: next(new[name]))
            if value != frame.value:
                yield frame.edit(value)

    def _joined(self, name: str, texts: Sequence[str]) -> list[str]:
        """Search texts as if they were one; a mark stands where its secret began."""
        joined = "".join(texts)
        if not name or is_credential(name, joined):
            return [self._said(name, text) for text in texts]
        return edited(joined, self._edits(joined), accumulate(map(len, texts)))

    def _said(self, name: str, text: str) -> str:
        if self._blotter.shapes and is_credential(name, text):
            return self._mark("credential", text)
        return self.text(text)

    def is_clean(self, data: bytes) -> bool:
        if hash(data) ^ self._needles.salt in self._blotter.clean:
            return True
        if not self.finds_nothing(data):
            return False
        self._remember(data)
        return True

    def finds_nothing(self, data: bytes) -> bool:
        """The same of what does not come again."""
        if self._blotter.patterns:
            return False
        text = data.decode("utf-8", "replace")
        return not (self._needles.stand_in(text) or (self._blotter.shapes and trace_in(text)))

    def _remember(self, data: bytes) -> None:
        clean = self._blotter.clean
        if len(clean) >= _MOST_CLEAN:
            clean.clear()
        clean.add(hash(data) ^ self._needles.salt)

    def _edits(self, text: str) -> Iterator[Edit]:
        """Spans that overlap are taken out as one."""
        if self.is_clean(text.encode("utf-8", "surrogatepass")):
            return
        merged: list[Edit] = []
        for start, minus_end, _, label in sorted(self._spans(text)):
            before = merged[-1] if merged else Edit(0, 0, "")
            if start >= max(before.end, -minus_end):
                continue  # a pattern that matches nothing
            if start >= before.end:
                merged.append(Edit(start, -minus_end, label))
            elif before.end < -minus_end:
                merged[-1] = Edit(before.start, -minus_end, before.text or label)
        for start, end, label in merged:
            if label:
                yield Edit(start, end, self._mark(label, text[start:end]))

    def _spans(self, text: str) -> Iterator[tuple[int, int, int, str]]:
        """Start, minus the end, rank, label: of those that begin in one place the longest is the
        first, then the one of the lowest rank. What is marked already has no label.
        """
        for mark in pattern_of(SECRET).finditer(text):
            yield mark.start(), -mark.end(), 0, ""
        for form, secret in self._needles.forms.items():
            at = text.find(form)
            while at >= 0:
                yield at, -at - len(form), 1, self._needles.names[secret]
                at = text.find(form, at + len(form))
        for pattern in self._blotter.patterns:
            for found in pattern.finditer(text):
                yield found.start(), -found.end(), 2, "redacted"
        for start, end, label in shapes_of(text) if self._blotter.shapes else ():
            yield start, -end, 3, label

    def _mark(self, label: str, written: str) -> str:
        value = self._needles.forms.get(written, written)
        if value not in self._marks:
            count = self._counts[label] = self._counts.get(label, 0) + 1
            self._marks[value] = f"[secret:{label}#{count}]" if count > 1 else f"[secret:{label}]"
        return self._marks[value]


class _Needles(NamedTuple):
    """What is looked for."""

    names: Mapping[str, str]
    forms: Mapping[str, str]
    """Every way each secret may be written → the secret."""
    stand_in: Callable[[str], bool]
    """Whether a text has one of them."""
    salt: int


@lru_cache(maxsize=256)
def _needles(known: tuple[tuple[str, str], ...], key: str) -> _Needles:
    names = known_secrets({key: "CLIENT_KEY"}) | dict(known)
    forms = {form: secret for secret in names for form in written_forms(secret)}
    # Halves of characters are no text.
    texts = tuple(form.encode("utf-8", "replace").decode() for form in forms)
    return _Needles(names, forms, search_for_any(texts), hash(texts))


def _dumped(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # integers of more than 64 bits
        return b""


def _texts_at(value: Any, steps: Sequence[Step]) -> Iterator[str]:
    if isinstance(value, str) and not steps:
        yield value
    if isinstance(value, dict | list | tuple):
        for name, one in value.items() if isinstance(value, dict) else enumerate(value):
            if not steps or admits(steps[0], name, one):
                yield from _texts_at(one, steps[1:])
