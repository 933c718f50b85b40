"""What was used, as clients and operators are told."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from middleware.accounts.ledger.rows import row_of
from middleware.accounts.ledger.sqlite import SqliteBook
from middleware.accounts.usage import UsageQuestion, usage_of
from middleware.cli.parser import run
from tests.accounts.counting import KEY, counting, until, visit
from tests.support.door import Door, Heard, chat

ADMIN = '[clients.root]\nkey = "R"\nadmin = true\n'
ROOT = ("authorization", "Bearer R")
BETA = ("authorization", "Bearer B")


def play(path: Path, client: str, script: Callable[[Door], Awaitable[None]]) -> None:
    async def kept() -> None:
        door = counting(client, ADMIN, path / "ledger.db")
        ledger = door.app.chat.accounts.ledger
        assert ledger is not None
        await ledger.start()
        try:
            await script(door)
        finally:
            await ledger.close()

    asyncio.run(kept())


async def usage(door: Door, key: tuple[str, str], query: str = "") -> Heard:
    return await door.ask(method="GET", path=f"/v1/usage{query}", headers=[key])


async def settled(door: Door) -> None:
    ledger = door.app.chat.accounts.ledger
    assert ledger is not None
    await until(lambda: ledger.pending == 0)


def test_a_client_sees_its_own_and_an_admin_everything(tmp_path: Path) -> None:
    async def script(door: Door) -> None:
        for key, model in ((KEY, "demo"), (KEY, "demo"), (KEY, "other"), (BETA, "demo")):
            assert (await door.ask(chat(model), headers=[key])).status == 200
        await settled(door)
        own = (await usage(door, BETA, "?by=client")).json()
        assert [one["client"] for one in own["data"]] == ["beta"]
        assert own["total"]["requests"] == 1
        assert "budget" not in own
        everything = (await usage(door, ROOT, "?by=client")).json()
        assert {one["client"]: one["requests"] for one in everything["data"]} == {
            "alpha": 3,
            "beta": 1,
        }
        models = (await usage(door, KEY)).json()
        assert [(one["model"], one["requests"]) for one in models["data"]] == [
            ("demo", 2),
            ("other", 1),
        ]
        first, second = models["data"]
        assert first["cost"] == (first["prompt_tokens"] + 3 * first["completion_tokens"]) / 1e6
        assert (second["cost"], second["completion_tokens"] > 0) == (0, True)

    play(tmp_path, "", script)


def test_a_budget_is_told_to_whom_it_is_of(tmp_path: Path) -> None:
    async def script(door: Door) -> None:
        heard = await door.ask(chat("demo"), headers=[KEY])
        spent = float(heard.headers["x-usetool-cost"])
        budget = (await usage(door, KEY)).json()["budget"]
        assert budget == {"limit": 5, "spent": spent, "period": "total", "resets": None}
        assert await door.app.chat.accounts.spent(door.app.chat.runtime.config) == {
            ("alpha",): spent
        }

    play(tmp_path, 'budget = "5 USD/total"', script)


def test_a_question_that_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    async def script(door: Door) -> None:
        for query, param in (("?by=moon", "by"), ("?from=today", "from"), ("?to=2026-1", "to")):
            heard = await usage(door, KEY, query)
            assert (heard.status, heard.error()["param"]) == (400, param)
        assert (await usage(door, ("authorization", "Bearer X"))).status == 401

    play(tmp_path, "", script)


def test_without_a_ledger_it_says_so() -> None:
    async def script() -> None:
        heard = await usage(counting(), KEY)
        assert (heard.status, heard.error()["code"]) == (404, "ledger_off")

    asyncio.run(script())


def test_metrics_are_for_admins() -> None:
    async def script() -> None:
        door = counting(more=ADMIN)
        for key, status in ((KEY, 403), (ROOT, 200)):
            heard = await door.ask(method="GET", path="/metrics", headers=[key])
            assert heard.status == status
        (line,) = door.lines()
        assert line["client"] != "default"  # who was refused is told

    asyncio.run(script())


def test_an_admin_sees_the_requests_of_all() -> None:
    async def script() -> None:
        door = counting(more=ADMIN)
        await door.ask(chat("demo"), headers=[KEY])
        for key, count in ((KEY, 1), (BETA, 0), (ROOT, 1)):
            heard = await door.ask(method="GET", path="/v1/x_usetool/last", headers=[key])
            assert len(heard.json()["data"]) == count

    asyncio.run(script())


def test_days_are_utc_and_the_last_one_counts(tmp_path: Path) -> None:
    book = SqliteBook(tmp_path / "ledger.db")
    assert usage_of(book, UsageQuestion())["total"]["requests"] == 0
    book.write([row_of(visit(), 1.0, time.time())])
    book.close()
    today, day = datetime.now(UTC).date(), timedelta(days=1)
    for since, until_day, count in (
        (None, None, 1),
        (today, today, 1),
        (today + day, None, 0),
        (None, today - day, 0),
        (date(2020, 1, 1), None, 1),
    ):
        found = usage_of(book, UsageQuestion("day", since, until_day))
        assert found["total"]["requests"] == count


@pytest.mark.parametrize("options", [[], ["--by", "client"], ["--json"]])
def test_the_command_says_the_same(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = SqliteBook(tmp_path / "ledger.db")
    found = visit()
    found.cost = 0.25
    book.write([row_of(found, 1.0, time.time())])
    book.close()
    config = tmp_path / "config.toml"
    config.write_text(
        f'[ledger]\nurl = "sqlite:///{tmp_path}/ledger.db"\n'
        '[upstreams.s]\nkind = "scripted"\n[models.demo]\nupstream = "s"\n'
    )
    assert run(["usage", "--config", str(config), *options]) == 0
    said = capsys.readouterr().out
    if "--json" in options:
        told: dict[str, Any] = json.loads(said)
        assert told["data"][0]["model"] == "demo"
        assert told["total"]["cost"] == 0.25
    else:
        head, row, total = said.splitlines()
        assert head.split()[:2] == ["client" if options else "model", "requests"]
        assert row.split()[:2] == ["alpha" if options else "demo", "1"]
        assert total.split()[-1] == "0.250000"


def test_a_day_that_is_none_is_refused_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["usage", "--from", "yesterday"])
    assert "'yesterday' has to be a day such as" in capsys.readouterr().err
