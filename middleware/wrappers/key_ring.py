"""The keys of one upstream: whose turn it is, which rest, how many calls each may have open.

Conversations are spread by rendezvous hashing, so that every worker and gateway agrees on the key
of each without asking; what a key has learned and how busy it is, all of them share in `State`.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from typing import NamedTuple

from adapters.errors import GatewayError
from adapters.outcomes import Outcome
from adapters.protocol import RequestContext
from adapters.wire.http import Timeouts
from middleware.config import UpstreamConfig
from middleware.machine.board import Board, BreakerState
from middleware.state.store import Hold, Mark, State
from middleware.wrappers.readiness import KeyTurn, Readiness

UNLIMITED = 1 << 30
_FIRST_REST, _LONGEST_REST = 5.0, 60.0
"""Seconds a limited key rests that was told no end; doubled each time."""
_REFUSED_REST = 300.0
_LONGEST_TOLD = 86400.0
_AFTER_REST = 60.0
"""Seconds for which a rest is remembered after its end: the next one is longer then."""
_FEWEST = 2
"""Calls at once that are always left to a key."""
_STEP, _LONGEST_STEP = 10.0, 320.0
"""Seconds after which a limited key is tried with one call more."""
_LEARNED_FOR = 3600.0
_FRESH, _MOST_SEEN = 1.0, 256
"""Seconds for which what was seen of a model's keys is believed, and of how many models."""


class _Bound(NamedTuple):
    """What a 429 taught of a key: how many calls at once it takes."""

    calls: int
    since: float
    step: float

    def now(self, now: float) -> int:
        return self.calls + int(max(0.0, now - self.since) / self.step)

    def text(self) -> str:
        return f"{self.calls} {self.since:.3f} {self.step:g}"


class _Standing(NamedTuple):
    """How a key stands with one model."""

    rest: float
    """Seconds until it ends."""
    bound: int
    """How many calls at once it may have, on all machines."""
    open: int
    others: int
    """How many of these are of other machines."""


@dataclass(slots=True)
class KeyRing(Readiness):
    upstream: str
    board: Board
    state: State
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Name → key, where there are several: `claude#2`."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Name → what it is in the state: another key in its place begins anew."""
    limit: int | None = None
    """Calls at once on each key."""
    patience: float = 10.0
    """Seconds a call waits for a slot."""
    longest: float = 600.0
    """Seconds after which a call that nobody ended counts no more."""
    counting: bool = False
    """Somebody wants to know how many calls are open."""
    clock: Callable[[], float] = time.time
    names: tuple[str, ...] = field(init=False)
    _alone: Sequence[KeyTurn] = field(init=False)
    """The turn of a single key that nothing is known of."""
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _rests: dict[str, float] = field(default_factory=dict)
    """Key → the end of the last rest it was given here, or seen to have."""
    _seen: dict[str, tuple[float, Mapping[str, _Standing]]] = field(default_factory=dict)
    """Model → when its keys were looked at, and how they stood."""

    def __post_init__(self) -> None:
        self.names = tuple(self.secrets) or (self.upstream,)
        self._alone = (KeyTurn(self.names[0]),)
        self.marks = self.marks or dict(zip(self.names, self.names, strict=True))
        self.counting = self.counting or len(self.names) > 1

    def breaker(self, model: str) -> BreakerState:
        return self.board.breaker(f"{self.upstream}/{model}")

    async def open_calls(self) -> float:
        return sum(await self.state.sums([f"open:{self.marks[name]}" for name in self.names]))

    def queued(self) -> int:
        """How many requests wait for a slot here."""
        return sum(map(self.board.waiting, self.names))

    def resting(self) -> int:
        """How many keys rest, as far as is known here."""
        now = self.clock()
        return sum(end > now for end in self._rests.values())

    async def turns(self, model: str, conversation: str) -> Sequence[KeyTurn]:
        if len(self.names) == 1:
            if self.limit is None and not self.state.marked:
                return self._alone
            (name,) = self.names
            (rest,) = await self.state.read([self._rest_name(name, model)])
            if rest is None and self.limit is None:
                return self._alone
            full = self.limit is not None and not self.board.free(name, self.limit)
            return [KeyTurn(name, self._left(name, rest, self.clock()) if rest else 0.0, full)]
        stands = await self._standings(model)
        fair = 1.25 * sum(stand.open for stand in stands.values()) / len(stands) + 2
        drawn = _rendezvous(self.names, conversation)
        placed = [self._placed(name, stands[name], fair) for name in drawn]
        placed.sort(key=lambda one: one[:2])
        return [turn for _, _, turn in placed]

    def _placed(self, name: str, stand: _Standing, fair: float) -> tuple[int, float, KeyTurn]:
        """A key with what it is sorted by: how it is, and how long it would be waited for."""
        limit = self._limit(stand)
        full = limit < UNLIMITED and not self.board.free(name, limit)
        turn = KeyTurn(name, stand.rest, full, stand.open)
        if stand.rest:
            return 3, stand.rest, turn
        if full:
            return 2, self.board.waiting(name), turn
        return int(stand.open > fair), 0, turn

    async def key_of(self, call: RequestContext, model: str) -> str:
        """The key a call goes with: the one that was chosen for it, or whose turn it is."""
        if call.chosen in self.names:
            return call.chosen
        if len(self.names) == 1:
            return self.names[0]
        return (await self.turns(model, call.id))[0].name

    async def limit_of(self, key: str, model: str) -> int:
        """How many calls may be open on it at once, on this machine."""
        if len(self.names) == 1:
            return self.limit or UNLIMITED
        seen, stands = self._seen.get(model, (0.0, {}))
        if seen < self.clock() - _FRESH:
            stands = await self._standings(model)
        return self._limit(stands[key])

    async def rests(self, key: str, model: str) -> bool:
        mark = (await self.state.read([self._rest_name(key, model)]))[0]
        return mark is not None and mark.until - _AFTER_REST > self.clock()

    async def begin(self, key: str, call: RequestContext) -> str:
        """Count an open call, and return what it is ended by."""
        name = f"{call.id}/{next(self._numbers)}"
        try:
            await self.state.take(
                name, [Hold(f"open:{self.marks[key]}", 1, math.inf, self.longest)]
            )
        except asyncio.CancelledError:
            await self.end(key, name)
            raise
        return name

    async def end(self, key: str, name: str) -> None:
        await self.state.settle(name, {f"open:{self.marks[key]}": 0})

    async def failed(self, key: str, model: str, outcome: Outcome, error: GatewayError) -> None:
        """A limited or refused key rests; one of several that is limited has learned its bound."""
        if outcome == "rate_limited":
            await self._limited(key, model, error.retry_after)
        elif outcome in ("refused", "quota"):
            await self._rest(key, model, _REFUSED_REST)

    async def _limited(self, key: str, model: str, retry_after: str | None) -> None:
        told, own = _seconds(retry_after, self.clock()), 0.0
        if told is None:
            mark = (await self.state.read([self._rest_name(key, model)]))[0]
            before = float(mark.text) if mark else 0.0
            again = mark is not None and mark.until - _AFTER_REST <= self.clock()
            own = min(_LONGEST_REST, before * 2 if again else before) or _FIRST_REST
        await self._rest(key, model, told or own, own)
        if len(self.names) > 1:
            await self._learn(key, model)

    async def _rest(self, key: str, model: str, seconds: float, own: float = 0.0) -> None:
        """`own` is how long it was where nobody told: the next may be longer."""
        self._rests[key] = max(self._rests.get(key, 0.0), self.clock() + seconds)
        lasting = seconds + _AFTER_REST
        await self.state.mark(self._rest_name(key, model), f"{own:g}", lasting, later=True)

    async def _learn(self, key: str, model: str) -> None:
        beside = (await self.state.sums([f"open:{self.marks[key]}"]))[0]
        calls, name = max(_FEWEST, round(beside)), self._bound_name(key, model)
        mark = (await self.state.read([name]))[0]
        known = _bound(mark.text) if mark else None
        step = min(_LONGEST_STEP, known.step * 2) if known and known.calls <= calls else _STEP
        learned = _Bound(calls, self.clock(), step)
        await self.state.mark(name, learned.text(), _LEARNED_FOR)
        self._seen.pop(model, None)

    async def _standings(self, model: str) -> dict[str, _Standing]:
        keys = self.names
        sums = await self.state.sums([f"open:{self.marks[name]}" for name in keys])
        rests = [self._rest_name(name, model) for name in keys]
        bounds = [self._bound_name(name, model) for name in keys]
        marks, now = await self.state.read(rests + bounds), self.clock()
        found = {}
        for name, opened, rest, learned in zip(
            keys, sums, marks[: len(keys)], marks[len(keys) :], strict=True
        ):
            left = self._left(name, rest, now)
            bound = _bound(learned.text).now(now) if learned else UNLIMITED
            ours = UNLIMITED - self.board.free(name, UNLIMITED)
            found[name] = _Standing(left, bound, round(opened), max(0, round(opened) - ours))
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        self._seen[model] = now, found
        return found

    def _left(self, key: str, rest: Mark | None, now: float) -> float:
        """Seconds that are left of a rest."""
        left = rest.until - _AFTER_REST - now if rest else 0.0
        if left <= 0:
            return 0.0
        self._rests[key] = max(self._rests.get(key, 0.0), now + left)
        return left

    def _limit(self, stand: _Standing) -> int:
        """What others have open of a learned bound is not ours; one call is left to each."""
        most = self.limit or UNLIMITED
        if stand.bound == UNLIMITED:
            return most
        return min(most, max(1, stand.bound - stand.others))

    def _rest_name(self, key: str, model: str) -> str:
        return f"rest:{self.marks[key]}/{model}"

    def _bound_name(self, key: str, model: str) -> str:
        return f"bound:{self.marks[key]}/{model}"


def ring_of(upstream: UpstreamConfig, board: Board, state: State) -> KeyRing:
    several = {
        f"{upstream.id}#{number}": secret.value
        for number, secret in enumerate(upstream.rotation, 1)
        if secret.value
    }
    alone = {upstream.id: upstream.api_key.value if upstream.api_key else ""}
    return KeyRing(
        upstream.id,
        board,
        state,
        several,
        {name: _mark_of(name, secret) for name, secret in (several or alone).items()},
        limit=upstream.max_concurrent,
        patience=upstream.queue,
        longest=Timeouts(**upstream.timeouts).total,
    )


def _rendezvous(names: Sequence[str], conversation: str) -> Sequence[str]:
    """In the order of this conversation, the same everywhere; a name that goes moves its own."""
    if len(names) == 1:
        return names

    def draw(name: str) -> bytes:
        return blake2b(f"{conversation}\n{name}".encode(), digest_size=8).digest()

    return sorted(names, key=draw, reverse=True)


def _mark_of(name: str, secret: str) -> str:
    return f"{name}~{blake2b(secret.encode(), digest_size=4).hexdigest()}"


def _bound(text: str) -> _Bound:
    calls, since, step = text.split()
    return _Bound(int(calls), float(since), float(step))


def _seconds(retry_after: str | None, now: float) -> float | None:
    """How long an upstream wants to be left alone; None: it says nothing that can be meant."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            until = parsedate_to_datetime(retry_after)
        except (ValueError, TypeError, OverflowError):
            return None
        zoned = until.replace(tzinfo=UTC) if until.tzinfo is None else until
        seconds = zoned.timestamp() - now
    return min(seconds, _LONGEST_TOLD) if seconds > 0 else None
