"""Clients that leave, and what becomes of turns that are not whole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.protocol import ChatRequest, RequestContext
from middleware.cassettes.cassette import Cassette, CassetteTurn, RecordedAnswer
from middleware.cassettes.names import CassetteName
from middleware.cassettes.record.adapter import RawTurn, RecordingAdapter
from middleware.cassettes.record.finish import Finished
from middleware.cassettes.record.merge import Policy, merged
from middleware.cassettes.selection import Selection
from middleware.cassettes.verify import Verified, verified
from middleware.cassettes.visitor import Visitor
from tests.cassette.core.desk import REPLAYED, asking, cassette, desk, folded, streamed
from tests.cassette.core.test_endings import CONFIG, EVENTS, hangs, streams
from tests.cassette.turns import turn
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import user
from tests.support.door import ANSWER, Heard
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

ASK = streamed(asking("Count."))
KEPT, GOOD, USUAL = Policy(keep_errors=True), Policy(only_good=True), Policy()


async def _left(folder: Path, behaves: Behaviour, after: int, policy: Policy) -> Finished:
    """Record an ask whose client leaves behind so many writes."""
    reached = asyncio.Event()

    async def behave(peer: Peer) -> None:
        reached.set()
        await behaves(peer)

    async with loopback(behave) as up:
        text = CONFIG.replace("URL", up.url)
        async with desk(folder, text, "record", policy=policy) as recording:
            leaves = asyncio.Event()
            heard, task = recording.door.begin(ASK, leaves)
            if after:
                await heard.until(after + 1)
            await asyncio.wait_for(reached.wait(), 5)
            leaves.set()
            await asyncio.wait_for(task, 5)
            (finished,) = await asyncio.to_thread(recording.finish)
            return finished


async def _played(folder: Path) -> Heard:
    async with desk(folder, REPLAYED, "replay") as playing:
        return await playing.ask(ASK)


ASKED = "m", "record", b"{}", "", RequestContext("req_1")
VISITOR = Visitor(CassetteName("t"), Selection(), *ASKED)
STALLS = streams(*EVENTS[:2], then="silence")


def test_whoever_leaves_behind_the_end_has_had_it_all(tmp_path: Path) -> None:
    finished = asyncio.run(_left(tmp_path, streams(*EVENTS, then="silence"), 4, USUAL))
    assert finished.not_whole == ()
    (found,) = cassette(tmp_path).turns
    assert found.is_whole
    assert folded(asyncio.run(_played(tmp_path)))["content"] == "One, two, three."


@pytest.mark.parametrize(("behaves", "after"), [(STALLS, 2), (hangs, 0)])
def test_an_answer_that_was_left_is_a_miss_that_says_so(
    tmp_path: Path, behaves: Behaviour, after: int
) -> None:
    finished = asyncio.run(_left(tmp_path, behaves, after, USUAL))
    assert finished.not_whole == ((1, "left"),)
    (found,) = cassette(tmp_path).turns
    assert found.ended == found.exchanges[-1].ended == "left"
    heard = asyncio.run(_played(tmp_path))
    assert (heard.status, heard.error()["code"]) == (422, "cassette_miss")
    assert "left" in heard.error()["message"]


def test_what_was_left_is_played_as_far_as_it_was_heard_if_it_is_meant(tmp_path: Path) -> None:
    asyncio.run(_left(tmp_path, STALLS, 2, KEPT))
    heard = asyncio.run(_played(tmp_path))
    assert heard.status == 200
    found = folded(heard)
    assert (found["content"], found["reason"]) == ("One, two, ", None)
    assert found["error"]["code"] == "upstream_truncated"
    assert b"[DONE]" not in heard.body


def test_what_was_left_before_it_began_is_an_error_if_it_is_meant(tmp_path: Path) -> None:
    asyncio.run(_left(tmp_path, hangs, 0, KEPT))
    heard = asyncio.run(_played(tmp_path))
    assert (heard.status, heard.error()["code"]) == (502, "upstream_unreachable")


@pytest.mark.parametrize(("behaves", "after"), [(STALLS, 2), (hangs, 0)])
def test_verifying_changes_nothing_of_what_was_left(
    tmp_path: Path, behaves: Behaviour, after: int
) -> None:
    asyncio.run(_left(tmp_path, behaves, after, USUAL))
    found = cassette(tmp_path)
    assert asyncio.run(verified(found, "t.yaml")) == Verified(found, ())


def test_a_left_turn_waits_for_no_other_ask(tmp_path: Path) -> None:
    """It is not played, so it is not used up: the report says it is unused."""
    asyncio.run(_left(tmp_path, STALLS, 2, USUAL))

    async def go() -> tuple[list[int], list[str]]:
        async with desk(tmp_path, REPLAYED, "replay") as playing:
            heard = [await playing.ask(ASK) for _ in range(2)]
            codes = [one.error()["code"] for one in heard]
            return playing.studio.status("default", "")["unused"], codes

    assert asyncio.run(go()) == ([1], ["cassette_miss"] * 2)


class Keeper:
    """Takes in one turn."""

    def __init__(self) -> None:
        self.turns: list[RawTurn] = []

    def put(self, turn: RawTurn) -> None:
        self.turns.append(turn)


@pytest.mark.parametrize(("batches", "left"), [(0, True), (1, True), (2, True), (3, False)])
def test_whoever_stops_listening_has_left_unless_the_end_was_said(batches: int, left: bool) -> None:
    keeper = Keeper()

    async def listen() -> None:
        record = RecordingAdapter(FakeAdapter(ANSWER), keeper, VISITOR)
        async with aclosing(record.stream(ChatRequest("m", (user("hi"),)))) as events:
            for _ in range(batches):
                await anext(events)

    asyncio.run(listen())
    # Whoever asks for nothing has not begun.
    assert [turn.left for turn in keeper.turns] == ([left] if batches else [])


# What is written ----------------------------------------------------------------------------------

FAILED = RecordedAnswer(500, error={"message": "no", "code": "upstream_error"})
G, B = turn(1, asking("good"), id="g"), turn(1, asking("bad"), answer=FAILED, id="b")
OLD = Cassette((turn(1, asking("old"), id="o"),), recorded="2026-01-01", by="1")
Row = tuple[Policy, Sequence[CassetteTurn], bool, str, Sequence[tuple[int, str]]]
# Policy, what was recorded, whether there was a cassette; ids that are written, what is not whole.
WRITTEN: Sequence[Row] = (
    (USUAL, [G, B], True, "gb", [(2, "status 500")]),
    (USUAL, [G], True, "g", []),
    (USUAL, [B], True, "", [(1, "status 500")]),
    (USUAL, [B, B], False, "bb", [(1, "status 500"), (2, "status 500")]),
    (USUAL, [], True, "", []),
    (USUAL, [], False, "", []),
    (KEPT, [B], True, "b", [(1, "status 500")]),
    (KEPT, [G, B], False, "gb", [(2, "status 500")]),
    (GOOD, [G, B], True, "g", []),
    (GOOD, [B], True, "", []),
    (GOOD, [B], False, "", []),
)


@pytest.mark.parametrize(("policy", "turns", "was", "ids", "ends"), WRITTEN)
def test_what_is_written_of_turns_that_are_not_whole(
    policy: Policy, turns: Sequence[CassetteTurn], was: bool, ids: str, ends: Sequence[object]
) -> None:
    numbered = tuple(replace(one, number=at) for at, one in enumerate(turns, 1))
    found = merged(OLD if was else None, Cassette(numbered), "record", policy)
    assert [*found.not_whole] == [*ends]
    if not ids:
        assert found.cassette is None
        return
    assert found.cassette is not None
    assert "".join(one.id for one in found.cassette.turns) == ids
    assert [one.number for one in found.cassette.turns] == [*range(1, len(ids) + 1)]
    kept = [one.kept for one in found.cassette.turns if not one.is_whole]
    assert all(one is policy.keep_errors for one in kept)
