"""What a run came to → its report."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from middleware.cassettes.cassette import Cassette
from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.file import read_cassette
from middleware.cassettes.lint import Lint, lint
from middleware.cassettes.match import Form, MatchRules, set_aside
from middleware.cassettes.record.finish import Finished
from middleware.cassettes.replay.playback import form_of
from middleware.cassettes.replay.shelf import Shelf
from middleware.cassettes.report import ReportedProblem, RunReport
from middleware.cli.cassettes.run import Run


def report_of(run: Run, finished: Sequence[Finished]) -> RunReport:
    """All that one run played, recorded and missed."""
    studio, options = run.studio, run.options
    shelf, recorder = studio.player.shelf, studio.recorder
    report = RunReport(
        cassette=shelf.written(options.name),
        mode=options.mode or "off",
        turns=sum(one.turns for one in finished),
        not_whole=tuple(chain.from_iterable(one.not_whole for one in finished)),
        unfired=_unfired(shelf),
        dropped=recorder.dropped,
        problems=tuple(map(ReportedProblem, [*_problems(finished), *_stopped(recorder.problems)])),
        code=run.code,
        asks=studio.asks,
        errors_meant=options.policy.keep_errors or options.policy.only_good,
        seconds=round(run.seconds, 1),
    )
    return _with_sessions(report, run) if options.mode in ("replay", "auto") else report


def _with_sessions(report: RunReport, run: Run) -> RunReport:
    """What was played: of the command's cassette its turns, of all of them what was missed."""
    shelf = run.studio.player.shelf
    sessions = [one.session for _, one in shelf.opened()]
    played = _played(shelf, run.options.name)
    missed = chain(shelf.lost.values(), *(one.missed for one in sessions))
    return replace(
        report,
        turns=len(run.turns),
        played=tuple(turn for turn in run.turns if turn in played),
        unused=tuple(turn for turn in run.turns if turn not in played),
        missed=tuple(missed),
        drift=tuple(dict.fromkeys(chain.from_iterable(one.drift for one in sessions))),
        substitutions=tuple(chain.from_iterable(one.substitutions for one in sessions)),
    )


def _problems(finished: Sequence[Finished]) -> list[str]:
    return [one.problem for one in finished if one.problem]


def _stopped(problems: Sequence[str]) -> list[str]:
    """Each was told when it came up."""
    return ["Recording stopped, as was said above."] if problems else []


def _played(shelf: Shelf, name: str) -> set[int]:
    return {turn for _, one in shelf.sessions(name) for turn in one.session.played}


def _unfired(shelf: Shelf) -> tuple[str, ...]:
    """Rules that acted in no session of their cassette."""
    rules = {rule for _, one in shelf.opened() for rule in one.faults} | {*shelf.faults}
    fired = {rule for _, one in shelf.opened() for rule in one.session.fired}
    return tuple(sorted(rule.where for rule in rules - fired))


def with_lint(report: RunReport, shelf: Shelf, paths: Iterable[Path]) -> RunReport:
    """Name what in the asks looks born today and has no mask, with the mask to paste."""
    found: list[Lint] = []
    own = [folder for folder in (str(Path.home()), os.getcwd()) if len(folder) > 1]
    for path in paths:
        try:
            cassette = read_cassette(path)
        except (OSError, UnreadableCassette):
            continue
        asks = _asks(cassette, shelf.rules(cassette, path))
        found += lint(asks, cassette.recorded, own)
    return replace(report, lint=tuple(dict.fromkeys(found)))


def _asks(cassette: Cassette, rules: MatchRules) -> list[Form]:
    return [set_aside(form_of(cassette, turn).value, rules)[0] for turn in cassette.turns]
