"""A search that others would host is done by the gateway's own, where the model has one."""

from __future__ import annotations

import pytest

from adapters.errors import BadRequest
from adapters.protocol import Carried, ChatRequest
from adapters.receipts import Note
from middleware.wrappers.server_tools.menu import ServerToolSettings, menu_of
from tests.support.tools import FakeShelf

DROPPED = Note("tool_dropped", "tools[0]", "nobody runs it")
OTHER = Note("member_dropped", "x", "it has no place")
HOSTED = Carried("responses", None, (DROPPED, OTHER), BadRequest("alone"), search=True)
ASKED = ChatRequest("m", ({"role": "user", "content": "hi"},), native=HOSTED)


def shelf() -> FakeShelf:
    found = FakeShelf(web="found", clock="12:00")
    found.known[0].searches = True
    return found


@pytest.mark.parametrize(
    "settings",
    [ServerToolSettings("m", ("web",)), ServerToolSettings("m", (), ("web", "clock"))],
)
def test_a_search_stands_for_it(settings: ServerToolSettings) -> None:
    menu = menu_of(ASKED, shelf(), settings)
    assert [*menu.run_here] == ["web"]
    native = menu.request.native
    assert native is not None
    assert (native.lost, native.refusal) == ((OTHER,), None)


def test_another_tool_does_not() -> None:
    menu = menu_of(ASKED, shelf(), ServerToolSettings("m", ("clock",)))
    assert menu.request.native is HOSTED
    assert [*menu.run_here] == ["clock"]
