"""Each round takes what it may use of its client's limits, and is made even beyond them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from middleware.routing import Routes
from middleware.tools.tool import Say, ToolContext, ToolResult
from middleware.wrappers.route import Route
from tests.accounts.counting import KEY, counting
from tests.support.adapters import FakeAdapter
from tests.support.door import chat
from tests.support.tools import FakeShelf
from tests.wrappers.server_tools.rounds import calling, saying, wrapped

CALL = ("c1", "now", "{}")


@pytest.mark.parametrize("limit", ["tokens_per_minute = 10", 'budget = "0.000001 USD/total"'])
def test_a_later_round_takes_its_own_even_beyond_the_limit(limit: str) -> None:
    door = counting(limit)
    state = door.app.chat.accounts.state
    counters = ["tokens:alpha", "money:alpha:total"]
    seen: list[float] = []

    async def count(_arguments: str, _context: ToolContext, _say: Say | None) -> ToolResult:
        seen.append(sum(await state.sums(counters)))
        return ToolResult("x" * 4000, characters=4000)

    model = FakeAdapter(calling(CALL), calling(CALL), saying("End"))
    route = Route(wrapped(model, FakeShelf(w__now=count)), "demo")
    door.app.use(replace(door.app.chat.runtime, routes=Routes({"demo": route}, ())))

    async def run() -> None:
        heard = await door.ask(chat("demo", max_tokens=100), headers=(KEY,))
        assert heard.status == 200
        assert sum(await state.sums(counters)) == 0  # nobody said what was used

    asyncio.run(run())
    first, second = seen
    assert second > 2 * first  # the result is read, too
    assert len(model.asked) == 3
