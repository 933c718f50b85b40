"""Images and sounds: base64 of some size stands in files beside the cassette, once each.

In its place is `{file: sha256:DIGEST, type: image/png, bytes: N}`; without a type it was base64
alone, with one a data URL. A map of a client that looks like this has `sha256:` once more.
"""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from pathlib import Path

from middleware.cassettes.file.schema import Misshapen, checked, wrong

LEAST = 4096
"""Bytes; what is smaller stays in the cassette."""
_MARK = "sha256:"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_URL = re.compile(r"data:([^,;]{0,100}(?:;[^,;]{0,100}){0,3});base64,")
_VARIETY = 32
"""Different characters that base64 of something has; a long word has fewer."""


def folder_of(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".yaml") + ".files")


def is_side(path: Path) -> bool:
    return _DIGEST.fullmatch(path.stem) is not None


class SidesOut:
    """Takes base64 out of values; `files` has what to write."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._names: dict[str, str] = {}

    def without(self, value: object) -> object:
        if isinstance(value, str):
            return value if len(value) < LEAST else self._put(value)
        if isinstance(value, list):
            return [self.without(one) for one in value]
        if not isinstance(value, dict):
            return value
        rest = {name: self.without(one) for name, one in value.items()}
        return rest | {"file": _MARK + value["file"]} if _is_mark(value) else rest

    def _put(self, text: str) -> object:
        """What stands in the place of base64; any other text as it is."""
        url = _URL.match(text)
        data = _decoded(text[url.end() :] if url else text)
        if data is None:
            return text
        digest, kind = sha256(data).hexdigest(), url[1] if url else ""
        ending = re.match(r"[a-z]+/([a-z0-9]{1,8})(?![a-z0-9])", kind)  # image/svg+xml → svg
        name = self._names.setdefault(digest, f"{digest}.{ending[1] if ending else 'bin'}")
        self.files[name] = data
        return {"file": _MARK + digest, **({"type": kind} if url else {}), "bytes": len(data)}


class SidesIn:
    """Puts back what `SidesOut` took."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._coded: dict[str, str] = {}

    def within(self, value: object) -> object:
        if isinstance(value, list):
            return [self.within(one) for one in value]
        if not isinstance(value, dict):
            return value
        said = value["file"].removeprefix(_MARK) if _is_mark(value) else ""
        if said and not said.startswith(_MARK):
            return self._text(said, value)
        rest = {name: self.within(one) for name, one in value.items()}
        return rest | {"file": said} if _is_mark(value) else rest

    def _text(self, digest: str, value: object) -> str:
        found = checked(value, {"file": str, "type": str, "bytes": int}, "file")
        if not _DIGEST.fullmatch(digest):
            raise wrong("file", digest, "sha256: and 64 digits")
        if digest not in self._coded:
            self._coded[digest] = self._read(digest)
        head = f"data:{found['type']};base64," if "type" in found else ""
        return head + self._coded[digest]

    def _read(self, digest: str) -> str:
        path = min(self._folder.glob(f"{digest}.*"), default=None)
        if path is None:
            raise Misshapen(f"{self._folder.name}/{digest} is missing; expected it beside")
        data = path.read_bytes()
        if sha256(data).hexdigest() != digest:
            raise Misshapen(f"{self._folder.name}/{path.name} was changed; expected its bytes")
        return base64.b64encode(data).decode()


def _is_mark(value: dict[str, object]) -> bool:
    said = value.get("file")
    return isinstance(said, str) and said.startswith(_MARK)


def _decoded(text: str) -> bytes | None:
    """The bytes of base64 that is written as we write it, so that it comes back the same."""
    if len(text) * 3 < LEAST * 4 or len(set(text[: 1 << 16])) < _VARIETY:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return data if base64.b64encode(data) == text.encode() else None
