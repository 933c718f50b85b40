"""Names of cassettes: which are taken, which file each means, and how any text becomes one."""

from __future__ import annotations

import os
import re
import unicodedata
from hashlib import sha256
from pathlib import Path

from adapters.protocol import value_class
from middleware.cassettes.errors import CassetteRefused

_SEGMENT, _NAME = 150, 600
"""Bytes at most: a segment becomes a file's name, with endings."""
_TAKEN = ("v1", "api")
_ENDING = ".yaml"
# A test's id that needs nothing to tell its name from others: the path of its module, its function,
# perhaps a simple parameter.
_TEST = re.compile(r"((?:[\w.]+/)*\w+)\.py::(\w+)(?:\[([\w.]+)\])?")


@value_class
class CassetteName:
    name: str
    session: str = ""


def read_name(text: str) -> CassetteName:
    """Read `NAME` or `NAME@SESSION`."""
    name, at, session = text.partition("@")
    return CassetteName(_checked(name), _checked(session) if at else "")


def path_of(folder: Path, name: str) -> Path:
    """The file of a name, within the folder whatever is linked there; it need not exist."""
    name = _checked(name)
    path = folder / (name + _ENDING)
    if not (_is_within(path, folder) and _is_within(folder / f"{name}.files", folder)):
        raise _refused(name, "A link there leaves the folder of cassettes")
    if not path.exists() and (other := _twin(path)):
        raise _refused(name, f"'{other}', which differs from it only in case, is there already")
    return path


def file_of(folder: Path, name_or_path: str) -> Path:
    """What commands are given: a name, or the path of a file that ends in .yaml."""
    is_path = name_or_path.endswith(_ENDING)
    return Path(name_or_path) if is_path else path_of(folder, read_name(name_or_path).name)


def name_from(text: str) -> str:
    """Make a name of any text; texts that differ get names that differ in more than case.

    `test_agent.py::test_rain[snow]` → test_agent/test_rain-snow
    """
    if name := _plain_test(text):
        return name
    words = unicodedata.normalize("NFC", text.replace(".py::", "/").replace("::", "/"))
    safe = "".join(one if one == "/" or (one != "." and _is_letter(one)) else "-" for one in words)
    parts = [part.strip("-_")[:30] for part in safe.split("/")]
    shown = "/".join([part for part in parts if part and part not in _TAKEN][-4:])
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{shown or 'text'}--{digest}"  # no name without a digest has --


def _plain_test(text: str) -> str:
    """The name of a test whose id says it; empty: another id may say the same."""
    found = _TEST.fullmatch(text)
    if not found or text != unicodedata.normalize("NFC", text.casefold()):
        return ""
    name = f"{found[1]}/{found[2]}" + (f"-{found[3]}" if found[3] else "")
    return name if _is_name(name) else ""


def _is_within(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links that lead to each other
        return False


def _twin(path: Path) -> str:
    """What stands beside a path under a name that some disks take for the same."""
    names = os.listdir(path.parent) if path.parent.is_dir() else []
    return next((name for name in names if name.casefold() == path.name.casefold()), "")


def _refused(text: str, why: str) -> CassetteRefused:
    return CassetteRefused(f"'{text[:80]}' is no name of a cassette. {why}.", code="cassette_name")


def _checked(name: str) -> str:
    name = unicodedata.normalize("NFC", name)
    if not _is_name(name):
        raise _refused(name, "It has letters, digits and ._-, in parts that / divides")
    return name


def _is_name(name: str) -> bool:
    size = len(name.encode("utf-8", "replace"))
    return size <= _NAME and all(map(_is_segment, name.split("/")))


def _is_segment(part: str) -> bool:
    return (
        0 < len(part.encode("utf-8", "replace")) <= _SEGMENT
        and part not in _TAKEN
        and not part.endswith((".files", ".faults", "."))
        and all(map(_is_letter, part))
    )


def _is_letter(character: str) -> bool:
    return character in "._-" or unicodedata.category(character)[0] in "LMN"
