"""What looks like a secret: keys as their makers let them begin, parts of addresses, members."""

from __future__ import annotations

import re
from collections.abc import Iterator

from adapters.errors import KEY_SHAPES
from middleware.cassettes.secrets.needles import SHORTEST
from middleware.cassettes.secrets.search import search_for
from middleware.server.last.scrubbing import CREDENTIALS

_PARAMETERS = "key|token|secret|password|passwd|signature|sig|credential"
_has_key = search_for(
    r"(?-u:(?:xai|nvapi|tvly|pplx|pypi|glpat|GOCSPX|xox[a-z])-[\w\-.]{8}"
    r"|(?:gh[pousr]|github_pat|hf|r8|fw|npm)_[\w\-.]{8}"
    r"|eyJ[\w\-.]{20}|AIza[\w\-]{16}|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12}|ya29\.)"
)
_has_short_key = search_for(r"(?-u:(?i:[spr]k[-_])[\w\-.]{8})")
# Some write slashes as \/.
_has_scheme = search_for(r"(?-u:(?i:bearer )[\w\-.]{8}|(?i:basic )[\w+/=\\]{8})")
_has_user_info = search_for(r":\\*/\\*/[^ \t-\r/@\"'<>\\]+@")
# What may stand before the word lets the engine look for `=`, and backwards from there: of the ways
# to write these words too many are possible to look for all at once.
_has_parameter = search_for(rf"(?-u:\w)?(?i-u:{_PARAMETERS})=")
# Of JSON, also where it is a text of JSON, as arguments are. Words without the letters with which
# many others begin.
_has_member = search_for(
    r"(?i-u:i[-_]?key|horization|ssw(?:or)?d|ecret|_token)"
    r'\\*"\s*:\s*\\*"'
)
_KEY = re.compile(KEY_SHAPES, re.ASCII)  # no letter of another script belongs to a key
# Base64 of any JSON, SK-1005, Bearer authentication, pk_users_email, xai-toolkit.
_WORDS = re.compile(r"eyJ[^.]*+$|[SPR]K[-_]|(?!sk-)(?!.*(?:\d|[a-z][A-Z]))")
_BASE64 = re.compile(r"[\w+/\-]*+", re.ASCII)
_CODED = 512
"""Characters of base64 that stand beside no key, without anything between."""
_PLACEHOLDERS = "[{$<."
"""What begins a mark, or what is to be filled in."""
_SAID = rf"(?![{re.escape(_PLACEHOLDERS)}])"
_SHAPES = tuple(
    (label, re.compile(pattern, re.ASCII | re.IGNORECASE))
    for label, pattern in (
        # ssh://git@host has no secret.
        ("user-info", rf"://{_SAID}([^\s/@\"'<>\\:]*+:[^\s/@\"'<>\\]*+|[^\s/@\"'<>\\:]{{8,}}+)@"),
        (
            "parameter",
            rf"(?:[?&#]|&amp;)(?:x-(?:amz|goog)-[\w\-]{{1,40}}|[\w\-]{{0,20}}"
            rf"(?:{_PARAMETERS}))={_SAID}([^\s&#\"'<>\\)\]}}*`,;]{{4,}})",
        ),
        (
            "credential",
            rf'"(?:{CREDENTIALS})":\s*+"{_SAID}((?:[^"\\]|\\.){{{SHORTEST},}}+)"',
        ),
    )
)
_CREDENTIAL = re.compile(CREDENTIALS, re.IGNORECASE)


def trace_in(text: str) -> bool:
    """Whether a text, or JSON, is worth to be looked at closely; quick, never wrongly false."""
    return (
        _has_key(text)
        or _has_short_key(text)
        or _has_scheme(text)
        or _has_user_info(text)
        or _has_parameter(text)
        or _has_member(text)
    )


def shapes_of(text: str) -> Iterator[tuple[int, int, str]]:
    """Everything in a text that looks like a secret: from where to where, and what it is."""
    for label, shape in _SHAPES:
        for found in shape.finditer(text):
            yield *found.span(1), label
    for found in _KEY.finditer(text):
        scheme, space, token = found[0].rpartition(" ")
        start, token = found.start() + len(scheme + space), token.rstrip(".")
        if not (_WORDS.match(token) or _is_in_base64(text, *found.span())):
            yield start, start + len(token), "key"


def _is_in_base64(text: str, start: int, end: int) -> bool:
    """Of some hundred images one has by chance what looks like a key, and would be no image any
    more.
    """
    beside = text[max(0, start - _CODED) : start], text[end : end + _CODED]
    return any(len(one) == _CODED and _BASE64.fullmatch(one) for one in beside)


def is_credential(name: str, value: str) -> bool:
    """Whether such a member of an object is secret."""
    named = _CREDENTIAL.fullmatch(name) is not None
    return named and len(value) >= SHORTEST and value[0] not in _PLACEHOLDERS
