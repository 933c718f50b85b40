"""The secrets that are known by name, every way one may be written, and a search for them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from urllib.parse import quote, quote_plus, unquote, unquote_to_bytes

from adapters.kind import kind_names

SHORTEST = 6
"""Shorter ones are stand-ins, and blotting them out would blot out words."""
# What people write where a key has to stand and none is needed; kinds' names stand there too.
_STAND_INS = frozenset(
    {
        *("secret", "password", "placeholder", "replayed", "usetool", "anything", "api-key"),
        *("not-needed", "no-key-required", "sk-no-key-required", "lm-studio", "dummy-key"),
    }
)
_SCHEMES = ("bearer", "basic", "token")
_LEVELS = 3
"""How often JSON may stand within a text of JSON: arguments within a body within a report."""


def known_secrets(named: Mapping[str, str]) -> dict[str, str]:
    """Values and their names → each value that must not be written, and what stands for it.

    Of an address it is what stands before the host; a header's scheme is none.
    """
    known: dict[str, str] = {}
    stand_ins = {*_STAND_INS, *kind_names()}
    for value, name in named.items():
        label = re.sub(r"\W", "_", name.strip("$"), flags=re.ASCII).upper()[:100]
        for part in _parts(value):
            # What is its own name is one that somebody has to set yet.
            if len(part) >= SHORTEST and part.lower() not in stand_ins and part != label:
                known.setdefault(part, label)
    return known


def _parts(value: str) -> Iterator[str]:
    scheme, _, rest = value.partition(" ")
    if scheme.lower() in _SCHEMES:
        yield rest
    scheme, separator, rest = value.partition("://")
    if not separator:
        yield value
    info = rest.rpartition("@")[0]
    yield info
    yield info.partition(":")[2]
    yield unquote(info.partition(":")[2])


@lru_cache(maxsize=256)
def written_forms(secret: str) -> tuple[str, ...]:
    """The secret itself, JSON-escaped, URL-encoded and in base64 at any place of a longer text."""
    forms = [secret]
    for plain, slash in product((True, False), ("/", r"\/")):
        text = secret
        for level in range(_LEVELS):
            text = json.dumps(text, ensure_ascii=plain)[1:-1]
            text = text if level else text.replace("/", slash)
            forms.append(text)
    for safe in ("", "/", "!'()*~"):
        encoded = quote(secret, safe, errors="replace")
        forms += (encoded, re.sub("%..", lambda found: found[0].lower(), encoded))
    forms.append(quote_plus(secret, errors="replace"))
    forms += [core for core in _in_base64(secret) if len(core) >= SHORTEST]
    return tuple(dict.fromkeys(forms))


def _in_base64(secret: str) -> Iterator[str]:
    """What does not depend on the bytes around it, behind 0, 1 and 2 bytes of a group of three."""
    data = secret.encode("utf-8", "replace")
    for before in range(3):
        coded = base64.b64encode(bytes(before) + data)
        core = coded[-(-8 * before // 6) : 8 * (before + len(data)) // 6].decode()
        yield core
        yield core.replace("+", "-").replace("/", "_")


def leaks(data: bytes, secrets: Mapping[str, str]) -> list[str]:
    """Name the secrets that stand in what is about to be written, however they are written.

    This one knows nothing of JSON, marks and shapes.
    """
    readings = {data, unquote_to_bytes(data)}
    return sorted(
        {
            name
            for secret, name in known_secrets(secrets).items()
            if any(form.encode() in one for form in written_forms(secret) for one in readings)
        }
    )
