"""`Alternative`: one who may be asked, what is known of it, and how it has answered so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adapters.outcomes import Passing
from adapters.protocol import Adapter
from adapters.shared.traits import Traits
from middleware.config import public_name
from middleware.wrappers.choices.needs import Needs
from middleware.wrappers.readiness import KeyTurn, Readiness
from middleware.wrappers.retry import Budget

_WEIGHT = 0.3
"""Of the last answer in the mean time to a first word."""
_SLOWEST, _FAILED = 60.0, 0.5
_ONE_TURN = (KeyTurn(""),)
CostOf = Callable[[int, int], float]


@dataclass(slots=True)
class Alternative:
    name: str
    """Its public name; with a `*` where clients choose what stands there."""
    adapter: Adapter
    model: str = ""
    """The upstream's name of it; empty: of its own, as a pipeline has."""
    upstream: str = ""
    absent: str = ""
    """Why it cannot be asked at all."""
    ready: Readiness | None = None
    budget: Budget = field(default_factory=Budget)
    queues: bool = False
    """A call may have to wait for a slot."""
    several_keys: bool = False
    emulates: bool = False
    """Its tools are asked for by prompt."""
    traits: Callable[[str], Traits] = lambda _: Traits()
    asked: str = ""
    """What its model of choices is asked by; what stands there for a `*` stands for its own too."""
    cost: CostOf | None = None
    """USD of so many tokens asked and answered; None: nobody knows."""
    weight: float = 1.0
    open: int = 0
    """Requests of its model of choices that it works for, in this process."""
    latency: float | None = None
    """Mean seconds to its first word; None: it was never asked."""

    def at(self, asked: str) -> tuple[str, str]:
        """Its public name and the upstream's, for what was asked."""
        if "*" not in self.model:
            return self.name, self.model
        name = public_name(self.name, self.asked, asked)
        return name, public_name(self.model, self.asked, asked)

    def lacks(self, needs: Needs, native: bool, model: str) -> Passing | None:
        """What it cannot do; what is not known, it can. `native`: no tools by prompt."""
        if self.absent:
            return "absent"
        if native and self.emulates and needs.tools():
            return "no_tools"
        traits = self.traits(model)
        if not self.sees(model) and needs.images():
            return "no_vision"
        if traits.json_schema is False and needs.json_schema():
            return "no_json_schema"
        if traits.context_length and not needs.fits(traits.context_length):
            return "no_context"
        return None

    def sees(self, model: str) -> bool:
        """Whether it reads images, as far as is known."""
        return not self.absent and self.traits(model).vision is not False

    def is_open(self, model: str) -> bool:
        """Whether it failed too often to be asked now."""
        return self.ready is not None and self.ready.breaker(model) == "open"

    async def turns(self, model: str, conversation: str) -> Sequence[KeyTurn]:
        return await self.ready.turns(model, conversation) if self.ready else _ONE_TURN

    async def load(self) -> float:
        """Its open calls, of all gateways as far as they are counted together."""
        return max(self.open, await self.ready.open_calls()) if self.ready else self.open

    def begin(self) -> None:
        self.open += 1
        self.budget.at_work += 1

    def end(self) -> None:
        self.open -= 1
        self.budget.at_work -= 1

    def answered(self, seconds: float) -> None:
        mean = seconds if self.latency is None else self.latency
        self.latency = mean + _WEIGHT * (seconds - mean)

    def failed(self) -> None:
        """Who fails quickly is not quick."""
        self.latency = min(_SLOWEST, 2 * (self.latency or _FAILED))
