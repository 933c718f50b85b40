"""Secrets for tests, and the ways texts hold them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from urllib.parse import quote

from hypothesis import strategies as st

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
# As keys are made: never a word that texts have too.
SECRETS = st.text(LETTERS + "-_./+=!\"\\ '%&", min_size=14, max_size=40).map(
    lambda it: f"Zq7{it}9x"
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
PLAIN = st.text(" \n\t.,;(){}<>\"'\\/äß中文😀", max_size=30)


def in_base64(secret: str, before: int, after: int = 3) -> str:
    return base64.b64encode(b"~" * before + secret.encode() + b"~" * after).decode()


WAYS: Mapping[str, Callable[[str], str]] = {
    "raw": str,
    "json": lambda secret: json.dumps(secret)[1:-1],
    "json in json": lambda secret: json.dumps(json.dumps(secret)[1:-1])[1:-1],
    "slashes escaped": lambda secret: json.dumps(secret)[1:-1].replace("/", "\\/"),
    "url": lambda secret: quote(secret, safe=""),
    "path": quote,
    "lower url": lambda secret: re.sub("%..", lambda it: it[0].lower(), quote(secret)),
    "base64": lambda secret: in_base64(secret, 0),
    "base64 behind a byte": lambda secret: in_base64(secret, 1),
    "base64 behind two": lambda secret: in_base64(secret, 2),
    "base64 for addresses": lambda secret: in_base64(secret, 1).translate({43: "-", 47: "_"}),
}
