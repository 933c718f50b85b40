"""Fetches a file whole or not at all: resumed, checked, and put in its place in one step."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from adapters.local.files import folder
from middleware.cli.importers.toml import table
from middleware.cli.pull.naming import ModelSource
from middleware.cli.pull.screen import Bar
from middleware.cli.pull.web import Broken, Facts, HubReply, PullFailed, facts, fetch, refuse

_PIECE = 1 << 20
_TRIES = 5
_SPARE = 64 << 20
"""Bytes of the disk that stay free."""
_MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class Pulled:
    path: Path
    size: int
    checked: bool
    """By the sha256 of its hub."""


def pull(source: ModelSource, screen: Bar, pause: float = 2.0) -> Pulled:
    """Fetch it, going on where it broke off as long as that brings more of it."""
    transfer = _Transfer(source, folder() / source.place, screen)
    failures = received = 0
    while True:
        try:
            return transfer.attempt()
        except Broken as error:
            failures = failures + 1 if transfer.received == received else 1
            received = transfer.received
            if failures >= _TRIES:
                raise PullFailed(
                    f"{error}. The same command goes on from here. A proxy is taken from "
                    "HTTPS_PROXY, a mirror of the hub from HF_ENDPOINT."
                ) from error
            screen.note(f"{error}; trying again ...")
            time.sleep(pause)
        except OSError as error:
            where = error.filename or transfer.path
            raise PullFailed(f"{where}: cannot be written: {error.strerror}.") from error


def told(pulled: Pulled) -> str:
    """Where it is, and the lines that name it."""
    how = "its sha256 is right" if pulled.checked else "its server says no sha256 to check"
    named = {"upstream": "embedded", "path": str(pulled.path), "num_ctx": 16384}
    return (
        f"{pulled.path} ({pulled.size / 1e9:.2f} GB; {how})\n\n"
        'Models of kind "local" without a `path` take it from the next start on. To name it:\n\n'
        f"{table(('models', pulled.path.stem), named)}"
    )


class _Transfer:
    def __init__(self, source: ModelSource, path: Path, screen: Bar) -> None:
        self.path = path
        self.received = 0
        """Bytes, in all attempts."""
        self._source = source
        self._screen = screen

    def attempt(self) -> Pulled:
        known = facts(self._source)
        checked = bool(known.sha256)
        if self.path.is_file() and self._is_same(known):
            os.utime(self.path)  # the newest is the one that `local` takes
            return Pulled(self.path, self.path.stat().st_size, checked)
        part = self._part(known)
        have = part.stat().st_size if part.is_file() else 0
        if known.size is None or have != known.size:
            self._receive(part, known, have)
        if checked and self._digest(part) != known.sha256:
            part.unlink()
            raise PullFailed(
                f"{self._source.name}: what arrived is not what its hub has: the sha256 differs. "
                "It was removed. Try again; if it happens again, the mirror or a proxy changes it."
            )
        os.replace(part, self.path)
        for old in self.path.parent.glob(_part(escape(self.path.name), "*")):
            old.unlink(missing_ok=True)
        return Pulled(self.path, self.path.stat().st_size, checked)

    def _is_same(self, known: Facts) -> bool:
        if known.size is None or self.path.stat().st_size != known.size:
            return False
        return not known.sha256 or self._digest(self.path) == known.sha256

    def _part(self, known: Facts) -> Path:
        """Named after what it is part of, so that pieces of two versions never meet."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        version = f"{self._source.url} {known.size} {known.sha256 or known.version}"
        mark = hashlib.sha256(version.encode()).hexdigest()[:12]
        part = self.path.with_name(_part(self.path.name, mark))
        unsure = not (known.sha256 or known.version)
        if unsure or (known.size and part.is_file() and part.stat().st_size > known.size):
            part.unlink(missing_ok=True)
        return part

    def _receive(self, part: Path, known: Facts, have: int) -> None:
        self._require((known.size or have) - have)
        reply = fetch(self._source, have, known.version)
        try:
            if reply.status == 416:
                part.unlink(missing_ok=True)
                raise Broken(f"{self._source.name}: its server does not go on where it broke off")
            refuse(self._source, reply)
            have = have if _goes_on(reply, have) else 0
            length = reply.number("content-length")
            whole = None if length is None else have + length
            if whole and known.size not in (None, whole):
                raise PullFailed(
                    f"{self._source.name}: has {whole} bytes, not {known.size} as said."
                )
            self._screen.begin(self._source.name, whole, have)
            self._write(reply, part, have)
        finally:
            reply.close()
        got, wanted = part.stat().st_size, whole or known.size
        if wanted and got < wanted:
            raise Broken(f"{self._source.name}: broke off after {got / 1e6:.1f} MB")
        if wanted and got > wanted:
            part.unlink()
            raise PullFailed(
                f"{part}: two pulls wrote to it, and it was removed. Start one of them."
            )

    def _write(self, reply: HubReply, part: Path, have: int) -> None:
        with open(part, "ab" if have else "wb") as file:
            while piece := reply.read(_PIECE):
                if not have and not file.tell() and not piece.startswith(_MAGIC):
                    raise PullFailed(f"{self._source.url}: what it gives is no GGUF file.")
                self._require(len(piece))
                file.write(piece)
                self.received += len(piece)
                self._screen.more(len(piece))
            file.flush()
            os.fsync(file.fileno())

    def _require(self, size: int) -> None:
        """Of the disk."""
        free = shutil.disk_usage(self.path.parent).free
        if free < size + _SPARE:
            raise PullFailed(
                f"{self.path.parent}: has {free / 1e9:.2f} GB free, where {size / 1e9:.2f} GB are "
                "needed. Make room, or set XDG_CACHE_HOME to a folder of a larger disk."
            )

    def _digest(self, path: Path) -> str:
        self._screen.note(f"checking the sha256 of {self._source.name} ...")
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def _part(name: str, mark: str) -> str:
    return f".{name}.{mark}.part"


def _goes_on(reply: HubReply, have: int) -> bool:
    if reply.status != 206:
        return False  # the whole file comes again
    if not reply.headers.get("content-range", "").startswith(f"bytes {have}-"):
        raise Broken("its server sent another part of the file than it was asked for")
    return True
