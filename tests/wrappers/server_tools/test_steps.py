"""What clients see of tools at work, and what becomes of tools whose client leaves."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from adapters.outcomes import ServerCall
from adapters.protocol import RESULT_OF, Aside, Json, ReasoningDelta
from middleware.tools.tool import Say, ToolContext, ToolResult
from tests.support.adapters import PATIENCE, FakeAdapter
from tests.support.fold import run
from tests.support.tools import FakeShelf
from tests.wrappers.server_tools.rounds import answer, asked, calling, rounds, saying, wrapped

CALL = ("c1", "now", '{"city": "x"}')


async def piecewise(_arguments: str, _context: ToolContext, say: Say | None) -> ToolResult:
    for piece in ("a", "b"):
        if say is not None:
            say(piece)
        await asyncio.sleep(0)
    return ToolResult("ab", seconds=0.123456, characters=2)


def test_nothing_is_seen_of_them_unless_it_is_asked_for() -> None:
    got, _ = rounds(FakeShelf(w__now=piecewise), calling(CALL), saying("End"))
    assert (got.asides, got.reasoning) == ([], "")


def test_steps_are_told_as_they_happen_and_once_more_at_the_end() -> None:
    got, _ = rounds(FakeShelf(w__now=piecewise), calling(CALL), saying("End"), steps=True)
    step = {"id": "c1", "round": 1, "tool": "now"}
    arguments = {"city": "x"}
    done = {"state": "done", "result": "ab", "is_error": False, "seconds": 0.1235}
    assert got.asides == [
        ("step", {**step, "state": "started", "arguments": arguments}),
        ("step", {**step, "state": "piece", "text": "a"}),
        ("step", {**step, "state": "piece", "text": "b"}),
        ("step", {**step, **done}),
        ("steps", [{**step, "arguments": arguments, **done}]),
    ]
    started = Aside("step", got.asides[0][1])
    assert started in got.batches[0]  # with `Opened`, before the tool has run


def test_long_results_are_cut_for_the_eye() -> None:
    got, model = rounds(FakeShelf(w__now="x" * 3000), calling(CALL), saying("End"), steps=True)
    assert len(got.asides[-1][1][0]["result"]) == 2000
    assert len(model.last()[-1]["content"]) == 3000


def test_steps_may_be_told_as_thoughts() -> None:
    shelf = FakeShelf(w__now=piecewise)
    got, _ = rounds(shelf, calling(CALL), saying("End"), steps="reasoning")
    assert (got.asides, got.text) == ([], "End")
    assert got.reasoning == '\n[now {"city":"x"}]\nab\n[now: ab]\n'
    assert any(type(event) is ReasoningDelta for event in got.batches[0])


def test_the_request_s_journey_has_the_rounds_and_what_ran() -> None:
    shelf = FakeShelf(w__now="sunny", w__bad="Error: no")
    model = FakeAdapter(calling(CALL, ("c2", "bad", "{}")), saying("End"))
    request = asked()
    answer(wrapped(model, shelf), request)
    journey = request.call.journey
    assert journey is not None
    assert journey.rounds == 2
    told = [run._replace(seconds=0) for run in journey.tools]
    assert told == [ServerCall("w.now", 1, 0, True, 5), ServerCall("w.bad", 1, 0, False, 9)]


def test_the_tools_of_a_round_run_side_by_side() -> None:
    meeting = asyncio.Barrier(2)

    async def meet(_arguments: str, _context: ToolContext, _say: Say | None) -> ToolResult:
        async with asyncio.timeout(PATIENCE):
            await meeting.wait()
        return ToolResult("met")

    shelf = FakeShelf(a__one=meet, b__two=meet)
    got, _ = rounds(shelf, calling(("c1", "one", "{}"), ("c2", "two", "{}")), saying("End"))
    assert (got.text, got.error) == ("End", None)


def test_a_client_that_leaves_takes_its_tools_with_it() -> None:
    begun = asyncio.Event()

    async def forever(_arguments: str, _context: ToolContext, _say: Say | None) -> ToolResult:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    shelf, request = FakeShelf(w__now=forever, w__other="x"), asked()
    model = FakeAdapter(calling(CALL, ("c2", "other", "{}"), text="Wait."))

    async def leave() -> None:
        async def hear() -> None:
            async with aclosing(wrapped(model, shelf).stream(request)) as events:
                async for _ in events:
                    pass

        task = asyncio.create_task(hear())
        await asyncio.wait_for(begun.wait(), PATIENCE)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(leave())
    assert (shelf.left, len(model.asked)) == ([CALL[2]], 1)
    journey = request.call.journey
    assert journey is not None
    assert [(one.tool, one.ok) for one in journey.tools] == [("w.other", True), ("w.now", False)]


def test_sources_and_cut_results_are_told_with_the_answer() -> None:
    source = {"type": "url_citation", "url_citation": {"url": "https://a.example"}}

    async def found(_arguments: str, _context: ToolContext, _say: Say | None) -> ToolResult:
        return ToolResult("found", characters=90_000, cut=True, sources=(source,))

    got, _ = rounds(FakeShelf(web__now=found), calling(CALL), saying("End"))
    assert got.asides == [("annotations", [source])]
    assert [(note.code, note.field) for note in got.receipt] == [("result_cut", "tools.web")]


def test_an_image_says_whose_it_is() -> None:
    image: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    _, model = rounds(FakeShelf(art__draw=[image]), calling(("c1", "draw", "{}")), saying("End"))
    assert model.last()[-1] == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": [image],
        RESULT_OF: "art",
    }
