"""The cassettes of a folder, as far as they were asked for, and the sessions that play them."""

from __future__ import annotations

import tomllib
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import NamedTuple

import yaml

from adapters.protocol import Json
from middleware.cassettes.cassette import Cassette
from middleware.cassettes.errors import CassetteMiss, UnreadableCassette
from middleware.cassettes.file import read_cassette
from middleware.cassettes.match import MatchRules, combined, read_rules
from middleware.cassettes.names import CassetteName, path_of
from middleware.cassettes.replay.faults import FaultMistake, FaultRule, read_faults
from middleware.cassettes.replay.playback import Missed, Playback, Session, playback
from middleware.config import Config

MATCH_FILE = "match.toml"


class _Loaded(NamedTuple):
    playback: Playback
    stamp: tuple[int, int]
    size: int


class OpenSession(NamedTuple):
    """A session with the cassette as it was when the session began, and its faults."""

    playback: Playback
    session: Session
    faults: tuple[FaultRule, ...]


@dataclass(slots=True)
class Shelf:
    folder: Path
    repeats: str | None = None
    """What the config says of asks that come too often."""
    faults: tuple[FaultRule, ...] = ()
    """Of the command."""
    config: Config | None = None
    """Its routes answer, instead of the cassettes' own."""
    own: str = "default"
    """The command's NAME."""
    given: Path | None = None
    """Its file, where it was given as one."""
    lost: dict[CassetteName, Missed] = field(default_factory=dict)
    """Why a session that was asked for did not begin."""
    most_bytes: int = 80 << 20
    """Of files that are kept loaded; in memory they are about three times as large."""
    most_sessions: int = 10_000
    _loaded: OrderedDict[Path, _Loaded] = field(default_factory=OrderedDict)
    _open: OrderedDict[CassetteName, OpenSession] = field(default_factory=OrderedDict)

    def session(self, name: CassetteName) -> OpenSession:
        """The session of a name; a changed file is read again before a new one begins."""
        if name not in self._open:
            self.begin(name)
        self._open.move_to_end(name)
        return self._open[name]

    def begin(self, name: CassetteName, rules: Json | None = None, faults: object = None) -> None:
        """Begin a session, anew if there was one; `rules` are nearer than the cassette's own."""
        found = self.load(name.name)
        try:
            if rules:
                nearest = combined(read_rules(rules, "the session's rules"), found.rules)
                found = found.under(nearest)
            overlay = read_faults(faults, "the session") if faults else overlay_of(found.path)
        except (FaultMistake, UnreadableCassette) as error:
            raise CassetteMiss(str(error), code="cassette_unreadable") from error
        self._open[name] = OpenSession(found, Session(name.session), self.faults or overlay)
        self._open.move_to_end(name)
        if len(self._open) > self.most_sessions:
            self._open.popitem(last=False)

    def end(self, name: CassetteName) -> None:
        self._open.pop(name, None)
        self.lost.pop(name, None)

    def sessions(self, name: str) -> list[tuple[CassetteName, OpenSession]]:
        """Those of one cassette; the one that was asked last is the last."""
        return [(key, found) for key, found in self._open.items() if key.name == name]

    def opened(self) -> list[tuple[CassetteName, OpenSession]]:
        return [*self._open.items()]

    def path(self, name: str) -> Path:
        if self.given is not None and name == self.own:
            return self.given
        return path_of(self.folder, name)

    def written(self, name: str) -> str:
        """How a command is told of a cassette."""
        return str(self.given) if self.given is not None and name == self.own else name

    def load(self, name: str) -> Playback:
        """Read a cassette, unless it is as it was."""
        path = self.path(name)
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._loaded.get(path)
            if known is None or known.stamp != stamp:
                cassette = read_cassette(path)
                found = playback(cassette, path, self.rules(cassette, path), self.config)
                self._keep(path, _Loaded(found, stamp, status.st_size))
        except FileNotFoundError as error:
            raise CassetteMiss(
                f"There is no cassette {path.name} in {path.parent.name}/. Record it: "
                f"usetool record {quote(self.written(name))} -- COMMAND",
                code="cassette_missing",
            ) from error
        except UnreadableCassette as error:
            raise CassetteMiss(str(error), code="cassette_unreadable") from error
        except OSError as error:
            text = f"{path.name} cannot be read: {error.strerror or error}"
            raise CassetteMiss(text, code="cassette_unreadable") from error
        self._loaded.move_to_end(path)
        return self._loaded[path].playback

    def _keep(self, path: Path, loaded: _Loaded) -> None:
        self._loaded[path] = loaded
        self._loaded.move_to_end(path)
        while len(self._loaded) > 1 and self._size() > self.most_bytes:
            self._loaded.popitem(last=False)

    def _size(self) -> int:
        return sum(one.size for one in self._loaded.values())

    def rules(self, cassette: Cassette, path: Path) -> MatchRules:
        """The cassette's own before the folder's before the config's; masks add up."""
        usual = read_rules({"repeats": self.repeats} if self.repeats else {}, "[cassettes]")
        own = read_rules(cassette.match, f"{path.name}: match")
        return combined(own, self._folders(), usual)

    def _folders(self) -> MatchRules:
        path = self.folder / MATCH_FILE
        try:
            said = tomllib.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            said = {}
        except (OSError, ValueError) as error:
            raise UnreadableCassette(str(path), f"expected TOML with rules: {error}") from error
        return read_rules(said, MATCH_FILE)


def overlay_of(path: Path) -> tuple[FaultRule, ...]:
    """The faults beside a cassette."""
    try:
        return faults_of(path.with_suffix(".faults.yaml"))
    except FileNotFoundError:
        return ()


def faults_of(path: Path) -> tuple[FaultRule, ...]:
    """Read an overlay; raise `FaultMistake` for what it cannot mean."""
    try:
        said = yaml.load(
            path.read_text("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        )
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise FaultMistake(path.name, f"it is not YAML: {error}") from error
    return read_faults(said or [], path.name)
