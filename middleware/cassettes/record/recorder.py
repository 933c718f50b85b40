"""Takes turns in beside the requests, and makes cassettes of them when a session ends."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from queue import SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple

import orjson

from adapters.protocol import Json
from adapters.wire.capture import FactRow
from middleware import __version__
from middleware.cassettes.cassette import Cassette
from middleware.cassettes.file import turn_to_json
from middleware.cassettes.file.bodies import packed
from middleware.cassettes.record.adapter import RawTurn
from middleware.cassettes.record.finish import Finished, RecorderSettings, finish_parts, told_clear
from middleware.cassettes.record.lines import raw_of, read_turn, write_lines
from middleware.cassettes.record.offers import with_offers
from middleware.cassettes.record.parts import Part, new_part
from middleware.cassettes.record.turns import turn_of
from middleware.cassettes.secrets import Blotter, TurnBlotter, blotted, leaks
from middleware.server.visits import TOGETHER

_MANY, _LONGER = 8, 0.15
"""Behind so many, who writes waits so long for more: under load each waking takes the interpreter
from the requests.
"""
_LUMP = 48 << 10
"""Bytes that are searched together: the requests wait meanwhile, and more would be memory that
the system gives and takes each time.
"""
_UNSAYABLE = (TypeError, ValueError, RecursionError)
"""What a turn raises that JSON cannot say."""
_MOST_WAITING, _MOST_BYTES = 1000, 64 << 20
"""Lumps that wait to be written, and their bytes; more are dropped, requests never wait."""


class TurnPlace(NamedTuple):
    """Where a turn belongs that is to be written."""

    name: str
    """Of its cassette."""
    mode: str
    key: str
    """What its client came with."""
    model: str
    offered: Sequence[Json]


class Lump(NamedTuple):
    """Turns of one place, searched and written together."""

    place: TurnPlace
    lines: bytes
    sizes: Sequence[int]
    """In bytes, of each turn."""

    def turns(self) -> Iterator[Lump]:
        """Each of them alone."""
        start = 0
        for size in self.sizes:
            yield Lump(self.place, self.lines[start : start + size], (size,))
            start += size


@dataclass(slots=True)
class Recorder:
    settings: RecorderSettings
    blotter: Blotter
    secrets: Mapping[str, str]
    """Value → name, for the second search."""
    routes: Callable[[str], Iterable[tuple[str, Json]]]
    """What is needed to answer for a model."""
    say: Callable[[str], None]
    """Tells people of what stops recording, once, and of each turn that cannot be written."""
    facts: FactRow = field(default_factory=FactRow)
    gathers: float = 0.02
    """Seconds in which turns are gathered that are told together."""
    dropped: int = 0
    problems: list[str] = field(default_factory=list)
    _parts: dict[str, Part] = field(default_factory=dict)
    _queue: SimpleQueue[Lump | None] = field(default_factory=SimpleQueue)
    """None: no more will come."""
    _place: TurnPlace | None = None
    """That of the last turn, as nearly all are of one."""
    _taken: int = 0
    """Bytes of turns so far, counted by who puts them."""
    _done: int = 0
    """The same, counted by who writes them."""
    _thread: Thread | None = None
    _ended: deque[tuple[RawTurn, float]] = field(default_factory=deque)
    """Turns that are over and not told yet, and when that was."""
    _due: float = 0.0
    """Until when they will be told; a loop that ends takes its alarms along."""
    _telling: Lock = field(default_factory=Lock)
    """At the end of a session a thread waits for what the loop is telling."""
    _over: bool = False
    """All that came was looked at."""
    _keys: dict[str, None] = field(default_factory=dict)
    """Those of clients."""
    _began: float = field(default_factory=time.monotonic)
    _finished: list[Finished] | None = None

    def put(self, turn: RawTurn) -> None:
        """Take in a turn that is over. Those of some milliseconds are told together: what runs
        again and again takes half the time of what runs once a request.
        """
        if self.problems:
            return
        if self._over:
            self.dropped += 1
            return
        now = time.monotonic()
        self._ended.append((turn, now - self._began))
        if now > self._due or len(self._ended) == TOGETHER:
            self._tell_soon(now)

    def _tell_soon(self, now: float) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._work, name="recorder", daemon=True)
            self._thread.start()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # without a loop there are no requests to spare
            self._tell()
            return
        if len(self._ended) >= TOGETHER:
            loop.call_soon(self._tell)  # not in the middle of a request
        else:
            self._due = now + self.gathers
            loop.call_later(self.gathers, self._ring)

    def _ring(self) -> None:
        self._due = 0.0
        self._tell()

    def _tell(self) -> None:
        with self._telling:
            while self._ended:
                place = self._place_of(self._ended[0][0])
                pieces: list[bytes] = []
                sizes: list[int] = []
                try:
                    self._gather(place, pieces, sizes)
                finally:  # what cannot be said of one turn costs no other
                    if sizes:
                        self._hand_over(Lump(place, b"".join(pieces), sizes))

    def _gather(self, place: TurnPlace, pieces: list[bytes], sizes: list[int]) -> None:
        """Put together what turns say. What they refer to is freed where it was made: another
        processor would have to be asked for each object.
        """
        ended, total = self._ended, 0
        while ended and total < _LUMP and self._place_of(ended[0][0]) is place:
            turn, at = ended.popleft()
            try:
                size = write_lines(turn, round(at * 1000), pieces)
                sizes.append(size)
                total += size
            except _UNSAYABLE as error:
                self.dropped += 1
                self._say_dropped(error)

    def _say_dropped(self, error: Exception) -> None:
        with suppress(OSError):  # who reads it may be gone; that is no disk that fails
            self.say(f"A turn is not recorded, as JSON cannot say it: {error}")

    def _place_of(self, turn: RawTurn) -> TurnPlace:
        name, _, model, mode, _, key, _, _, _, _, _ = turn.visitor
        place, asked = self._place, (name.name, mode, key, model, turn.offered)
        if place is None or asked != place:
            place = self._place = TurnPlace(*asked)
        return place

    def _hand_over(self, lump: Lump) -> None:
        taken = self._taken + len(lump.lines)
        if taken - self._done > _MOST_BYTES or self._queue.qsize() >= _MOST_WAITING:
            if len(lump.sizes) == 1:
                self.dropped += 1
            else:  # of small ones there may be room for some
                for turn in lump.turns():
                    self._hand_over(turn)
            return
        self._taken = taken
        self._queue.put(lump)

    def _work(self) -> None:
        """Write what was gathered."""
        take, ended, pause = self._queue.get, False, 0.0
        while not ended:
            batch = [take()]
            if batch[0] is not None:
                time.sleep(pause)
            batch += [take() for _ in range(self._queue.qsize())]
            pause = _LONGER if sum(len(lump.sizes) for lump in batch if lump) > _MANY else 0.0
            ended = None in batch  # a request that is cut off may still put its turn behind it
            self._take(filter(None, batch))
        self._over = True

    def _take(self, lumps: Iterable[Lump]) -> None:
        """Write turns, and take all to the disk."""
        if self.problems:
            return
        try:
            for lump in lumps:
                place = lump.place
                self._keys[place.key] = None
                part = self._part(place.name, place.mode)
                self._tell_news(part, place)
                part.file.write(self._without_secrets(lump))
                self._done += len(lump.lines)
            for part in self._parts.values():
                part.file.flush()
        except OSError as error:
            self._stop(f"Recording stopped: {error.strerror or error}. Requests are still served.")

    def _tell_news(self, part: Part, place: TurnPlace) -> None:
        """What reads turns, if the part does not have it yet."""
        model, offered = place.model, place.offered
        if part.is_news(model, offered):
            routes = with_offers(dict(self.routes(model)), model, offered)
            blotter = self.blotter.turn(place.key)
            for name, route in routes.items():
                part.tell({"route": name, "is": blotter.json(route)})
        if part.facts < self.facts.added:
            part.facts = self.facts.added
            for fact in told_facts(self.facts, self.blotter.turn(place.key)):
                part.tell({"fact": fact})

    def _without_secrets(self, lump: Lump) -> bytes:
        """Lines as they are, searched together; those of a turn that has a secret are taken apart
        here and now.
        """
        lines, key = lump.lines, lump.place.key
        # What paths lead to is known only where the ask is taken apart.
        if not self.blotter.paths and self.blotter.turn(key).finds_nothing(lines):
            return lines
        if len(lump.sizes) > 1:
            return b"".join(map(self._without_secrets, lump.turns()))
        try:
            return self._blotted(lines, self.blotter.turn(key))
        except _UNSAYABLE as error:  # an upstream may say as many levels as it likes
            with self._telling:
                self.dropped += 1
            self._say_dropped(error)
            return b""

    def _blotted(self, lines: bytes, blotter: TurnBlotter) -> bytes:
        head, _, bodies = lines.partition(b"\n")
        row = read_turn(orjson.loads(head), BytesIO(bodies))
        turn = turn_of(raw_of(row), self.settings.keep_retries)
        told = turn_to_json(blotted(turn, blotter))
        return packed({**told, "at": row.at}) + b"\n"

    def _stop(self, problem: str) -> None:
        self.problems.append(problem)
        self.say(problem)

    def _part(self, name: str, mode: str) -> Part:
        if name not in self._parts:
            self._parts[name] = new_part(self.settings.path(name))
        part, server = self._parts[name], self.settings.server
        if part.server != server:
            part.server = server
            part.tell({"run": self.settings.run, "mode": mode, "server": server})
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
            self._tell()
            behind = [self._queue.get() for _ in range(self._queue.qsize())]
            self._take(filter(None, behind))
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
