"""Python tools of a config: loaded, offered, run, limited, stopped."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.tools.shelves import context_of, python_table, run, shelf_of

SOURCE = '''
import asyncio, os, sys, time
from json import dumps

def shout(text: str, times: int = 1) -> str:
    """Say it loudly."""
    return text.upper() * times

def spill() -> str:
    raise ValueError("the key is " + os.environ["TOOLS_TEST_KEY"])

def leave() -> str: sys.exit(3)
async def interrupt() -> str: raise KeyboardInterrupt
def wrong() -> int: return "five"
def strange() -> dict: return {"a": object()}
def binary() -> bytes: return b"\\x00\\x01"
def picture() -> bytes: return b"\\x89PNG\\r\\n\\x1a\\n..."
def long(n: int) -> str: return "x" * n
def heavy() -> list: return [1] * 3_000_000
def endless():
    while True: yield "x" * 100_000
async def busy():
    while True: yield "x" * 100_000
def half() -> str: return "a\\ud800b"
def rows():
    yield "one"
    yield {"n": 1}
    yield {"n": 2}

def sleepy(seconds: float, _context=None) -> str:
    end = time.time() + seconds
    while time.time() < end and not _context.cancelled.is_set():
        time.sleep(0.01)
    return "stopped" if _context["cancelled"].is_set() else "slept"

def where(_context=None) -> str: return _context["workspace"]
def _private() -> str: return "no"
'''


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("leave", ("leave", "SystemExit")),
        ("interrupt", ("KeyboardInterrupt",)),
        ("wrong", ("wrong", "int", "str")),
        ("strange", ("strange", "object")),
        ("binary", ("bytes",)),
        ("heavy", ("list", "too large")),
        ("endless", ("yielded more than",)),
        ("busy", ("yielded more than",)),
    ],
)
def test_failures_are_results(name: str, words: tuple[str, ...], tmp_path: Path) -> None:
    async def whole() -> None:
        async with shelf_of(python_table(tmp_path, SOURCE), tmp_path) as shelf:
            result = await run(shelf, name)
        assert result.failed
        assert result.text.startswith("Error: ")
        assert all(word in result.text for word in words), result.text

    asyncio.run(whole())


def test_results_are_text_json_images_and_pieces(tmp_path: Path) -> None:
    async def whole() -> None:
        async with shelf_of(python_table(tmp_path, SOURCE), tmp_path) as shelf:
            assert (await run(shelf, "shout", {"text": "a", "times": "2"})).content == "AA"
            assert (await run(shelf, "rows")).content == 'one\n{"n":1}\n{"n":2}'
            assert (await run(shelf, "half")).content == "a?b"
            content = (await run(shelf, "picture")).content
            assert isinstance(content, list)
            assert content[0]["image_url"]["url"].startswith("data:image/png;base64,")
            assert shelf.find("dumps") is None
            assert shelf.find("_private") is None

    asyncio.run(whole())


def test_a_secret_of_the_config_and_what_is_too_long_stay_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLS_TEST_KEY", "very-secret")
    web = '[tools.w]\nkind = "http"\nurl = "http://h"\nheaders = { k = "env:TOOLS_TEST_KEY" }\n'
    text = python_table(tmp_path, SOURCE, "max_result = 100") + web

    async def whole() -> None:
        async with shelf_of(text, tmp_path, {"TOOLS_TEST_KEY": "very-secret"}) as shelf:
            assert "the key is ***" in (await run(shelf, "spill")).text
            result = await run(shelf, "long", {"n": 5000})
        assert (result.cut, result.characters) == (True, 5000)
        assert result.text == "x" * 100 + "\n[cut: the first 100 of 5000 characters]"

    asyncio.run(whole())


def test_a_call_ends_in_time_and_its_function_learns_of_it(tmp_path: Path) -> None:
    async def whole() -> None:
        text = python_table(tmp_path, SOURCE, "timeout = 0.1")
        async with shelf_of(text, tmp_path) as shelf:
            began = time.monotonic()
            result = await run(shelf, "sleepy", {"seconds": 5})
        assert result.text == "Error: sleepy timed out after 0.1 s"
        assert time.monotonic() - began < 2

    asyncio.run(whole())


def test_calls_are_counted_in_a_request_and_in_a_minute(tmp_path: Path) -> None:
    more = "calls_per_request = 2\ncalls_per_minute = 3"

    async def whole() -> None:
        async with shelf_of(python_table(tmp_path, SOURCE, more), tmp_path) as shelf:
            one, other = context_of(shelf), context_of(shelf)
            given = {"text": "a"}
            first = [await run(shelf, "shout", given, one) for _ in range(3)]
            assert [result.failed for result in first] == [False, False, True]
            assert "limit" in first[2].text
            second = [await run(shelf, "shout", given, other) for _ in range(2)]
            assert [result.failed for result in second] == [False, True]
            assert "a minute; again in" in second[1].text
            neighbour = await run(shelf, "shout", given, context_of(shelf, "other"))
            assert not neighbour.failed

    asyncio.run(whole())


def test_a_workspace_is_of_one_session_of_one_client(tmp_path: Path) -> None:
    async def whole() -> None:
        async with shelf_of(python_table(tmp_path, SOURCE), tmp_path) as shelf:
            said = [("a", "hi"), ("a", "hi"), ("b", "hi"), ("a", "../..")]
            folders = [
                (await run(shelf, "where", {}, context_of(shelf, client, text))).text
                for client, text in said
            ]
        assert len(set(folders)) == 3
        assert folders[0] == folders[1]
        assert all(Path(one).parent.parent == tmp_path / "workspaces" for one in folders)

    asyncio.run(whole())


LIVING = """
class Counter:
    def __init__(self, step=1): self.step, self.count = step, 0
    async def start(self): self.started = True
    def save_state(self): return {"count": self.count}
    def load_state(self, state): self.count = state["count"]
    def count_up(self) -> int:
        assert self.started
        self.count += self.step
        return self.count
class Broken:
    def start(self): raise ConnectionError("no database")
    def ask(self): return 1
"""


def test_an_object_lives_as_long_as_the_gateway_and_its_state_longer(tmp_path: Path) -> None:
    more = 'functions = ["Counter", "Broken", "nothing"]\noptions = { step = 2 }'

    async def whole() -> None:
        text = python_table(tmp_path, LIVING, more.replace('"Broken", "nothing"', '"nothing"'))
        for count in ("2", "4"):
            async with shelf_of(text, tmp_path) as shelf:
                assert (await run(shelf, "count_up")).text == count
        broken = python_table(tmp_path, LIVING, 'functions = ["Broken", "nothing"]')
        async with shelf_of(broken, tmp_path) as shelf:
            rows = {row["x_usetool"]["id"]: row["x_usetool"] for row in shelf.listing(None)}
        assert rows["t.Broken"]["reason"] == "made.py, line 12: ConnectionError: no database"
        assert rows["t.nothing"]["reason"] == "there is no 'nothing' in made.py"

    asyncio.run(whole())


def test_what_does_not_load_says_file_and_line(tmp_path: Path) -> None:
    async def whole() -> None:
        async with shelf_of(python_table(tmp_path, "x = 1\ndef half(:\n"), tmp_path) as shelf:
            row = shelf.listing(None)[0]["x_usetool"]
        assert not row["available"]
        assert row["reason"].startswith("made.py, line 2: SyntaxError")

    asyncio.run(whole())


def test_names_are_apart_and_clients_too(tmp_path: Path) -> None:
    one = python_table(tmp_path, SOURCE, 'functions = ["shout"]')
    two = one.replace("[tools.t]", "[tools.two]") + 'clients = ["default"]\n'

    async def whole() -> None:
        async with shelf_of(one + two, tmp_path) as shelf:
            assert [*shelf.offers(["t", "two.*"], "default")] == ["shout", "two_shout"]
            assert [*shelf.offers(["*"], "other")] == ["shout"]
            assert [*shelf.taken(["shout"], ["shout", "mine"], "default")] == ["shout"]

    asyncio.run(whole())
