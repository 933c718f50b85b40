"""Which cassette a request names, and which mode it wants: by header, path or key."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import NamedTuple, cast, get_args
from urllib.parse import unquote

from starlette.types import Scope

from middleware.cassettes.errors import CassetteRefused
from middleware.cassettes.names import CassetteName, read_name
from middleware.config import CassetteMode

PREFIX = "/~"
PLAYING = ("replay", "auto")
"""Modes in which a recording may answer."""
_NAMED = "usetool.cassette"
"""Where in the scope the path's name stands, once it is cut off."""
_ASKED: Mapping[bytes, str] = {
    b"x-usetool-cassette": "name",
    b"x-usetool-mode": "mode",
    b"x-usetool-lane": "lane",
    b"x-usetool-fault": "fault",
}
_name_of = itemgetter(0)
# No segment of a name is one of these: what begins with it is the path of a door.
_BASES = ("v1", "api")


class Selection(NamedTuple):
    """What a request says of cassettes; empty where it says nothing."""

    name: CassetteName | None = None
    mode: CassetteMode | None = None
    lane: str = ""
    fault: str = ""


def without_prefix(scope: Scope) -> Scope:
    """Cut `/~NAME` off a path; what is behind it is the path that was meant."""
    segments = scope["path"].removeprefix(PREFIX).split("/")
    ends = [segments.index(base) for base in _BASES if base in segments]
    end = min(ends, default=max(1, len(segments) - 1))
    path = "/" + "/".join(segments[end:])
    return {**scope, "path": path, "raw_path": path.encode(), _NAMED: "/".join(segments[:end])}


def is_named(scope: Scope, suffix: str) -> bool:
    """Whether a request has to do with cassettes at all."""
    if suffix or _NAMED in scope:
        return True
    return not _ASKED.keys().isdisjoint(map(_name_of, scope["headers"]))


def select(scope: Scope, suffix: str, own: str) -> Selection:
    """Read what a request says; `own` is the command's NAME, which gives way as a suffix."""
    said = _headers(scope)
    names = [unquote(said["name"])] if "name" in said else []
    if _NAMED in scope:
        names.append(scope[_NAMED])
    suffix = unquote(suffix)  # a header holds no other scripts
    if suffix and (suffix != own or not names):
        names.append(suffix)
    found = [read_name(name) for name in names]
    if len(set(found)) > 1:
        told = ", ".join(f"'{name}'" for name in names)
        raise CassetteRefused(
            f"The request names different cassettes ({told}): by header, path and key. Name one.",
            code="cassette_ambiguous",
        )
    name = found[0] if found else None
    return Selection(name, _mode(said.get("mode")), said.get("lane", ""), said.get("fault", ""))


def _headers(scope: Scope) -> dict[str, str]:
    return {
        _ASKED[name]: value.decode("utf-8", "replace").strip()
        for name, value in scope["headers"]
        if name in _ASKED
    }


def _mode(text: str | None) -> CassetteMode | None:
    if text is None:
        return None
    if text not in get_args(CassetteMode):
        modes = ", ".join(get_args(CassetteMode))
        raise CassetteRefused(f"x-usetool-mode is '{text[:40]}', but must be one of {modes}.")
    return cast(CassetteMode, text)


def not_allowed(name: str = "") -> CassetteRefused:
    """Recordings hold what others asked."""
    told = f"This client may not name the cassette '{name[:80]}'" if name else "Only an admin may"
    return CassetteRefused(
        f"{told}: `cassettes` and `admin` of [clients] in the gateway's config say who may.",
        code="cassette_not_allowed",
        status=403,
    )


def refusal() -> CassetteRefused:
    return CassetteRefused(
        "The request names a cassette, but this gateway has none: write a [cassettes] section "
        "into its config, or start it with `usetool record` or `usetool replay`.",
        code="cassettes_off",
    )
