"""What looks like a secret: keys as their makers let them begin, parts of addresses, members."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from adapters.errors import KEY_SHAPES
from middleware.cassettes.match.differences import common
from middleware.cassettes.secrets.needles import SHORTEST
from middleware.server.last.scrubbing import CREDENTIALS

_DASHED = ("[sp]k", "csk", "xai", "nvapi", "tvly", "pplx", "pypi", "glpat", "gocspx", "xox[a-z]")
_UNDERSCORED = ("[spr]k", "gh[pousr]", "github_pat", "hf", "gsk", "r8", "fw", "npm")
_PARAMETERS = ("key", "token", "secret", "password", "passwd", "signature", "sig", "credential")
_MEMBERS = ("api[-_]key", "apikey", "authorization", "password", "passwd", "secret", "_token")
_STARTS = (b"\nevent: ", b"\ndata: {", b"\n{")
"""Of the frames of a stream."""
_MUCH, _LONGEST, _WORTH = 4096, 500, 40
"""Bytes of all that is searched, those of a frame that are compared, and that must be alike."""


def _behind(words: Sequence[str], end: str) -> str:
    return "(?i:" + "|".join(f"(?<={word}{end})" for word in words) + ")"


def _member(quote: str) -> str:
    """Behind such a member; three letters first, as few names end like it."""
    ends = sorted({word[-3:] for word in _MEMBERS})
    letters = ("".join(f"[{one}{one.upper()}]" for one in end) for end in ends)
    return f"(?<=(?:{'|'.join(letters)}){quote}:){_behind([m + quote for m in _MEMBERS], ':')}"


# Of JSON, of JSON in a text of JSON, as arguments are, and of those in a body in a recorded line.
_MEMBER = "|".join((_member('"'), *(rf'(?<=\\":){_member(q)}' for q in (r'\\"', r'\\\\\\"'))))
# Searched for from a letter that texts seldom have: ten times as quick as to search for the shapes
# themselves. Before each pattern, what must be there at all.
_TRACES = tuple(
    (must, re.compile(pattern.encode()))
    for must, pattern in (
        (b"-", rf"-(?i:(?<=[a-eikoprstxy]-){_behind(_DASHED, '-')})(?=[\w\-.]{{8}})"),
        # Of what is behind them the letters first: _ and ": are all over a stream.
        (
            b"_",
            rf"_(?i:(?<=[bfkmoprstuw8]_))(?i:(?<=[afhprsu]._)){_behind(_UNDERSCORED, '_')}"
            r"(?=[\w\-.]{8})",
        ),
        (b"A", r"A(?:Iza(?=[\w\-]{16})|(?<=AKIA|ASIA|ABIA|ACCA)(?=[A-Z0-9]{12}))"),
        (b"J", r"J(?<=eyJ)(?=[\w\-.]{20})"),
        (b"9", r"9(?<=ya29)\."),
        (b"earer ", r"r (?<=[Bb]earer )"),
        (b"asic ", r"c (?<=[Bb]asic )"),
        # Some write slashes as \/.
        (b"@", r"/(?:(?<=://)|(?<=:\\/\\/)|(?<=:\\\\/\\\\/))[^\s/@\"'<>\\]++@"),
        (b"=", rf"={_behind(_PARAMETERS, '=')}"),
        (b'":', rf'":(?<=[dntyDNTY\\]":)(?:{_MEMBER})\s*\\*"'),
    )
)
_KEY = re.compile(KEY_SHAPES, re.ASCII)  # no letter of another script belongs to a key
# Base64 of any JSON, SK-1005, Bearer authentication, pk_users_email, xai-toolkit.
_WORDS = re.compile(r"eyJ[^.]*+$|[SPR]K[-_]|(?!sk-)(?!.*(?:\d|[a-z][A-Z]))")
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
            rf"(?:{'|'.join(_PARAMETERS)}))={_SAID}([^\s&#\"'<>\\)\]}}*`,;]{{4,}})",
        ),
        (
            "credential",
            rf'"(?:{CREDENTIALS})":\s*+"{_SAID}((?:[^"\\]|\\.){{{SHORTEST},}}+)"',
        ),
    )
)
_CREDENTIAL = re.compile(CREDENTIALS, re.IGNORECASE)


def trace_in(data: bytes) -> bool:
    """Whether a text, or JSON, is worth to be looked at closely; quick, never wrongly false."""
    said = _without_framing(data)
    return any(must in said and trace.search(said) for must, trace in _TRACES)


def _without_framing(data: bytes) -> bytes:
    """A stream in which what its frames begin with, most of it, stands only once.

    That is cut out from the start of a line to a `:"`: no trace goes on across the one, or behind
    the other.
    """
    for start in _STARTS if len(data) > _MUCH else ():
        one = data.find(start, len(data) // 2)
        other = data.find(start, one + 1)
        if 0 <= one < other:
            first = data[one : min(one + _LONGEST, other)]
            alike = common(first, data[other : other + _LONGEST])
            framing = first[: first.rfind(b':"', 0, alike) + 2]
            if len(framing) > _WORTH:
                return b"\n".join([*data.split(framing), framing])
    return data


def shapes_of(text: str) -> Iterator[tuple[int, int, str]]:
    """Everything in a text that looks like a secret: from where to where, and what it is."""
    for label, shape in _SHAPES:
        for found in shape.finditer(text):
            yield *found.span(1), label
    for found in _KEY.finditer(text):
        scheme, space, token = found[0].rpartition(" ")
        start, token = found.start() + len(scheme + space), token.rstrip(".")
        if not _WORDS.match(token):
            yield start, start + len(token), "key"


def is_credential(name: str, value: str) -> bool:
    """Whether such a member of an object is secret."""
    named = _CREDENTIAL.fullmatch(name) is not None
    return named and len(value) >= SHORTEST and value[0] not in _PLACEHOLDERS
