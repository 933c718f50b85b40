"""One test and its cassette, from the fixture's beginning to its end."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import quote

import pytest

from adapters.protocol import Json
from middleware.cassettes.cassette import CassetteTurn, Mode
from middleware.cassettes.errors import CassetteMiss, CassetteRefused, UnreadableCassette
from middleware.cassettes.names import CassetteName, name_from, read_name
from middleware.cassettes.pytest_plugin.gateways import Gateways
from middleware.cassettes.replay.playback import Missed
from middleware.cassettes.replay.shelf import OpenSession, Shelf
from middleware.cassettes.report import RunReport, as_text, exit_code
from middleware.cli.cassettes.environment import ChildRun, child_environment
from middleware.cli.command import Failed
from middleware.config import ConfigError

_HOW = (
    "If the test is right, record it anew: pytest --usetool-mode record. If turns may stay unused, "
    'say so: @pytest.mark.usetool(unused="ignore").'
)


class Marked(NamedTuple):
    """What the marker `usetool` may say."""

    mode: Mode
    cassette: str = ""
    match: Json | None = None
    faults: Any = None
    unused: Literal["fail", "ignore"] = "fail"


def marked(test: pytest.Item, usual: Mode) -> Marked:
    """Of a test's markers the nearest wins; a mistake fails the test."""
    said: dict[str, Any] = {"mode": usual}
    for marker in reversed([*test.iter_markers("usetool")]):
        said |= {**dict.fromkeys(map(str, marker.args)), **marker.kwargs}
    if unknown := said.keys() - {*Marked._fields}:
        text = f"knows {', '.join(Marked._fields)}; not {', '.join(map(repr, unknown))}"
        pytest.fail(f"The marker usetool {text}.", pytrace=False)
    if said["mode"] == "off" or said["mode"] not in get_args(Mode):
        pytest.fail(f"The marker usetool has an unknown mode: {said['mode']!r}.", pytrace=False)
    return Marked(**said)


@dataclass(frozen=True, slots=True)
class UsetoolCassette:
    """What the fixture gives to a test."""

    address: str
    """The gateway's, with the cassette's name behind it; all protocols are there."""
    _name: CassetteName = field(repr=False)
    _said: Marked = field(repr=False)
    _shelf: Shelf = field(repr=False)

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    @property
    def api_key(self) -> str:
        return f"usetool~{_quoted(self._name)}"

    @property
    def env(self) -> dict[str, str]:
        """What a process has to have in its environment, so that its clients ask here."""
        found = self._session()
        recorded = found.playback.cassette.recorded if found else ""
        run = ChildRun(self.address, _written(self._name), self._said.mode, recorded)
        inner = child_environment(os.environ, run)
        return {name: value for name, value in inner.items() if os.environ.get(name) != value}

    @property
    def turns(self) -> list[CassetteTurn]:
        """Those that have answered the test."""
        if (found := self._session()) is None:
            return []
        turns = {turn.number: turn for turn in found.playback.turns}
        return [turns[number] for number in found.session.played]

    @property
    def missed(self) -> list[Missed]:
        """Asks of the test that no turn answered."""
        if (found := self._session()) is not None:
            return [*found.session.missed]
        return [one for name, one in self._shelf.lost.items() if name == self._name]

    def close(self, passed: bool) -> str:
        """Why the test fails, whatever it made of that itself; empty: it does not."""
        found = self._session()
        report = self._report(found)
        self._shelf.end(self._name)
        if found and passed and not report.missed and report.mode == "replay":
            report = replace(report, unused=self._unused(found), unfired=self._unfired(found))
        text = as_text(report) if exit_code(report) else ""
        return f"{text}\n{_HOW}" if report.missed or report.unused else text

    def _report(self, found: OpenSession | None) -> RunReport:
        return RunReport(
            cassette=self._name.name,
            mode=self._said.mode,
            turns=len(found.playback.turns) if found else 0,
            played=tuple(turn.number for turn in self.turns),
            missed=tuple(self.missed),
            all_played=True,
        )

    def _session(self) -> OpenSession | None:
        return dict(self._shelf.opened()).get(self._name)

    def _unused(self, found: OpenSession) -> tuple[int, ...]:
        """Of the turns that are the test's own, or else nobody's."""
        if self._said.unused == "ignore":
            return ()
        by_session: dict[str, list[int]] = {}
        for turn in found.playback.turns:
            by_session.setdefault(turn.session, []).append(turn.number)
        own = by_session.get(self._name.session) or by_session.get("", [])
        return tuple(turn for turn in own if turn not in found.session.played)

    def _unfired(self, found: OpenSession) -> tuple[str, ...]:
        """A fault in the file of a shared cassette may be for another test."""
        if self._name.session and not self._said.faults:
            return ()
        return tuple(sorted(rule.where for rule in {*found.faults} - found.session.fired))


def open_cassette(test: pytest.Item, said: Marked, gateways: Gateways) -> UsetoolCassette:
    """Begin a test's session; what stands in its way fails the test by name."""
    # Not its node id: pytest-xdist may have appended the test's group to that.
    own = name_from(f"{test.parent.nodeid}::{test.name}" if test.parent else test.nodeid)
    try:
        name = CassetteName(read_name(said.cassette).name, own) if said.cassette else None
        name = name or CassetteName(own)
        address, studio = gateways.place(said.mode)
        shelf = studio.player.shelf
        shelf.end(name)
        if shelf.path(name.name).exists() and said.mode in ("replay", "auto"):
            shelf.begin(name, said.match, said.faults)
    except (CassetteMiss, CassetteRefused, UnreadableCassette, ConfigError, Failed) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    return UsetoolCassette(f"{address}/~{_quoted(name)}", name, said, shelf)


def _written(name: CassetteName) -> str:
    return f"{name.name}@{name.session}" if name.session else name.name


def _quoted(name: CassetteName) -> str:
    return quote(_written(name), safe="/@")
