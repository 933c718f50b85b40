"""What is counted of clients for as long as the process runs, whatever becomes of the config."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from adapters.protocol import Json
from middleware.accounts.allowance import Allowance
from middleware.accounts.bill import Bill
from middleware.accounts.budgets import term_of
from middleware.accounts.clients import Client
from middleware.accounts.ledger import Ledger, open_book
from middleware.accounts.lengths import AnswerLengths
from middleware.accounts.prices import Prices
from middleware.config import Config
from middleware.server.visits import Observer, Visit
from middleware.state.homes import open_state
from middleware.state.memory import MemoryState
from middleware.state.store import State


def open_accounts(
    config: Config, write: Callable[[Json], None], state: State | None = None
) -> Accounts:
    """Begin to count, in a state that is given or the config's own; what `write` is told, once, is
    that a home is away, or back.
    """
    book = open_book(config)
    ledger = None if book is None else Ledger(book, lambda told: write({"ledger": told}))
    return Accounts(state or open_state(config, lambda told: write({"state": told})), ledger)


@dataclass(slots=True)
class Accounts:
    state: State = field(default_factory=MemoryState)
    ledger: Ledger | None = None
    """None: usage is not written down."""
    lengths: AnswerLengths = field(default_factory=AnswerLengths)

    async def begin(self) -> None:
        if self.ledger is not None:
            await self.ledger.start()
        if self.state.home == "redis":
            await self.state.sums(())  # from now on it is known whether it is there

    async def end(self) -> None:
        """Write what is only in memory."""
        if self.ledger is not None:
            await self.ledger.close()
        await self.state.close()

    def observers(self) -> tuple[Observer, ...]:
        return () if self.ledger is None else (self.ledger,)

    def bill(self, visit: Visit, client: Client, prices: Prices) -> Bill:
        """Begin what a request will have used."""
        limits = client.limits
        if limits is None:
            return Bill(visit, prices)
        claims = self.state.claims(visit.id)
        return Bill(visit, prices, Allowance(visit, limits, claims, prices, self.lengths))

    async def budget(self, client: Client) -> Json | None:
        """What a client may spend, and has spent; None: there is no end to it."""
        budget = client.said.budget if client.said else None
        if budget is None:
            return None
        term = term_of(client.name, budget, time.time())
        (spent,) = await self.state.sums([term.counter])
        return {
            "limit": budget.amount,
            "spent": round(spent, 12),
            "period": budget.period,
            "resets": None if term.ends is None else f"{term.ends:%Y-%m-%dT%H:%M:%SZ}",
        }

    async def spent(self, config: Config) -> Mapping[tuple[str, ...], float]:
        """USD in this period, of every client that has a budget."""
        now = time.time()
        terms = {
            (one.id,): term_of(one.id, one.budget, now).counter
            for one in config.clients.values()
            if one.budget is not None
        }
        return dict(zip(terms, await self.state.sums([*terms.values()]), strict=True))
