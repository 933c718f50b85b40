"""What the URL of a request says."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import unquote

import httptools

_LONGEST = 256
"""Bytes of one that is remembered."""
Url = tuple[str, bytes, bytes]
"""Its path as text and as it came, and its query."""


def read_url(url: bytes) -> Url:
    return _remembered(url) if len(url) <= _LONGEST else _read(url)


def _read(url: bytes) -> Url:
    found = httptools.parse_url(url)
    path = found.path.decode("ascii")
    return unquote(path) if "%" in path else path, found.path, found.query or b""


# Few are asked again and again.
_remembered = lru_cache(maxsize=256)(_read)
