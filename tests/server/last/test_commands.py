"""The commands that repeat a request, and what is shown: no shell, no terminal is steered."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import orjson
import pytest

from middleware.__main__ import main
from middleware.cli.command import FINE, LACKING
from middleware.server.last.reports import curl
from middleware.server.terminal import visible
from tests.server.last.kept import AGENT_RUN, DEMO, ENVIRONMENT, SERVER_KEY, TEXT, line, refusing
from tests.support.day_one import Json, Seen, answering, failure, running
from tests.support.upstreams.loopback import loopback


def test_a_command_survives_quotes_and_shell_words() -> None:
    body = """{"a":"it's $HOME `id` \\"x\\" !"}"""
    script = curl("http://127.0.0.1:1/x", {"a": 'b"c`d'}, body).replace("curl -sS -N", "cat #")
    done = subprocess.run(
        ["sh", "-c", "cat " + script[script.index("<<") :]],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == body + "\n"


STRANGE = (
    "x\nUSETOOL_BODY\ntouch broken\n",
    "'; touch broken; '\n$(touch broken) `touch broken`\n\"; touch broken; \"\n",
    "x\nEOF\ntouch broken\n\\\ntouch broken\n",
    "x\nUSETOOL_\x00BODY\ntouch broken\n\x1b[2J\x9b31m\x7f\u202e\u200b\U000e0041\r\n",
)


@pytest.mark.parametrize("body", STRANGE)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_no_body_runs_anything_in_the_shell_of_who_repeats_it(
    body: str, shell: str, tmp_path: Path
) -> None:
    if (found := shutil.which(shell)) is None:
        pytest.skip(f"no {shell} here")
    script = curl(f"http://127.0.0.1:1/'{body[:9]}", {"a": body}, body, body)
    for run in (script, script.replace("USETOOL_BODY", "EOF")):
        told = subprocess.run(
            [found], input=run.replace("curl -sS", "printf", 1), cwd=tmp_path,
            env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert not [*tmp_path.iterdir()], told
    assert script.isprintable() or set(filter(lambda x: not x.isprintable(), script)) == {"\n"}


def test_two_commands_end_their_bodies_each_in_its_own_way() -> None:
    one, two = (curl("http://127.0.0.1:1/x", {}, "{}").splitlines()[-1] for _ in range(2))
    assert one != two


def test_what_is_shown_steers_no_terminal() -> None:
    escapes = "".join(
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ).replace("\n", "").replace("\t", "")  # fmt: skip
    for character in escapes:
        assert visible(character).isascii(), hex(ord(character))
        assert visible(character).isprintable()
    kept = "a\tb\nc äöü 你好，世界\u3000（全角） 👩 e\u0301 नमस्ते עברית"
    assert visible(kept) == kept
    # Inside a JSON text it still means the same.
    assert orjson.loads(visible(json.dumps({"a": "\x9b\U000e0041\u202e"}, ensure_ascii=False))) == {
        "a": "\x9b\U000e0041\u202e"
    }


def test_escapes_of_a_body_reach_no_terminal_by_any_command(tmp_path: Path) -> None:
    async def run() -> None:
        def failing(path: str, head: str, body: Json) -> tuple[str, bytes]:
            return "400 Bad Request", failure("no \x1b]0;x\x07\x9b31m\u202e way")

        async with (
            loopback(answering(Seen(), failing)) as up,
            running(TEXT.replace("URL", up.url), ENVIRONMENT) as gateway,
        ):
            asked = {"model": "agent", "messages": [{"role": "user", "content": "\x9b\u202e\x7f"}]}
            await gateway.chat(asked, SERVER_KEY)
            path = str(tmp_path / "config.toml")
            (tmp_path / "config.toml").write_text(DEMO)
            place = ("--config", path, "--url", gateway.url, "--key", SERVER_KEY)
            code, listed = await line("last", *place)
            assert code == FINE
            name = listed.split()[0]
            for more in ((), ("--curl",)):
                code, said = await line("last", name, *more, *place)
                assert code == FINE
                assert "\\u202e" in said
                assert not [one for one in said if not (one.isprintable() or one == "\n")]

    asyncio.run(run())


def test_last_says_that_no_gateway_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[server]\nport = 9\n{DEMO}")
    assert main(["last", "--config", str(path)]) == LACKING
    said = capsys.readouterr().err
    assert "cannot be reached" in said
    assert "Start it: usetool serve" in said


def test_a_kept_failure_keeps_nothing_alive_of_where_it_was_raised() -> None:
    async def run() -> None:
        async with (
            loopback(answering(Seen(), refusing)) as up,
            running(TEXT.replace("URL", up.url), ENVIRONMENT) as gateway,
        ):
            await gateway.chat(AGENT_RUN, SERVER_KEY)
            (record,) = gateway.app.chat.records.of(None)
            error = record.visit.error
            assert error is not None
            assert (error.__traceback__, error.__cause__, error.__context__) == (None, None, None)

    asyncio.run(run())
