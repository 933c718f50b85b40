"""Takes turns in beside the requests, and makes cassettes of them when a session ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from queue import SimpleQueue
from threading import Thread

import orjson

from adapters.protocol import Json
from adapters.wire.capture import FactRow
from middleware import __version__
from middleware.cassettes.cassette import Cassette
from middleware.cassettes.file import (
    turn_to_json,
)
from middleware.cassettes.record.adapter import RawTurn
from middleware.cassettes.record.finish import Finished, RecorderSettings, finish_parts, told_clear
from middleware.cassettes.record.lines import lines_of
from middleware.cassettes.record.offers import with_offers
from middleware.cassettes.record.parts import Part, new_part
from middleware.cassettes.record.turns import turn_of
from middleware.cassettes.secrets import Blotter, TurnBlotter, blotted, leaks

_TOGETHER = 0.02
"""Seconds in which turns are gathered before they are written."""
_LUMP = 48 << 10
"""Bytes that are searched together: the requests wait meanwhile, and more would be memory that
the system gives and takes each time.
"""
_MOST_WAITING, _MOST_BYTES = 1000, 64 << 20
"""Turns that wait to be written, and their bytes; more are dropped, requests never wait."""


Waiting = tuple[RawTurn, int]
"""A turn, and its bytes."""


@dataclass(slots=True)
class Recorder:
    settings: RecorderSettings
    blotter: Blotter
    secrets: Mapping[str, str]
    """Value → name, for the second search."""
    routes: Callable[[str], Iterable[tuple[str, Json]]]
    """What is needed to answer for a model."""
    say: Callable[[str], None]
    """Tells people of what stops recording, once."""
    facts: FactRow = field(default_factory=FactRow)
    dropped: int = 0
    problems: list[str] = field(default_factory=list)
    _parts: dict[str, Part] = field(default_factory=dict)
    _queue: SimpleQueue[Waiting | None] = field(default_factory=SimpleQueue)
    _taken: int = 0
    """Bytes of turns so far, counted by who puts them."""
    _done: int = 0
    """The same, counted by who writes them."""
    _thread: Thread | None = None
    _over: bool = False
    """All that came was looked at."""
    _keys: dict[str, None] = field(default_factory=dict)
    """Those of clients."""
    _began: float = field(default_factory=time.monotonic)
    _finished: list[Finished] | None = None

    def put(self, turn: RawTurn) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._work, name="recorder", daemon=True)
            self._thread.start()
        size = turn.size
        taken = self._taken + size
        if taken - self._done > _MOST_BYTES or self._queue.qsize() >= _MOST_WAITING:
            self.dropped += 1
            return
        self._taken = taken
        self._queue.put((turn, size))

    def _work(self) -> None:
        """Write what was gathered: a thread that wakes for each turn takes the interpreter from
        the requests.
        """
        take = self._queue.get
        while (first := take()) is not None:
            time.sleep(_TOGETHER)
            batch = [first, *(take() for _ in range(self._queue.qsize()))]
            self._take(filter(None, batch))
            if batch[-1] is None:
                break
        self._over = True

    def _take(self, batch: Iterable[Waiting]) -> None:
        """Write turns, and take all to the disk."""
        try:
            for (name, mode, key), turns in groupby(batch, _place_of):
                if not self.problems:
                    self._keys[key] = None
                    self._write(self._part(name, mode), turns, key)
            for part in self._parts.values():
                part.file.flush()
        except OSError as error:
            self._stop(f"Recording stopped: {error.strerror or error}. Requests are still served.")

    def _write(self, part: Part, turns: Iterable[Waiting], key: str) -> None:
        for lump in _lumps(turns):
            for raw, _ in lump:
                self._tell_news(part, raw)
            part.write(self._lines([raw for raw, _ in lump], key))
            self._done += sum(size for _, size in lump)

    def _tell_news(self, part: Part, raw: RawTurn) -> None:
        """What reads a turn, if the part does not have it yet."""
        visitor = raw.asked.visitor
        if part.is_news(visitor.model, raw.offered):
            routes = with_offers(dict(self.routes(visitor.model)), visitor.model, raw.offered)
            blotter = self.blotter.turn(visitor.key)
            for name, route in routes.items():
                part.write(orjson.dumps({"route": name, "is": blotter.json(route)}))
        if part.facts < self.facts.added:
            part.facts = self.facts.added
            for fact in told_facts(self.facts, self.blotter.turn(visitor.key)):
                part.write(orjson.dumps({"fact": fact}))

    def _lines(self, turns: Sequence[RawTurn], key: str) -> bytes:
        """As quickly as they can be written; what has a secret is taken apart here and now."""
        at = round((time.monotonic() - self._began) * 1000)
        # What paths lead to is known only where the ask is taken apart.
        if not self.blotter.paths:
            lines = b"\n".join([lines_of(raw, at) for raw in turns])
            if self.blotter.turn(key).finds_nothing(lines):
                return lines
        if len(turns) > 1:
            return b"\n".join(self._lines([raw], key) for raw in turns)
        blotter = self.blotter.turn(key)
        turn = blotted(turn_of(turns[0], self.settings.keep_retries), blotter)
        return orjson.dumps({**turn_to_json(turn), "at": at})

    def _stop(self, problem: str) -> None:
        self.problems.append(problem)
        self.say(problem)

    def _part(self, name: str, mode: str) -> Part:
        if name not in self._parts:
            self._parts[name] = new_part(self.settings.path(name))
        part, server = self._parts[name], self.settings.server
        if part.server != server:
            part.server = server
            part.write(orjson.dumps({"run": self.settings.run, "mode": mode, "server": server}))
        return part

    def finish(self) -> list[Finished]:
        """Write what is waiting, then the cassettes; the session is over."""
        if self._finished is None:
            self._finished = self._written()
        return self._finished

    def _written(self) -> list[Finished]:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            if not self._over:
                self._stop("Recording stopped by a mistake of its own, which is told above.")
        secrets = {**self.secrets, **dict.fromkeys(self._keys, "a client's key")}
        finished = []
        for name, part in self._parts.items():
            part.close()
            if self.problems:
                part.remove()
            elif not self.settings.run:
                finished.append(finish_parts(name, [part.path], self.settings, secrets))
            elif found := leaks(part.path.read_bytes(), secrets):
                part.remove()
                self._stop(f"{name} was not written: it would have held {told_clear(found)}")
        return finished


def _place_of(waiting: Waiting) -> tuple[str, str, str]:
    """Where a turn goes, and whose it is."""
    asked = waiting[0].asked
    return asked.name.name, asked.mode, asked.visitor.key


def _lumps(turns: Iterable[Waiting]) -> Iterator[list[Waiting]]:
    """Turns that are searched together."""
    lump: list[Waiting] = []
    size = 0
    for turn in turns:
        lump.append(turn)
        size += turn[1]
        if size > _LUMP:
            yield lump
            lump, size = [], 0
    if lump:
        yield lump


def told_facts(facts: FactRow, blotter: TurnBlotter) -> Iterator[Json]:
    """Small questions, as a cassette has them."""
    for fact in facts:
        with suppress(orjson.JSONDecodeError):
            ask = {"ask": orjson.loads(fact.ask)} if fact.ask else {}
            said = {"upstream": fact.upstream, "method": fact.method, "path": fact.path, **ask}
            yield blotter.json({**said, "answer": orjson.loads(fact.answer)})


def head_of(recorder: Recorder, model: str, offered: Sequence[Json] = ()) -> Cassette:
    """A cassette for turns of one model, with the server tools it had."""
    routes = with_offers(dict(recorder.routes(model)), model, offered)
    used = {route.get("upstream", name) for name, route in routes.items()}
    facts = told_facts(recorder.facts, recorder.blotter.turn())
    return Cassette(
        routes=routes,
        facts=tuple(fact for fact in facts if fact["upstream"] in used),
        by=__version__,
        recorded=time.strftime("%Y-%m-%d"),
        server=recorder.settings.server,
    )
