"""A session's turns and a cassette that is there: added, written anew, or left to the byte."""

from __future__ import annotations

import asyncio
import difflib
import os
import shutil
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from adapters.protocol import Json
from middleware.__main__ import main
from middleware.cassettes.cassette import Mode
from middleware.cassettes.record.finish import Finished
from middleware.cassettes.record.lines import TurnRow
from middleware.cassettes.record.merge import Policy
from middleware.cassettes.record.parts import find_parts, read_parts
from tests.cassette.core.desk import REPLAYED, asking, cassette, desk, full_disk
from tests.cassette.core.test_endings import CONFIG
from tests.support.day_one import Seen, answering, completion
from tests.support.upstreams.loopback import loopback

A, B, C = (asking(letter) for letter in "ABC")


class Echo:
    """Says of each ask how often it was asked, if it counts, and else the same again."""

    def __init__(self, **says: str) -> None:
        self.says = says
        self.seen = Seen()

    def reply(self, path: str, head: str, body: Json) -> tuple[str, bytes]:
        asked = body["messages"][-1]["content"]
        said = self.says.get(asked, f"the answer to {asked}")
        return ("500 No", b"{}") if said == "FAIL" else ("200 OK", completion(said))


def recorded(folder: Path, mode: Mode, echo: Echo, *bodies: Json, **options: Any) -> Finished:
    async def go() -> Finished:
        async with loopback(answering(echo.seen, echo.reply)) as up:
            text = CONFIG.replace("URL", up.url)
            async with desk(folder, text, mode, **options) as gateway:
                for body in bodies:
                    await gateway.ask(body)
                (finished,) = gateway.finish() or [Finished("none")]
                return finished

    return asyncio.run(go())


def texts(folder: Path) -> list[str]:
    return [str((turn.answer.message or {}).get("content")) for turn in cassette(folder).turns]


def lines(folder: Path) -> list[str]:
    return (folder / "default.yaml").read_text("utf-8").splitlines()


def test_recording_anew_replaces_what_was_there(tmp_path: Path) -> None:
    recorded(tmp_path, "record", Echo(), A, B)
    recorded(tmp_path, "record", Echo(C="new"), C)
    assert texts(tmp_path) == ["new"]


def test_what_is_known_is_played_and_what_is_new_is_added(tmp_path: Path) -> None:
    recorded(tmp_path, "record", Echo(), A, B)
    before = lines(tmp_path)
    echo = Echo(A="never asked", B="never asked", C="new")
    finished = recorded(tmp_path, "auto", echo, B, C, A)
    assert len(echo.seen.requests) == 1
    assert texts(tmp_path) == ["the answer to A", "the answer to B", "new"]
    assert lines(tmp_path)[: len(before)] == before
    assert (finished.turns, finished.recorded) == (3, 1)


def test_what_comes_once_more_than_it_was_recorded_is_added(tmp_path: Path) -> None:
    recorded(tmp_path, "record", Echo(), A)
    recorded(tmp_path, "auto", Echo(A="another"), A, A)
    assert texts(tmp_path) == ["the answer to A", "another"]


def test_a_turn_is_never_played_in_the_session_it_was_recorded_in(tmp_path: Path) -> None:
    echo = Echo()
    recorded(tmp_path, "auto", echo, A, A)
    assert len(echo.seen.requests) == 2


def test_where_all_is_known_nothing_is_written(tmp_path: Path) -> None:
    recorded(tmp_path, "record", Echo(), A, B)
    path = tmp_path / "default.yaml"
    os.utime(path, ns=(1, 1))
    recorded(tmp_path, "auto", Echo(), A, B)
    recorded(tmp_path, "refresh", Echo(), A, B)
    assert path.stat().st_mtime_ns == 1


def test_a_changed_answer_changes_its_own_lines_alone(tmp_path: Path) -> None:
    recorded(tmp_path, "record", Echo(), A, B, C)
    before, old = lines(tmp_path), cassette(tmp_path).turns
    echo = Echo(B="another answer")
    recorded(tmp_path, "refresh", echo, A, B, C)
    assert len(echo.seen.requests) == 3
    assert texts(tmp_path) == ["the answer to A", "another answer", "the answer to C"]
    begin, end = old[1].line - 1, old[2].line - 1
    for line in difflib.ndiff(before, lines(tmp_path)):
        if line[0] == "-":
            assert line[2:] in before[begin:end]
    now = cassette(tmp_path).turns
    assert (now[0].id, now[2].id) == (old[0].id, old[2].id)
    assert lines(tmp_path)[:begin] == before[:begin]
    assert lines(tmp_path)[now[2].line - 1 :] == before[end:]


def test_an_answer_that_fails_now_replaces_none_unless_it_is_meant(tmp_path: Path) -> None:
    recorded(tmp_path, "record", Echo(), A)
    before = lines(tmp_path)
    finished = recorded(tmp_path, "refresh", Echo(A="FAIL"), A)
    assert finished.not_whole == ((1, "status 500"),)
    assert lines(tmp_path) == before
    recorded(tmp_path, "refresh", Echo(A="FAIL"), A, policy=Policy(keep_errors=True))
    (turn,) = cassette(tmp_path).turns
    assert (turn.answer.status, turn.kept) == (500, True)


def test_an_answer_that_fails_now_is_named_among_those_that_do_not(tmp_path: Path) -> None:
    recorded(tmp_path, "record", Echo(), A, B)
    finished = recorded(tmp_path, "refresh", Echo(B="FAIL"), A, B)
    assert finished.not_whole == ((2, "status 500"),)
    assert [turn.is_whole for turn in cassette(tmp_path).turns] == [True, False]


@pytest.mark.parametrize(("mode", "turns"), [("record", 1), ("auto", 2), ("refresh", 2)])
def test_rules_of_the_cassette_stay(tmp_path: Path, mode: Mode, turns: int) -> None:
    recorded(tmp_path, "record", Echo(), A)
    path = tmp_path / "default.yaml"
    rules = "match:\n  level: strict\ndiff:\n  ignore: [f.x]\nturns:"
    path.write_text(path.read_text("utf-8").replace("turns:", rules, 1), "utf-8")
    recorded(tmp_path, mode, Echo(), B)
    found = cassette(tmp_path)
    assert (found.match, found.diff) == ({"level": "strict"}, {"ignore": ["f.x"]})
    assert len(found.turns) == turns


def test_two_recorders_at_once_lose_nothing(tmp_path: Path) -> None:
    async def go() -> list[Finished]:
        echo = Echo()
        async with loopback(answering(echo.seen, echo.reply)) as up:
            text = CONFIG.replace("URL", up.url)
            async with desk(tmp_path, text, "auto") as one, desk(tmp_path, text, "auto") as two:
                for gateway, body in ((one, A), (two, B), (one, C), (two, A)):
                    assert (await gateway.ask(body)).status == 200
                return [*one.finish(), *two.finish()]

    finished = asyncio.run(go())
    assert [one.problem for one in finished] == ["", ""]
    assert sorted(texts(tmp_path)) == [f"the answer to {letter}" for letter in "AABC"]
    assert [path.name for path in tmp_path.iterdir()] == ["default.yaml"]


def test_sessions_and_lanes_are_recorded_and_sessions_stay_together(tmp_path: Path) -> None:
    async def go() -> list[str]:
        echo = Echo()
        async with AsyncExitStack() as stack:
            up = await stack.enter_async_context(loopback(answering(echo.seen, echo.reply)))
            text = CONFIG.replace("URL", up.url)
            gateway = await stack.enter_async_context(desk(tmp_path, text, "record"))
            for name, lane, body in (("b", "", A), ("a", "x", B), ("b", "y", C), ("a", "", A)):
                await gateway.ask(body, f"default@{name}", lane=lane)
        async with desk(tmp_path, REPLAYED, "replay") as gateway:
            heard = [await gateway.ask(body, f"default@{name}") for name in "ab" for body in (A, B)]
            return [one.headers["x-usetool-replay"] for one in heard]

    heard = asyncio.run(go())
    found = [(turn.session, turn.lane) for turn in cassette(tmp_path).turns]
    assert found == [("a", "x"), ("a", ""), ("b", ""), ("b", "y")]
    # Of equal turns a session's own come first.
    assert heard == [f"default turn={turn} of=4" for turn in (2, 1, 3, 1)]


# What a crash leaves ------------------------------------------------------------------------------


_TURN = b'\n["req_'
"""How a turn begins in a part."""


def crashed(folder: Path, *bodies: Json, name: str = "default") -> Path:
    """What a process left that was killed while it wrote its last turn."""

    async def go(elsewhere: Path) -> bytes:
        echo = Echo()
        async with AsyncExitStack() as stack:
            up = await stack.enter_async_context(loopback(answering(echo.seen, echo.reply)))
            text = CONFIG.replace("URL", up.url)
            gateway = await stack.enter_async_context(desk(elsewhere, text, "record"))
            await gateway.asks(bodies)
            return await asyncio.to_thread(_written, elsewhere, len(bodies))

    elsewhere = folder / "elsewhere"
    whole = asyncio.run(go(elsewhere))
    shutil.rmtree(elsewhere)
    part = folder / f"{name}.yaml.part-{_dead()}"
    part.write_bytes(whole + whole[_last_turn(whole) : -100])
    return part


def _last_turn(whole: bytes) -> int:
    return whole.rindex(_TURN) + 1


def _written(folder: Path, turns: int) -> bytes:
    """The part of a recorder that works, once it holds so many turns."""
    for _ in range(500):
        for part in folder.glob("*.part-*"):
            whole = part.read_bytes()
            if whole.count(_TURN) == turns and whole.endswith(b"\n"):
                return whole
        time.sleep(0.01)
    raise AssertionError("it was not written")


def _dead() -> int:
    process = os.spawnvp(os.P_NOWAIT, "true", ["true"])
    os.waitpid(process, 0)
    return process


def ls(folder: Path, *more: str) -> int:
    return main(["cassette", "ls", "--dir", str(folder), *more])


def test_what_a_crash_left_is_named_and_made_a_cassette(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = crashed(tmp_path, A, B)
    assert ls(tmp_path) == 0
    assert f"{part.name}: a part of a recorder that was killed, with 2 whole" in (
        capsys.readouterr().out
    )
    assert ls(tmp_path, "--recover") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["default.yaml"]
    assert texts(tmp_path) == ["the answer to A", "the answer to B"]


def test_of_a_part_whatever_is_whole_is_read(tmp_path: Path) -> None:
    part = crashed(tmp_path, A, B)
    whole = part.read_bytes()
    begins, ends = _last_turn(whole[: _last_turn(whole)]), _last_turn(whole)
    for size in range(begins, ends + 1):
        part.write_bytes(whole[:size])
        turns = read_parts([part]).turns
        assert len(turns) == (2 if size == ends else 1)
        rows = [turn for turn in turns if isinstance(turn, TurnRow)]
        assert [b"the answer to" in row.bodies[-1] for row in rows] == [True] * len(turns)


def test_recovering_replaces_nothing(tmp_path: Path) -> None:
    recorded(tmp_path, "record", Echo(), C)
    for body in (A, B):
        crashed(tmp_path, body)
        assert ls(tmp_path, "--recover") == 0
    found = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert len(found) == 3
    names = ("default.yaml", "default.recovered.yaml", "default.recovered-2.yaml")
    for letter, name in zip("CAB", names, strict=True):
        assert f"the answer to {letter}" in found[name]


def test_of_two_that_crashed_both_are_recovered(tmp_path: Path) -> None:
    crashed(tmp_path, A)
    crashed(tmp_path, B)
    assert ls(tmp_path, "--recover") == 0
    told = "".join(path.read_text("utf-8") for path in tmp_path.iterdir())
    assert "the answer to A" in told
    assert "the answer to B" in told


def test_what_cannot_be_written_is_not_thrown_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = crashed(tmp_path, A)
    with full_disk():
        assert ls(tmp_path, "--recover") == 0
    assert "default.yaml cannot be written: File too large" in capsys.readouterr().out
    assert [*tmp_path.iterdir()] == [part]


def test_what_a_running_process_writes_is_left_alone(tmp_path: Path) -> None:
    part = crashed(tmp_path, A)
    running = part.with_name(f"default.yaml.part-{os.getppid()}")
    part.rename(running)
    assert [*find_parts(tmp_path)] == []
    assert ls(tmp_path, "--recover") == 0
    assert running.exists()


def test_a_crash_is_told_when_recording_begins_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crashed(tmp_path, A)
    echo = Echo()

    async def go() -> None:
        async with loopback(answering(echo.seen, echo.reply)) as up:
            text = '[recall]\nstore = "off"\n' + CONFIG.replace("URL", up.url)
            (tmp_path / "config.toml").write_text(text, "utf-8")
            command = ["record", "default", "--dir", str(tmp_path), "--allow-live"]
            command += ["--config", str(tmp_path / "config.toml"), "--", "true"]
            assert await asyncio.to_thread(main, command) == 5

    asyncio.run(go())
    assert "a part of a recorder that was killed" in capsys.readouterr().err
