"""Frames of a stream that differ in one text alone: what they say is read without the rest of them.

A stream says the same around each piece of a text. Once a frame was read whole, what stands before
its text and what stands behind it are known, and of frames that have both only the text is new.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from operator import getitem
from typing import Generic, TypeVar

import orjson

from adapters.protocol import Event, value_class

S = TypeVar("S")
Said = Callable[[list[str], S], Iterable[Event]]
"""Texts, one of each frame, and the state of their answer → what they say."""
_MOST_AROUND = 1024
"""Bytes around a text; usual are 80 to 300."""
_TEXT = re.compile(rb'[ \t]*"(?:[^"\\]|\\.)*+"', re.DOTALL)


@value_class
class Alike(Generic[S]):
    """What stands around the text of such frames, and what it means."""

    before: bytes
    behind: bytes
    said: Said[S]

    def texts(self, first: bytes, others: Iterator[bytes]) -> tuple[list[str], bytes]:
        """Those of this frame and of others, as far as they are alike, and the first that is not
        (one without a text is not); b"": all are.
        """
        before, behind = self.before, self.behind
        texts: list[str] = []
        around = len(before) + len(behind)
        for frame in chain((first,), others):
            rest = frame.removeprefix(before).removesuffix(behind)
            if len(rest) + around != len(frame):
                return texts, frame
            try:
                text = orjson.loads(rest)
            except orjson.JSONDecodeError:
                return texts, frame
            if not text or type(text) is not str:
                return texts, frame
            texts.append(text)
        return texts, b""


def alike(frame: bytes, path: Sequence[str | int], said: Said[S]) -> Alike[S] | None:
    """Frames like this one, which has a text at `path`; None: it has none there."""
    before, name, rest = frame.rpartition(orjson.dumps(path[-1]) + b":")
    found = _TEXT.match(rest)
    if found is None or len(frame) - found.end() > _MOST_AROUND:
        return None
    behind = rest[found.end() :]
    try:
        text = orjson.loads(found[0])
        # Another text in the place of this one must be another text there, and nothing else; to
        # try one is not enough, as a text that stands there anyway may be just that.
        for other in (text + ".", text):
            shown = orjson.loads(b"".join((before, name, orjson.dumps(other), behind)))
            if reduce(getitem, path, shown) != other:
                return None
    except (LookupError, TypeError, ValueError):
        return None
    return Alike(before + name, behind, said)
