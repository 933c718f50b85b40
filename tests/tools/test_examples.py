"""The examples of `examples/tools`, as the config of the project names them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.tools.shelves import context_of, run, shelf_of

DESK = f"""
[tools.desk]
kind = "python"
module = "{ROOT}/examples/tools"
functions = ["clock:*", "units:*", "calculator:*", "notes:*"]
timeout = 10
"""
TOKYO = {"time": "2026-05-01T10:00", "source": "Europe/Berlin", "target": "Asia/Tokyo"}


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("convert", TOKYO, "Friday, 2026-05-01 17:00 JST"),
        (
            "convert",
            TOKYO | {"target": "../x"},
            "Error: convert: ValueError: there is no time zone",
        ),
        ("convert_unit", {"value": "100", "source": "km", "target": "mi"}, "62.13711922373339"),
        ("convert_unit", {"value": 20, "source": "C", "target": "F"}, "68.0"),
        ("convert_unit", {"value": 1, "source": "C", "target": "kg"}, "Error: convert_unit: Value"),
        ("calculate", {"sum": "(3 + 4) * sqrt(16) ** 2 / -2"}, "-56.0"),
        ("calculate", {"sum": "round(2 / 3, 2)"}, "0.67"),
        ("calculate", {"sum": "round(5, -100000000)"}, "0"),
        ("calculate", {"sum": "9 ** 9 ** 9"}, "Error: calculate: ValueError: the power is too"),
        ("calculate", {"sum": "__import__('os').getcwd()"}, "Error: calculate: ValueError: this"),
        ("calculate", {"sum": "1; 2"}, "Error: calculate: SyntaxError"),
        ("write_note", {"title": "../x", "text": ""}, "Error: write_note: ValueError: a title is"),
        ("read_note", {"title": "none"}, "Error: read_note: LookupError: there is no note 'none'"),
    ],
)
def test_an_example_says(name: str, arguments: object, said: str, tmp_path: Path) -> None:
    async def whole() -> None:
        async with shelf_of(DESK, tmp_path) as shelf:
            assert (await run(shelf, name, arguments)).text.startswith(said)

    asyncio.run(whole())


def test_notes_stay_in_their_conversation(tmp_path: Path) -> None:
    async def whole() -> None:
        async with shelf_of(DESK, tmp_path) as shelf:
            mine, other = context_of(shelf, "a"), context_of(shelf, "b")
            note = {"title": "购物", "text": "milk"}
            assert (await run(shelf, "write_note", note, mine)).text == "kept"
            assert (await run(shelf, "read_note", {"title": "购物"}, mine)).text == "milk"
            assert (await run(shelf, "list_notes", {}, mine)).text == '["购物"]'
            assert (await run(shelf, "list_notes", {}, other)).text == "[]"

    asyncio.run(whole())
