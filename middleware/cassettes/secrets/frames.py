"""What a body says, whatever its framing: JSON, lines with JSON, or other text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

from middleware.cassettes.match.edits import Edit

_DATA = "data:"


class BodyPart(NamedTuple):
    start: int
    end: int
    value: Any
    """JSON; or text, as it stands there."""

    def edit(self, value: Any) -> Edit:
        """Say something else in its place."""
        said = value if isinstance(value, str) else orjson.dumps(value).decode("latin-1")
        return Edit(self.start, self.end, said)


def frames_of(text: str) -> Iterator[BodyPart]:
    """`text`: bytes, read as latin-1."""
    whole = _read(text)
    at = 0
    for line in [text] if whole is not text else text.split("\n"):
        start = at + len(_DATA) if line.startswith(_DATA) else at
        said = text[start : at + len(line)].strip()
        start = text.index(said, start)
        yield BodyPart(start, start + len(said), _read(said))
        at += len(line) + 1


def _read(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return orjson.loads(text.encode("latin-1"))
    except orjson.JSONDecodeError:
        return text


def said_anew(value: Any, say: Callable[[str, str], str], name: str = "") -> Any:
    """JSON in which each text, by the name of its member, is what `say` makes of it."""
    if isinstance(value, str):
        return say(name, value)
    if isinstance(value, list | tuple):
        return [said_anew(one, say, name) for one in value]
    if isinstance(value, dict):
        return {say("", key): said_anew(one, say, key) for key, one in value.items()}
    return value
