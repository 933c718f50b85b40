"""The recorder beside the requests: bounded, losing no turn unsaid, honest about disks."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.protocol import Finish, Json, TextDelta
from middleware.cassettes.asks import new_fold
from middleware.cassettes.record.lock import locked
from middleware.cassettes.record.recorder import Recorder
from tests.cassette.core.desk import (
    Desk,
    Desktop,
    asking,
    cassette,
    desk,
    full_disk,
    put_together,
    raw,
    texts_below,
)
from tests.support.door import Heard

SCRIPTED = '[upstreams.s]\nkind = "scripted"\n[models.m]\nupstream = "s"\n'


# A queue with an end ------------------------------------------------------------------------------


@contextmanager
def stuck(folder: Path) -> Iterator[Recorder]:
    """A recorder whose disk does not answer until the end."""
    reached, goes_on = threading.Event(), threading.Event()

    def path(name: str) -> Path:
        reached.set()
        assert goes_on.wait(5)
        return folder / f"{name}.yaml"

    recorder = Desktop(folder, path=path).recorder
    recorder.put(raw(0))
    assert reached.wait(5)
    try:
        yield recorder
    finally:
        goes_on.set()
    (finished,) = recorder.finish()
    assert finished.problem == ""


@pytest.mark.parametrize("clients", [1, 2])
def test_turns_that_come_too_fast_are_dropped_whole_and_counted(
    tmp_path: Path, clients: int
) -> None:
    with stuck(tmp_path) as recorder:
        for number in range(1, 1011):
            recorder.put(raw(number, key=f"key-of-client-{number % clients}"))
        assert recorder.dropped == 10
    found = cassette(tmp_path, "t")
    assert [turn.id for turn in found.turns] == [f"req_{number}" for number in range(1001)]


@pytest.mark.parametrize("together", [False, True])
def test_turns_that_come_by_turns_are_each_in_their_own_cassette(
    tmp_path: Path, together: bool
) -> None:
    recorder = Desktop(tmp_path).recorder
    turns = [raw(one, name=f"c{one % 3}", key=f"key-of-client-{one % 2}") for one in range(40)]
    if together:
        put_together(recorder, turns)
    else:
        for turn in turns:
            recorder.put(turn)
    assert [one.problem for one in recorder.finish()] == [""] * 3
    for rest in range(3):
        found = [turn.id for turn in cassette(tmp_path, f"c{rest}").turns]
        assert sorted(found) == sorted(f"req_{number}" for number in range(rest, 40, 3))


def test_so_are_turns_that_are_too_large_together(tmp_path: Path) -> None:
    with stuck(tmp_path) as recorder:
        for number, megabytes in enumerate((30, 30, 30, 3), 1):
            recorder.put(raw(number, size=megabytes << 20))
        assert recorder.dropped == 1
    assert [turn.id for turn in cassette(tmp_path, "t").turns] == [
        *("req_0", "req_1", "req_2", "req_4")
    ]


@pytest.mark.parametrize(
    ("megabytes", "lost"), [([10] * 8, [6, 7]), ([0, 0, 70, 0, 0], [2]), ([63, 0, 2, 0], [2])]
)
def test_so_are_turns_that_are_told_together(
    tmp_path: Path, megabytes: list[int], lost: list[int]
) -> None:
    turns = [raw(number, size=size << 20) for number, size in enumerate(megabytes, 1)]
    with stuck(tmp_path) as recorder:
        put_together(recorder, turns)
        assert recorder.dropped == len(lost)
    kept = [turn.visitor.call.id for number, turn in enumerate(turns) if number not in lost]
    assert [turn.id for turn in cassette(tmp_path, "t").turns] == ["req_0", *kept]


@pytest.mark.parametrize(
    ("count", "gathered"), [(1, 0.02), (15, 0.02), (16, 3600.0), (17, 3600.0), (40, 3600.0)]
)
def test_turns_of_one_moment_come_to_the_disk_by_themselves(
    tmp_path: Path, count: int, gathered: float
) -> None:
    async def go() -> None:
        recorder = Desktop(tmp_path).recorder
        recorder.gathers = gathered
        for number in range(count):
            recorder.put(raw(number))
        ends = time.monotonic() + 10
        while not all(b'"req_%d"' % number in _written(tmp_path) for number in range(count)):
            assert time.monotonic() < ends
            await asyncio.sleep(0.005)
        (finished,) = recorder.finish()
        assert finished.turns == count

    asyncio.run(go())


def _written(folder: Path) -> bytes:
    return b"".join(texts_below(folder))


@pytest.mark.parametrize("count", [1, 20])
def test_turns_that_were_not_told_yet_are_there_at_the_end(tmp_path: Path, count: int) -> None:
    async def go() -> None:
        recorder = Desktop(tmp_path).recorder
        for number in range(count):
            recorder.put(raw(number))
        (finished,) = recorder.finish()  # before the loop turns
        assert finished.turns == count
        recorder.put(raw(count))
        assert recorder.dropped == 1

    asyncio.run(go())


@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_turn_that_json_cannot_say_costs_no_other(tmp_path: Path, at_the_end: bool) -> None:
    async def go() -> None:
        desktop = Desktop(tmp_path)
        recorder = desktop.recorder
        recorder.put(raw(0))
        recorder.put(raw(1)._replace(body={"data": {1, 2}}))
        recorder.put(raw(2))
        if not at_the_end:
            await asyncio.sleep(2 * recorder.gathers)
        (finished,) = recorder.finish()
        assert (finished.turns, recorder.dropped) == (2, 1)
        assert "JSON cannot say it" in desktop.said[0]

    asyncio.run(go())


@pytest.mark.parametrize("error", [BrokenPipeError, LookupError])
def test_who_cannot_be_told_of_it_loses_no_other(tmp_path: Path, error: type[Exception]) -> None:
    def closed(_: str) -> None:
        raise error

    recorder = Desktop(tmp_path).recorder
    recorder.say = closed
    put_together(recorder, [raw(0), raw(1)._replace(body={"data": {1, 2}}), raw(2)])
    assert (recorder.finish()[0].turns, recorder.dropped) == (2, 1)


def test_of_what_json_cannot_say_no_cassette_is_left(tmp_path: Path) -> None:
    recorder = Desktop(tmp_path).recorder
    recorder.put(raw(1)._replace(body={"data": {1, 2}}))
    assert (recorder.finish(), recorder.dropped) == ([], 1)
    assert [*tmp_path.iterdir()] == []


def test_the_end_waits_for_a_turn_that_is_being_told(tmp_path: Path) -> None:
    recorder = Desktop(tmp_path).recorder
    end = threading.Thread(target=recorder.finish)

    class Slow(dict[str, str]):
        def get(self, *_: object) -> None:  # type: ignore[override]  # is asked for by name alone
            if end.ident is None:
                end.start()
                end.join(0.3)

    turn = raw(0, size=1)
    turn.calls[0].answer_headers = Slow()
    recorder.put(turn)
    end.join()
    assert recorder.finish()[0].turns == 1


def test_a_loop_that_ended_takes_no_turns_of_the_next_along(tmp_path: Path) -> None:
    recorder = Desktop(tmp_path).recorder

    async def go(number: int) -> None:
        recorder.put(raw(number))

    async def wait() -> None:
        await go(1)
        await asyncio.sleep(2 * recorder.gathers)

    asyncio.run(go(0))
    time.sleep(2 * recorder.gathers)
    asyncio.run(wait())
    assert not recorder._ended
    assert recorder.finish()[0].turns == 2


def test_a_turn_behind_the_end_is_written_or_counted(tmp_path: Path) -> None:
    desktop = Desktop(tmp_path)
    recorder = desktop.recorder
    recorder.put(raw(0))
    # Between the end and its writing a request that was cut off puts its turn.
    recorder._queue.put(None)
    recorder.put(raw(1))
    (finished,) = recorder.finish()
    assert finished.turns == 2
    recorder.put(raw(2))
    assert recorder.dropped == 1


def test_a_number_that_json_cannot_hold_breaks_no_request(tmp_path: Path) -> None:
    recorder = Desktop(tmp_path).recorder
    fold = new_fold()
    fold.add((TextDelta("hi", ({"token": "hi", "logprob": 1 << 70},)), Finish("stop")))
    recorder.put(raw(1)._replace(heard=fold))
    recorder.put(raw(2))
    assert recorder.finish()[0].problem == ""
    assert [turn.id for turn in cassette(tmp_path, "t").turns] == ["req_1", "req_2"]


# Disks --------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_written_stops_recording_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder", "utf-8")

    async def go() -> tuple[list[Heard], Desk]:
        async with desk(tmp_path / "file", SCRIPTED, "record") as gateway:
            heard = await gateway.asks([asking("one"), asking("two"), asking("three")])
            await asyncio.to_thread(gateway.finish)
            return heard, gateway

    heard, gateway = asyncio.run(go())
    assert [one.status for one in heard] == [200] * 3
    assert gateway.finish() == []
    assert len(gateway.said) == len(gateway.studio.recorder.problems) == 1
    assert gateway.said[0].startswith("Recording stopped: ")


def test_a_full_disk_leaves_the_old_cassette_as_it_was(tmp_path: Path) -> None:
    old = tmp_path / "t.yaml"
    old.write_text("what was there", "utf-8")
    desktop = Desktop(tmp_path)
    with full_disk():
        desktop.recorder.put(raw(1))
        desktop.recorder.put(raw(2))
        time.sleep(0.03)  # what comes meanwhile, or behind it, is told no more of
        desktop.recorder.put(raw(3))
        while not desktop.said:
            time.sleep(0.005)
        desktop.recorder.put(raw(4))
        assert desktop.recorder.finish() == []
    assert desktop.said == ["Recording stopped: File too large. Requests are still served."]
    assert [*tmp_path.iterdir()] == [old]
    assert old.read_text("utf-8") == "what was there"


def test_a_disk_that_fills_at_the_end_keeps_the_part(tmp_path: Path) -> None:
    old = tmp_path / "t.yaml"
    old.write_text("usetool: {cassette: 1}\nturns: []\n", "utf-8")
    desktop = Desktop(tmp_path, path=lambda name: Path(f"{tmp_path}/{name}.yaml"))
    desktop.recorder.put(raw(1, "x" * 600))
    while not (parts := [*tmp_path.glob("*.part-*")]) or parts[0].stat().st_size < 600:
        time.sleep(0.01)
    with full_disk(500):
        (finished,) = desktop.recorder.finish()
    assert "t.yaml was not written: [Errno 27] File too large" in finished.problem
    assert {path.name for path in tmp_path.iterdir()} >= {"t.yaml", parts[0].name}
    assert old.read_text("utf-8").endswith("turns: []\n")


@pytest.mark.parametrize("there", ["not: [a cassette", "usetool: {cassette: 99}\nturns: []\n"])
def test_what_cannot_be_read_is_not_replaced(tmp_path: Path, there: str) -> None:
    old = tmp_path / "t.yaml"
    old.write_text(there, "utf-8")
    recorder = Desktop(tmp_path).recorder
    recorder.put(raw(1))
    (finished,) = recorder.finish()
    assert "t.yaml was not written" in finished.problem
    assert old.read_text("utf-8") == there
    assert any(path.name.startswith("t.yaml.part-") for path in tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_mistake_of_its_own_is_not_kept_silent(tmp_path: Path) -> None:
    def routes(model: str) -> Iterable[tuple[str, Json]]:
        raise LookupError(model)

    desktop = Desktop(tmp_path, routes=routes)
    desktop.recorder.put(raw(1))
    desktop.recorder.put(raw(2))
    assert desktop.recorder.finish() == []
    assert len(desktop.said) == 1


def test_a_session_without_a_turn_writes_nothing(tmp_path: Path) -> None:
    assert Desktop(tmp_path).recorder.finish() == []
    assert not [*tmp_path.iterdir()]


# Locks --------------------------------------------------------------------------------------------


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    path, order = tmp_path / "t.yaml", list[str]()

    def second() -> None:
        with locked(path):
            order.append("second")

    with locked(path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.1)
        order.append("first")
    thread.join(5)
    assert order == ["first", "second"]
    assert not [*tmp_path.iterdir()]


def test_a_lock_that_a_dead_process_left_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    dead = os.spawnvp(os.P_NOWAIT, "true", ["true"])
    os.waitpid(dead, 0)
    (tmp_path / "t.yaml.lock").write_text(str(dead), "utf-8")
    with locked(path):
        assert (tmp_path / "t.yaml.lock").read_text("utf-8") == str(os.getpid())
    assert not [*tmp_path.iterdir()]
