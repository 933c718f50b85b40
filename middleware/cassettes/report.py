"""What one run over a cassette was: for people, for programs, and as an exit code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import PurePath
from typing import NamedTuple
from xml.etree import ElementTree

from adapters.protocol import Json
from adapters.shared.schema.walk import shown
from middleware.cassettes.cassette import Mode
from middleware.cassettes.lint import Lint
from middleware.cassettes.replay import Drift
from middleware.cassettes.replay.playback import Missed
from middleware.server.terminal import one_line, visible

_MOST_SHOWN = 50
"""Of a kind; a file of JSON or JUnit has them all."""


class ReportedProblem(NamedTuple):
    text: str
    code: int = 4
    """What the run ends with: 1 differences, 2 used wrongly, 4 not recorded, 6 a live question."""


class UnknownReport(Exception):
    """No report is written under such a file name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    cassette: str
    mode: Mode
    turns: int
    """How many the cassette has, when the run is over."""
    played: tuple[int, ...] = ()
    missed: tuple[Missed, ...] = ()
    unused: tuple[int, ...] = ()
    not_whole: tuple[tuple[int, str], ...] = ()
    """Turns, and how each ended."""
    drift: tuple[tuple[int, Drift], ...] = ()
    """Turns, and how this version does otherwise."""
    substitutions: tuple[Json, ...] = ()
    """Live values carried into answers: `{turn, path, recorded, now}`."""
    lint: tuple[Lint, ...] = ()
    unfired: tuple[str, ...] = ()
    """The places of fault rules that never acted."""
    dropped: int = 0
    """Turns that could not be written as fast as they came."""
    problems: tuple[ReportedProblem, ...] = ()
    code: int | None = None
    """How the command ended; None: there was none."""
    asks: int = 0
    """Requests that were no probes."""
    all_played: bool = False
    errors_meant: bool = False
    seconds: float = 0


class _Finding(NamedTuple):
    code: int
    """What the run ends with for it; 0: it is only told."""
    name: str
    text: str


def exit_code(report: RunReport) -> int:
    """The command's own code goes before ours."""
    found = {finding.code for finding in _findings(report)}
    return report.code or next((code for code in (2, 6, 5, 3, 4, 1) if code in found), 0)


def as_text(report: RunReport) -> str:
    found = [finding.text for finding in _findings(report)]
    return "\n".join([_headline(report), *_some(found)])


def as_json(report: RunReport) -> str:
    said = {one.name: getattr(report, one.name) for one in fields(report)}
    said |= {
        "missed": [{"code": miss.code, **asdict(miss.told)} for miss in report.missed],
        "not_whole": [{"turn": turn, "ended": ended} for turn, ended in report.not_whole],
        "drift": [{"turn": turn, **drift._asdict()} for turn, drift in report.drift],
        "lint": [one._asdict() for one in report.lint],
        "problems": [one._asdict() for one in report.problems],
        "exit": exit_code(report),
    }
    return json.dumps(said, ensure_ascii=False, indent=1, default=str)


def as_markdown(report: RunReport) -> str:
    """For a comment of a pull request; what strangers wrote is code there."""
    found = [
        f"**{finding.name}**\n\n    " + finding.text.replace("\n", "\n    ")
        for finding in _findings(report)
    ]
    return "\n\n".join([f"### {_headline(report)}", *_some(found)])


def as_junit(report: RunReport) -> str:
    """A case for each finding that the run fails for, or one that passes."""
    failures = [finding for finding in _findings(report) if finding.code]
    suite = ElementTree.Element(
        "testsuite",
        name=report.cassette,
        time=f"{report.seconds:.3f}",
        tests=str(len(failures) or 1),
        failures=str(len(failures)),
    )
    for name, text in [(one.name, one.text) for one in failures] or [("run", "")]:
        case = ElementTree.SubElement(suite, "testcase", classname=report.cassette, name=name)
        if text:
            head = one_line(text.partition("\n")[0])
            ElementTree.SubElement(case, "failure", message=head).text = text
    return ElementTree.tostring(suite, encoding="unicode")


_BY_ENDING: Mapping[str, Callable[[RunReport], str]] = {
    ".json": as_json,
    ".xml": as_junit,
    ".md": as_markdown,
}


def find_rendering(file_name: str) -> Callable[[RunReport], str]:
    """What writes a file of this name; to be asked before the run, which would be lost."""
    try:
        return _BY_ENDING[PurePath(file_name).suffix.lower()]
    except KeyError:
        text = "its name ends in .json, .xml (JUnit) or .md (markdown)"
        raise UnknownReport(f"A report cannot be written to '{file_name}': {text}.") from None


def rendered(report: RunReport, file_name: str) -> str:
    # The two that `visible` leaves are no characters, and no XML.
    text = visible(find_rendering(file_name)(report)).replace("\ufffe", "?").replace("\uffff", "?")
    return f"{text}\n"


def _headline(report: RunReport) -> str:
    plays = report.mode in ("replay", "auto")
    said = f"played {len({*report.played})} of {report.turns}" if plays else _count(report.turns)
    sorts = {"missed": report.missed, "unused": report.unused, "drift": report.drift}
    more = "".join([f", {len(found)} {what}" for what, found in sorts.items() if found])
    return f"usetool {report.mode} {report.cassette}: {said}{more}, {report.seconds:.1f} s"


def _findings(report: RunReport) -> Iterator[_Finding]:
    """Everything worth a word, what is gravest first."""
    for problem in report.problems:
        yield _Finding(problem.code, "problem", problem.text)
    if report.code is not None and not report.asks:
        yield _Finding(5, "asked nothing", _ASKED_NOTHING)
    if report.dropped:
        text = f"{_count(report.dropped)} could not be written, or not in time, and are lost."
        yield _Finding(4, "turns that are lost", text)
    for at, miss in enumerate(report.missed, 1):
        yield _Finding(3, f"miss {at}", miss.told.message)
    for where in report.unfired:
        text = f"A fault never acted, so nothing was tested with it: {where}."
        yield _Finding(3, "fault that never acted", text)
    yield from _remarks(report)


def _remarks(report: RunReport) -> Iterator[_Finding]:
    """What may be meant."""
    if report.unused:
        text = f"Not played: {', '.join(_some(map(str, report.unused)))}. Turns that nobody needs "
        text += f"any more go away with `usetool cassette prune {report.cassette} --report FILE`."
        yield _Finding(4 if report.all_played else 0, "unused", text)
    for turn, ended in report.not_whole:
        fails = report.mode != "replay" and not report.errors_meant
        text = f"Turn {turn} is not whole: {ended}." + (_NOT_WHOLE if fails else "")
        yield _Finding(4 if fails else 0, f"turn {turn} is not whole", text)
    if report.drift:
        head = f"Not as recorded; `usetool cassette verify {report.cassette}` says more:"
        lines = [f"  turn {turn}: {one.kind} {one.path}".rstrip() for turn, one in report.drift]
        yield _Finding(0, "drift", "\n".join([head, *_some(lines)]))
    if report.lint:
        lines = [f"  - {one.rule}  # {one.at}: {shown(one.value)}" for one in report.lint]
        yield _Finding(0, "lint", "\n".join([_LINT, *_some(dict.fromkeys(lines))]))


def _some(lines: Iterable[str]) -> list[str]:
    every = [*lines]
    more = len(every) - _MOST_SHOWN
    return [*every[:_MOST_SHOWN], f"… and {more} more"] if more > 0 else every


def _count(turns: int) -> str:
    return "1 turn" if turns == 1 else f"{turns} turns"


_ASKED_NOTHING = (
    "The command asked nothing, so nothing was tested. Its client has to take its address from "
    "OPENAI_BASE_URL (or USETOOL_URL) and its key from OPENAI_API_KEY."
)
_NOT_WHOLE = (
    " Record it again; or say that it is meant with --keep-errors, or leave it out with "
    "--only-good."
)
_LINT = (
    "These values in asks look as if they were made for this run. Where they will be others next "
    "time, paste their masks into the head of the cassette:\nmatch:\n  mask:"
)
