"""Never more than a limit says, and not less."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as some

from adapters.errors import Busy
from adapters.protocol import Usage
from middleware.accounts.allowance import Allowance
from middleware.accounts.lengths import AnswerLengths
from middleware.accounts.limits import ClientLimits, LimitReached
from middleware.accounts.prices import Prices
from middleware.config import ClientConfig
from middleware.state.claims import NamedClaims
from middleware.state.memory import MemoryState
from middleware.state.store import Claims, Waiting
from tests.accounts.counting import MODELS, parsed, visit

PRICES = Prices(parsed(MODELS))
USD = 3.0e-6
"""A token of an answer."""


@dataclass
class Clock:
    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Desk:
    """Lets requests in one after the other."""

    said: ClientConfig
    clock: Clock = field(default_factory=Clock)
    count: int = 0
    afar: bool = False
    """Counters are asked as if they were in another process."""

    def __post_init__(self) -> None:
        self.state = MemoryState(self.clock)
        self.limits = ClientLimits(self.said)
        self.lengths = AnswerLengths()

    def request(self) -> Allowance:
        self.count += 1
        name = f"req_{self.count}"
        claims: Claims = self.state.claims(name)
        if self.afar:
            claims = NamedClaims(self.state, name)
        return Allowance(visit(name=name), self.limits, claims, PRICES, self.lengths)

    async def enters(self) -> bool:
        try:
            await done(self.request().enter())
        except LimitReached:
            return False
        return True


async def done(waiting: Waiting) -> None:
    """What is counted here never has to be waited for."""
    assert waiting is None


async def _reserve(request: Allowance) -> None:
    await done(request.reserve(0, 500))


def settled(request: Allowance, tokens: int = 0) -> Waiting:
    """It ended, and had used so many."""
    request.visit.spent = Usage(0, tokens)
    request.visit.cost = tokens * USD
    return request.settle()


def client(said: str) -> ClientConfig:
    return parsed(f'{MODELS}[clients.alpha]\nkey = "A"\n{said}').clients["alpha"]


@given(
    limit=some.integers(1, 8),
    pauses=some.lists(some.sampled_from([0.0, 0.05, 0.9, 7.0, 21.5, 59.9, 61.0]), max_size=60),
)
def test_never_more_requests_than_the_limit_in_any_minute(limit: int, pauses: list[float]) -> None:
    async def script() -> None:
        desk = Desk(client(f"requests_per_minute = {limit}"))
        let_in: list[float] = []
        for pause in pauses:
            desk.clock.now += pause
            if await desk.enters():
                let_in.append(desk.clock.now)
            else:  # and refused only where the minute is full
                recent = [at for at in let_in if at > desk.clock.now - 60.2]
                assert len(recent) >= limit
        for first, last in zip(let_in, let_in[limit:], strict=False):
            assert last - first >= 60

    asyncio.run(script())


def test_requests_that_were_refused_do_not_count() -> None:
    async def script() -> None:
        desk = Desk(client("requests_per_minute = 2"))
        first = [await desk.enters() for _ in range(9)]
        desk.clock.now += 60.2
        then = [await desk.enters() for _ in range(3)]
        assert (first, then) == ([True] * 2 + [False] * 7, [True, True, False])

    asyncio.run(script())


def test_a_long_request_counts_from_its_beginning() -> None:
    async def script() -> None:
        desk = Desk(client("requests_per_minute = 1"))
        request = desk.request()
        await done(request.enter())
        desk.clock.now += 59
        await done(settled(request))
        assert not await desk.enters()
        desk.clock.now += 1.2
        assert await desk.enters()

    asyncio.run(script())


@given(some.lists(some.integers(0, 5), min_size=1, max_size=40))
def test_never_more_at_work_than_the_limit(steps: list[int]) -> None:
    async def script() -> None:
        desk = Desk(client("concurrent = 3"))
        at_work: list[Allowance] = []
        for step in steps:
            if step == 0 and at_work:
                await done(settled(at_work.pop()))
                continue
            request = desk.request()
            try:
                await done(request.enter())
            except LimitReached:
                assert len(at_work) == 3
            else:
                at_work.append(request)
            assert len(at_work) <= 3

    asyncio.run(script())


def test_tokens_are_let_in_while_those_used_and_reserved_are_below_the_limit() -> None:
    async def script() -> None:
        desk = Desk(client("tokens_per_minute = 5000"))
        let_in = 0
        for _ in range(7):
            request = desk.request()
            try:
                await done(request.reserve(0, 300))
            except LimitReached:
                continue
            await done(settled(request, 1000))
            let_in += 1
        assert let_in == 5

    asyncio.run(script())


def test_what_is_reserved_at_once_is_counted() -> None:
    async def script() -> None:
        desk = Desk(client(f'budget = "{4 * 500 * USD:g} USD/month"'))
        requests = [desk.request() for _ in range(20)]
        found = await asyncio.gather(*map(_reserve, requests), return_exceptions=True)
        assert [one is None for one in found] == [True] * 4 + [False] * 16
        await done(settled(requests[0]))  # it failed: nothing was spent
        await done(desk.request().reserve(0, 500))

    asyncio.run(script())


@pytest.mark.parametrize("afar", [False, True])
def test_limits_are_the_same_wherever_they_are_counted(afar: bool) -> None:
    async def waited(waiting: Waiting) -> None:
        assert (waiting is not None) == afar
        if waiting is not None:
            await waiting

    async def refused(request: Allowance) -> None:
        with pytest.raises(LimitReached):
            await waited(request.enter())

    async def script() -> None:
        desk = Desk(client("concurrent = 1\ntokens_per_minute = 100"), afar=afar)
        first = desk.request()
        await waited(first.enter())
        await waited(first.reserve(0, 30))
        assert dict(first.headers)[b"x-ratelimit-remaining-tokens"] == b"70"
        await refused(desk.request())
        await waited(settled(first, 10))
        second = desk.request()
        await waited(second.enter())
        await waited(second.reserve(0, 30))
        assert dict(second.headers)[b"x-ratelimit-remaining-tokens"] == b"60"

    asyncio.run(script())


REFUSALS: tuple[tuple[str, str, str, str], ...] = (
    ("requests_per_minute = 1", "requests", "requests", "rate_limit_exceeded"),
    ("concurrent = 1", "concurrent", "rate_limit_error", "rate_limit_exceeded"),
    ("tokens_per_minute = 1", "tokens", "tokens", "rate_limit_exceeded"),
    ('budget = "0.000001 USD/day"', "budget", "insufficient_quota", "insufficient_quota"),
)


@pytest.mark.parametrize(("said", "limit", "kind", "code"), REFUSALS)
def test_a_refusal_says_what_it_is_and_when_to_come_back(
    said: str, limit: str, kind: str, code: str
) -> None:
    async def script() -> None:
        desk = Desk(client(said))
        for request in (desk.request(), desk.request()):
            await done(request.enter())
            await done(request.reserve(0, 9))

    with pytest.raises(LimitReached) as caught:
        asyncio.run(script())
    error = caught.value
    assert (error.limit, error.type, error.code, error.status) == (limit, kind, code, 429)
    assert error.retry_after is not None
    assert int(error.retry_after) >= 1
    assert error.message.startswith("This client")


def test_what_an_answer_is_expected_to_take_is_learned_of_those_that_went_well() -> None:
    async def script() -> None:
        desk = Desk(client("tokens_per_minute = 10000"))
        first, failing, last = desk.request(), desk.request(), desk.request()
        await done(first.reserve(0, None))
        assert first.headers[1][1] == b"9744"  # nothing is known: 256
        await done(settled(first, 1000))
        await done(failing.reserve(0, 5))
        failing.visit.error = Busy("no")
        await done(settled(failing, 5))
        await done(last.reserve(0, None))
        assert last.headers[1][1] == b"7995"

    asyncio.run(script())


def test_the_headers_count_down() -> None:
    async def script() -> None:
        desk = Desk(client("requests_per_minute = 3\ntokens_per_minute = 100"))
        told = []
        for _ in range(3):
            request = desk.request()
            await done(request.enter())
            await done(request.reserve(0, 30))
            told.append(dict(request.headers))
        left = [int(one[b"x-ratelimit-remaining-requests"]) for one in told]
        assert left == [2, 1, 0]
        assert [one[b"x-ratelimit-remaining-tokens"] for one in told] == [b"70", b"40", b"10"]
        assert told[0][b"x-ratelimit-limit-tokens"] == b"100"

    asyncio.run(script())
