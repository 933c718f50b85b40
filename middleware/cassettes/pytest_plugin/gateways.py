"""The gateways of one process of pytest, and the cassettes that all processes of a run make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypedDict

from middleware.cassettes.cassette import Mode
from middleware.cassettes.names import path_of
from middleware.cassettes.record.finish import Finished, RecorderSettings, finish_parts
from middleware.cassettes.record.parts import parts_of
from middleware.cassettes.replay.shelf import Shelf
from middleware.cassettes.report import ReportedProblem, RunReport, as_text, exit_code
from middleware.cassettes.setup import RunOptions, studio_of
from middleware.cassettes.studio import Studio
from middleware.cli.cassettes.outcome import with_lint
from middleware.cli.launch.gateway import private_gateway
from middleware.config import load, read


class Place(NamedTuple):
    address: str
    studio: Studio


class ProcessOutcome(TypedDict):
    """What is to be known of a process, in values that another one can be told."""

    modes: list[Mode]
    problems: list[str]
    dropped: int


@dataclass(slots=True)
class Gateways:
    """One for each mode that tests have, from the first such test to the end of the run."""

    folder: Path
    config: Path
    """What recording reads; replay needs none."""
    run: str
    _places: dict[Mode, Place] = field(default_factory=dict)
    _problems: list[str] = field(default_factory=list)
    _exits: ExitStack = field(default_factory=ExitStack)

    def place(self, mode: Mode) -> Place:
        if mode not in self._places:
            replays = {"cassettes": {"mode": "replay"}}
            config = read(replays, "replay") if mode == "replay" else load(self.config)
            options = RunOptions(mode=mode, folder=str(self.folder), run=self.run)
            studio = studio_of(config, self._problems.append, options)
            address = self._exits.enter_context(private_gateway(config, studio))
            self._places[mode] = Place(address, studio)
        return self._places[mode]

    def stop(self) -> ProcessOutcome:
        """Write what is waiting."""
        self._exits.close()
        dropped = sum(place.studio.recorder.dropped for place in self._places.values())
        return {"modes": [*self._places], "problems": self._problems, "dropped": dropped}


def conclude(
    folder: Path, run: str, mode: Mode, outcomes: Sequence[ProcessOutcome]
) -> tuple[str, int]:
    """Make cassettes of what a run recorded; what to say of it, and an exit code."""
    stopped = [text for one in outcomes for text in one["problems"]]
    finished = list(_finished(folder, run, drops=bool(stopped)))
    report = RunReport(
        cassette="1 cassette" if len(finished) == 1 else f"{len(finished)} cassettes",
        mode=mode,
        turns=sum(one.turns for one in finished),
        problems=(*map(ReportedProblem, stopped), *chain.from_iterable(map(_told, finished))),
        dropped=sum(one["dropped"] for one in outcomes),
    )
    report = with_lint(report, Shelf(folder), [path_of(folder, one.name) for one in finished])
    return as_text(report), int(exit_code(report) != 0)


def _finished(folder: Path, run: str, drops: bool) -> Iterator[Finished]:
    """Where recording stopped, nobody knows what the parts of its run lack: they are dropped."""
    for cassette, parts in parts_of(folder, run).items():
        if drops:
            for part in parts:
                part.unlink(missing_ok=True)
        else:
            name = cassette.relative_to(folder).as_posix().removesuffix(".yaml")
            yield finish_parts(name, parts, RecorderSettings(partial(path_of, folder)))


def _told(finished: Finished) -> Iterator[ReportedProblem]:
    if finished.problem:
        yield ReportedProblem(finished.problem)
    if finished.remark:
        yield ReportedProblem(finished.remark, 0)
    for turn, ended in finished.not_whole:
        yield ReportedProblem(f"{finished.name}: turn {turn} is not whole: {ended}.", 0)
