"""Equal asks get their turns in order, each session for itself, and what comes after the last."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.protocol import Json
from middleware.cassettes.cassette import Cassette, CassetteTurn
from middleware.cassettes.errors import CassetteMiss
from middleware.cassettes.file import cassette_text, write_cassette
from middleware.cassettes.match import MatchRules, key_of
from middleware.cassettes.names import CassetteName
from middleware.cassettes.replay.playback import Session, form_of, playback
from middleware.cassettes.replay.shelf import Shelf
from tests.cassette.core.desk import REPLAYED, Desk, asking, desk, folded
from tests.cassette.turns import said, turn
from tests.support.door import Heard

ASK = asking("Which number?")
FIVE = ("one", "two", "three", "four", "five")


def turn_of(at: int, text: str, body: Json = ASK, lane: str = "") -> CassetteTurn:
    return turn(at, body, answer=said(text), lane=lane)


def keep(folder: Path, name: str, texts: Sequence[str], match: Json | None = None) -> Path:
    turns = tuple(turn_of(at, text) for at, text in enumerate(texts, 1))
    path = folder / f"{name}.yaml"
    write_cassette(path, cassette_text(Cassette(turns=turns, match=match or {})))
    return path


def text_of(heard: Heard) -> str:
    return str(folded(heard)["content"]) if heard.status == 200 else str(heard.error()["code"])


async def texts(gateway: Desk, count: int, name: str = "t", **headers: str) -> list[str]:
    return [text_of(await gateway.ask(ASK, name, **headers)) for _ in range(count)]


def test_the_kth_equal_ask_gets_the_kth_turn_and_the_next_is_a_miss(tmp_path: Path) -> None:
    keep(tmp_path, "t", FIVE)

    async def go() -> tuple[list[str], Heard]:
        async with desk(tmp_path, REPLAYED, "replay") as gateway:
            return await texts(gateway, 5), await gateway.ask(ASK, "t")

    heard, last = asyncio.run(go())
    assert tuple(heard) == FIVE
    assert last.status == 422
    assert last.error()["code"] == "cassette_exhausted"
    assert last.headers["x-should-retry"] == "false"


REPEATS = {"repeats": "last"}
MISS = {"repeats": "miss"}
EXHAUSTED = "cassette_exhausted"
# The cassette's own rules, the folder's, the config's, and what the third of two asks gets.
NEAREST: Sequence[tuple[Json, str, str, str]] = (
    ({}, "", "", EXHAUSTED),
    (REPEATS, "", "", "two"),
    ({}, 'repeats = "last"', "", "two"),
    ({}, "", 'repeats = "last"', "two"),
    (MISS, 'repeats = "last"', 'repeats = "last"', EXHAUSTED),
    ({}, 'repeats = "miss"', 'repeats = "last"', EXHAUSTED),
    (REPEATS, 'repeats = "miss"', 'repeats = "miss"', "two"),
)


@pytest.mark.parametrize(("own", "folders", "configs", "third"), NEAREST)
def test_who_says_that_the_last_answer_is_repeated(
    tmp_path: Path, own: Json, folders: str, configs: str, third: str
) -> None:
    keep(tmp_path, "t", FIVE[:2], own)
    (tmp_path / "match.toml").write_text(folders, "utf-8")

    async def go() -> list[str]:
        async with desk(tmp_path, f"{REPLAYED}{configs}\n", "replay") as gateway:
            return await texts(gateway, 4)

    assert asyncio.run(go()) == ["one", "two", third, third]


def test_a_rewind_begins_again_with_rules_of_its_own(tmp_path: Path) -> None:
    keep(tmp_path, "t", FIVE[:2])

    async def go() -> list[str]:
        async with desk(tmp_path, REPLAYED, "replay") as gateway:
            heard = await texts(gateway, 3)
            gateway.studio.rewind("t", "", {"match": REPEATS})
            heard += await texts(gateway, 3)
            gateway.studio.rewind("t", "", {})
            return heard + await texts(gateway, 3)

    first, again = ["one", "two", EXHAUSTED], ["one", "two", "two"]
    assert asyncio.run(go()) == [*first, *again, *first]


def test_parallel_sessions_count_for_themselves(tmp_path: Path) -> None:
    keep(tmp_path, "t", FIVE)
    names = [f"t@{at}" for at in range(10)] * 5
    random.Random(1).shuffle(names)

    async def go() -> list[str]:
        async with desk(tmp_path, REPLAYED, "replay") as gateway:
            heard = await asyncio.gather(*(gateway.ask(ASK, name) for name in names))
            return [text_of(one) for one in heard]

    heard = list(zip(names, asyncio.run(go()), strict=True))
    for name in set(names):
        assert tuple(text for whose, text in heard if whose == name) == FIVE


def test_lanes_divide_equal_asks_of_one_session(tmp_path: Path) -> None:
    lanes = [("a", "one"), ("b", "two"), ("a", "three"), ("b", "four")]
    turns = tuple(turn_of(at, text, lane=lane) for at, (lane, text) in enumerate(lanes, 1))
    write_cassette(tmp_path / "t.yaml", cassette_text(Cassette(turns=turns)))

    async def go() -> tuple[list[str], ...]:
        async with desk(tmp_path, REPLAYED, "replay") as gateway:
            return (
                await texts(gateway, 3, lane="b"),
                await texts(gateway, 3, lane="a"),
                await texts(gateway, 5, "t@other"),
            )

    b, a, all_of_them = asyncio.run(go())
    assert b == ["two", "four", EXHAUSTED]
    assert a == ["one", "three", EXHAUSTED]
    assert all_of_them == ["one", "two", "three", "four", EXHAUSTED]


def test_a_lane_that_was_not_recorded_counts_for_nothing(tmp_path: Path) -> None:
    keep(tmp_path, "t", FIVE[:2])

    async def go() -> list[str]:
        async with desk(tmp_path, REPLAYED, "replay") as gateway:
            first = await texts(gateway, 1, lane="a")
            return first + await texts(gateway, 2, lane="b")

    assert asyncio.run(go()) == ["one", "two", EXHAUSTED]


def test_a_changed_file_is_read_for_new_sessions_only(tmp_path: Path) -> None:
    path = keep(tmp_path, "t", FIVE)

    async def go() -> list[str]:
        async with desk(tmp_path, REPLAYED, "replay") as gateway:
            heard = await texts(gateway, 1)
            keep(tmp_path, "t", ["new"])
            os.utime(path, ns=(1, 1))
            heard += await texts(gateway, 1)
            heard += await texts(gateway, 1, "t@2")
            path.unlink()
            heard += await texts(gateway, 1)
            heard += await texts(gateway, 1, "t@2")
            return heard + await texts(gateway, 1, "t@3")

    assert asyncio.run(go()) == ["one", "two", "new", "three", EXHAUSTED, "cassette_missing"]


def test_a_broken_file_is_named_and_others_go_on(tmp_path: Path) -> None:
    keep(tmp_path, "good", ["fine"])
    (tmp_path / "bad.yaml").write_text("usetool: {cassette: 1}\nturns:\n- [broken\n", "utf-8")

    async def go() -> tuple[Heard, str]:
        async with desk(tmp_path, REPLAYED, "replay") as gateway:
            return await gateway.ask(ASK, "bad"), text_of(await gateway.ask(ASK, "good"))

    bad, good = asyncio.run(go())
    assert good == "fine"
    assert (bad.status, bad.error()["code"]) == (422, "cassette_unreadable")
    assert "bad.yaml, line 4" in bad.error()["message"]


@pytest.mark.parametrize("text", ["repeats = 'often'", "mask = 1", "nonsense = 1", "a = "])
def test_rules_of_a_folder_that_cannot_be_meant_are_named(tmp_path: Path, text: str) -> None:
    keep(tmp_path, "t", FIVE)
    (tmp_path / "match.toml").write_text(text, "utf-8")
    with pytest.raises(CassetteMiss, match=r"match\.toml") as caught:
        Shelf(tmp_path).load("t")
    assert caught.value.code == "cassette_unreadable"


def test_what_was_used_longest_ago_goes_when_too_much_is_loaded(tmp_path: Path) -> None:
    for name in "abc":
        keep(tmp_path, name, FIVE)
    size = (tmp_path / "a.yaml").stat().st_size
    shelf = Shelf(tmp_path, most_bytes=2 * size)
    first = shelf.load("a")
    shelf.load("b")
    assert shelf.load("a") is first
    other = shelf.load("b")
    shelf.load("c")
    assert shelf.load("b") is other
    assert shelf.load("a") is not first


def test_of_too_many_sessions_the_one_goes_that_was_asked_longest_ago(tmp_path: Path) -> None:
    keep(tmp_path, "t", FIVE)
    shelf = Shelf(tmp_path, most_sessions=3)
    first, second = (shelf.session(CassetteName("t", name)) for name in "ab")
    for name in "cad":
        shelf.session(CassetteName("t", name))
    assert [key.session for key, _ in shelf.opened()] == ["c", "a", "d"]
    assert shelf.session(CassetteName("t", "a")) is first
    assert shelf.session(CassetteName("t", "b")) is not second


@given(st.lists(st.integers(0, 3), max_size=30), st.lists(st.integers(0, 3), max_size=40))
def test_each_ask_has_a_queue_of_its_own(recorded: list[int], asked: list[int]) -> None:
    """Whatever else is asked between, the k-th of an ask is the k-th that was recorded of it."""
    turns = tuple(
        turn_of(at, "x", asking(f"number {which}")) for at, which in enumerate(recorded, 1)
    )
    cassette = Cassette(turns=turns)
    found = playback(cassette, Path("t.yaml"), MatchRules())
    session = Session()
    seen: dict[int, int] = {}
    for which in asked:
        form = form_of(cassette, turn_of(1, "x", asking(f"number {which}")))
        taken = found.take(session, key_of("chat", form.value, found.rules), "")
        own = [at for at, other in enumerate(recorded) if other == which]
        count = seen[which] = seen.get(which, -1) + 1
        assert taken.position == (own[count] if count < len(own) else None)
