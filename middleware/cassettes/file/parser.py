"""YAML → values, straight from libyaml's events: one document of plain data, and nothing else."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import yaml

from middleware.cassettes.errors import UnreadableCassette

MOST_BYTES = 64 << 20
DEPTH = 250
"""Levels of one document; a body may have fewer."""
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# YAML 1.1 as PyYAML reads it, so that others see the same values in the file.
_SAYS: Mapping[bool | None, str] = {
    None: "null Null NULL ~",
    True: "true True TRUE yes Yes YES on On ON",
    False: "false False FALSE no No NO off Off OFF",
}
_WORDS: Mapping[str, object] = {
    "": None,
    **{word: value for value, words in _SAYS.items() for word in words.split()},
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*)?\.[0-9_]*(?:[eE][-+][0-9]+)?")
_BINARY = "tag:yaml.org,2002:binary"
_HINT = "expected YAML, like `name: value`, indented with blanks; odd text stands in quotes"


def parse(data: bytes, path: str, *, binary: bool = False) -> Document:
    """`binary`: base64 with YAML's own tag is read too, as others write bytes."""
    if len(data) > MOST_BYTES:
        said = f"{len(data) >> 20} MB; expected at most {MOST_BYTES >> 20} MB"
        raise UnreadableCassette(path, said)
    document = Document(path, binary)
    try:
        document.read(data)
    except yaml.reader.ReaderError as error:
        line = data.count(b"\n", 0, error.position) + 1
        raise UnreadableCassette(path, f"{error.reason}; {_HINT}", line) from None
    except yaml.MarkedYAMLError as error:
        mark, told = error.problem_mark or error.context_mark, f"{error.problem}; {_HINT}"
        raise UnreadableCassette(path, told, mark.line + 1, mark.column + 1) from None
    return document


class Document:
    """A value, and the lines on which the items of the lists at its top begin."""

    def __init__(self, path: str, binary: bool) -> None:
        self._path = path
        self._binary = binary
        self.lines: dict[str, list[int]] = {}
        self._top: list[Any] = []
        self._outer: list[tuple[object, str | None]] = []
        self._here: Any = self._top
        self._key: str | None = None

    @property
    def value(self) -> Any:
        return self._top[0] if self._top else None

    def read(self, data: bytes) -> None:
        acts: Mapping[type, Callable[[yaml.Event], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._begin,
            yaml.SequenceStartEvent: self._begin,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.DocumentStartEvent: self._document,
            yaml.AliasEvent: self._alias,
        }
        for event in iter(_Loader(data).get_event, None):
            if act := acts.get(type(event)):
                act(event)

    def _scalar(self, event: yaml.Event) -> None:
        text = event.value
        if event.tag is not None or event.anchor is not None:
            text = self._marked(event)
        if self._key is not None or type(self._here) is list:
            self._put(_resolved(text) if event.implicit[0] else text, event)
        elif text in self._here:
            self._fail(event, f"{text!r} is here twice; expected each key once")
        else:
            self._key = text

    def _put(self, value: object, event: yaml.Event) -> None:
        if self._key is not None:
            self._here[self._key] = value
            self._key = None
            return
        self._here.append(value)
        if len(self._outer) == 2 and self._outer[1][1] is not None:
            self.lines.setdefault(self._outer[1][1], []).append(event.start_mark.line + 1)

    def _begin(self, event: yaml.Event) -> None:
        if event.tag is not None or event.anchor is not None:
            self._marked(event)
        if len(self._outer) >= DEPTH:
            self._fail(event, f"more than {DEPTH} levels; expected fewer")
        if self._key is None and type(self._here) is dict:
            self._fail(event, "a list or a map as a key; expected text")
        value: object = {} if type(event) is yaml.MappingStartEvent else []
        outer = self._here, self._key
        self._put(value, event)
        self._outer.append(outer)
        self._here = value

    def _end(self, event: yaml.Event) -> None:
        self._here, _ = self._outer.pop()

    def _document(self, event: yaml.Event) -> None:
        if self._top:
            self._fail(event, "a second document; expected one")

    def _alias(self, event: yaml.Event) -> None:
        self._fail(event, f"the alias *{event.anchor}; expected the value itself")

    def _marked(self, event: yaml.Event) -> bytes:
        """Bytes, where they are taken; every other tag is refused, and every anchor."""
        if event.anchor is not None:
            self._fail(event, f"the anchor &{event.anchor}; expected plain data")
        if event.tag != _BINARY or not self._binary:
            self._fail(event, f"the tag {event.tag}; expected plain data")
        try:
            return base64.b64decode(event.value)
        except ValueError as error:
            self._fail(event, f"{error}; expected base64")

    def _fail(self, event: yaml.Event, text: str) -> NoReturn:
        mark = event.start_mark
        raise UnreadableCassette(self._path, text, mark.line + 1, mark.column + 1)


def _resolved(text: str) -> object:
    """What a scalar without quotes says; days and times stay text."""
    if len(text) < 6 and text in _WORDS:
        return _WORDS[text]
    try:
        if _INTEGER.fullmatch(text):
            return int(text)
        return float(text) if _FLOAT.fullmatch(text) else text
    except ValueError:  # a point alone; more digits than Python reads
        return text
