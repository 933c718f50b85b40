"""What was sent: kept for its own client, shown without secrets, repeated by one command."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import unicodedata
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import orjson
import pytest

from adapters.protocol import Finish, Note
from adapters.wire.capture import MOST, CapturedCall
from middleware.__main__ import main
from middleware.cli.common import FINE, LACKING
from middleware.server.last.records import MOST_BYTES, Records
from middleware.server.last.reports import curl
from middleware.server.telemetry import Visit
from middleware.server.terminal import visible
from tests.support.day_one import Json, Running, Seen, answering, completion, failure, running
from tests.support.upstreams.loopback import loopback

SERVER_KEY, OTHER_KEY = "gate-canary-1111", "gate-canary-2222"
UPSTREAM_KEY, HEADER, PROXY_WORD = "up-canary-3333", "head-canary-4444", "word-canary-5555"
BODY_KEY, STRAY_KEY = "body-canary-6666", "sk-stray-canary-7777"
CANARIES = (SERVER_KEY, OTHER_KEY, UPSTREAM_KEY, HEADER, BODY_KEY, STRAY_KEY)
ENVIRONMENT = {"GATE": SERVER_KEY, "GATE2": OTHER_KEY, "UP_KEY": UPSTREAM_KEY, "UP_HEAD": HEADER}
TEXT = """
[server]
keys = ["env:GATE", "env:GATE2"]
[upstreams.relay]
kind = "compatible"
base_url = "URL/v1"
api_key = "env:UP_KEY"
headers = { x-team-token = "env:UP_HEAD" }
[models.agent]
upstream = "relay"
name = "relay-model"
tools = "native"
"""
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
AGENT_RUN: Json = {
    "model": "agent",
    "messages": [
        {"role": "user", "content": f"it's my key: {STRAY_KEY}"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "look", "arguments": "{}"},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "$(echo no) `no` 5'11\""},
    ],
    "tools": [TOOL],
    "api_key": BODY_KEY,
}


def refusing(path: str, head: str, body: Json) -> tuple[str, bytes]:
    words = f"messages.2: no; your key {UPSTREAM_KEY} was {HEADER}"
    return "400 Bad Request", failure(words)


def identity(answer: Json) -> str:
    said: str = answer["error"]["message"]
    return said.rpartition("(request id ")[2].rstrip(")")


def gateway_file(folder: Path, up: str, gateway: Running) -> str:
    """The config as the person at the terminal has it."""
    port = gateway.url.rpartition(":")[2]
    path = folder / "config.toml"
    path.write_text(TEXT.replace("URL", up).replace("[server]", f"[server]\nport = {port}"))
    return str(path)


async def line(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    with redirect_stdout(out):
        code = await asyncio.to_thread(main, arguments)
    return code, out.getvalue()


def test_a_400_in_an_agent_run_is_explained_and_repeated_from_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("USETOOL_KEY", SERVER_KEY)

    async def run() -> None:
        seen = Seen()
        async with (
            loopback(answering(seen, refusing)) as up,
            running(TEXT.replace("URL", up.url), ENVIRONMENT) as gateway,
        ):
            status, answer = await gateway.chat(AGENT_RUN, SERVER_KEY)
            assert status == 400
            name = identity(answer)
            path = gateway_file(tmp_path, up.url, gateway)
            code, shown = await line("last", name, "--config", path)
            assert code == FINE
            assert "relay-model" in shown  # the upstream's body
            assert '"model": "agent"' in shown  # the client's
            assert "messages.2: no" in shown  # the answer
            assert "status 400" in shown
            code, commands = await line("last", name, "--curl", "--config", path)
            assert not [canary for canary in CANARIES if canary in shown + commands]
            client, upstream = commands.split("\n\n# what upstream")
            sent = seen.bodies("/v1/chat/completions")[0]
            for script in (client, "# " + upstream):
                done = await asyncio.to_thread(
                    subprocess.run, ["sh", "-c", script], capture_output=True, text=True
                )
                assert "messages.2: no" in done.stdout, done.stderr
            again = seen.bodies("/v1/chat/completions")[1:]
            assert len(again) == 2
            blotted = orjson.dumps(sent).decode()
            for canary in (STRAY_KEY, BODY_KEY):
                blotted = blotted.replace(canary, "[secret]")
            assert again[1] == orjson.loads(blotted)
            assert f"bearer {UPSTREAM_KEY}" in seen.requests[2][1]
            _, listed = await line("last", "--config", path)
            assert listed.count("req_") == 2
            assert "upstream_bad_request" in listed
            code, planned = await line("explain", "--id", name, "--config", path)
            assert code == FINE
            assert "1. relay: POST" in planned

    asyncio.run(run())


def test_a_request_is_shown_to_its_own_client_only() -> None:
    async def run() -> None:
        async with (
            loopback(answering(Seen(), refusing)) as up,
            running(TEXT.replace("URL", up.url), ENVIRONMENT) as gateway,
        ):
            _, answer = await gateway.chat(AGENT_RUN, SERVER_KEY)
            name = identity(answer)
            where = f"/v1/x_usetool/last/{name}"
            assert (await gateway.get(where, SERVER_KEY))[0] == 200
            assert (await gateway.get(where, OTHER_KEY))[0] == 404
            assert (await gateway.get("/v1/x_usetool/last", OTHER_KEY))[1]["data"] == []
            for key in ("", "wrong"):
                assert (await gateway.get(where, key))[0] == 401
                assert (await gateway.get("/v1/x_usetool/last", key))[0] == 401

    asyncio.run(run())


DEMO = '[upstreams.demo]\nkind = "scripted"\n[models.demo]\nupstream = "demo"\n'
ALLOWED = '[server]\nhosts = ["gateway.example"]\ncors_origins = ["https://page.example"]\n'
HELLO: Json = {"model": "demo", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("headers", "seen"),
    [
        ({}, 1),
        ({"x-forwarded-for": "10.0.0.9"}, 0),
        ({"origin": "https://page.example"}, 0),
        ({"host": "gateway.example:8000"}, 0),
        ({"host": "localhost:8000"}, 1),
        ({"authorization": "Bearer another"}, 0),
        ({"authorization": "Bearer none"}, 1),
    ],
)
def test_without_keys_the_owner_of_the_machine_sees_everything_and_nobody_else(
    headers: dict[str, str], seen: int
) -> None:
    async def run() -> None:
        async with running(DEMO + ALLOWED) as gateway:
            await gateway.chat(HELLO, "none")
            _, listed = await gateway.get("/v1/x_usetool/last", **headers)
            assert len(listed["data"]) == seen

    asyncio.run(run())


CLAUDE = """
[upstreams.up]
kind = "claude"
base_url = "URL"
api_key = "k"
[models.m]
upstream = "up"
name = "claude-sonnet-4-5"
retry = 0
"""
MESSAGE: Json = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def test_a_request_that_failed_upstream_has_the_receipt_of_one_that_did_not() -> None:
    lossy = {"seed": 1, "frequency_penalty": 0.5, "logit_bias": {"5": 1}, "user": "u"}
    answers = [("200 OK", orjson.dumps(MESSAGE)), ("500 No", failure("no"))]

    async def run() -> None:
        replies = iter(answers)
        async with (
            loopback(answering(Seen(), lambda *_: next(replies))) as up,
            running(CLAUDE.replace("URL", up.url)) as gateway,
        ):
            statuses = [(await gateway.chat({**HELLO, "model": "m", **lossy}))[0] for _ in answers]
            assert statuses == [200, 500]
            _, listed = await gateway.get("/v1/x_usetool/last")
            receipts = []
            for one in listed["data"]:
                _, kept = await gateway.get(f"/v1/x_usetool/last/{one['id']}")
                receipts.append(kept["receipt"])
            assert receipts[0] == receipts[1]
            assert len(receipts[0]) >= 3

    asyncio.run(run())


def test_the_id_of_an_answer_finds_its_request() -> None:
    async def run() -> None:
        async with running(DEMO) as gateway:
            _, answer = await gateway.chat(HELLO)
            status, one = await gateway.get(f"/v1/x_usetool/last/{answer['id']}")
            assert status == 200
            assert orjson.loads(one["body"]) == HELLO
            assert one["calls"] == []
            assert one["finish"] == "stop"

    asyncio.run(run())


def test_a_stream_is_kept_frame_by_frame_with_its_times() -> None:
    async def run() -> None:
        async with (
            loopback(answering(Seen(), lambda *_: ("200 OK", completion("kept")))) as up,
            running(TEXT.replace("URL", up.url), ENVIRONMENT) as gateway,
        ):
            await gateway.chat({**AGENT_RUN, "stream": False}, SERVER_KEY)
            _, listed = await gateway.get("/v1/x_usetool/last", SERVER_KEY)
            where = f"/v1/x_usetool/last/{listed['data'][0]['id']}"
            _, one = await gateway.get(where, SERVER_KEY)
        (call,) = one["calls"]
        assert call["answer"] == completion("kept").decode()
        assert 0 <= call["headers_after"] <= call["ended_after"] <= one["seconds"] + 1
        assert call["status"] == 200

    asyncio.run(run())


@pytest.mark.parametrize(
    ("server", "count"),
    [
        ("", 50),
        ("keep_last = 3", 3),
        ("keep_last = 0", 0),
        ('host = "0.0.0.0"\nkeys = ["k"]', 0),
        ('host = "0.0.0.0"\nkeys = ["k"]\nkeep_last = 9', 9),
    ],
)
def test_fifty_are_kept_on_this_machine_and_none_elsewhere_unless_said(
    server: str, count: int
) -> None:
    from middleware import config

    found = config.parse(f"[server]\n{server}\n{DEMO}", environment={})
    assert found.server.keep_last == count


def test_the_oldest_go_first_by_number_and_by_size() -> None:
    records = Records(3)
    kept = [records.begin(Visit(f"req_{number}", 0.0)) for number in range(5)]
    assert [one.visit.id for one in records.of(None)] == ["req_4", "req_3", "req_2"]
    for one in kept:
        assert one is not None
        one.body = b"x" * (MOST_BYTES // 2)
        records.end(one.visit, 1.0)
    assert [one.visit.id for one in records.of(None)] == ["req_4", "req_3"]
    assert Records(0).begin(Visit("req_0", 0.0)) is None


def test_what_was_said_of_a_request_counts_and_an_answer_is_not_kept_with_it() -> None:
    records = Records(50)
    turn = {"role": "assistant", "content": "a" * 1_000_000}
    for number in range(20):
        visit = Visit(f"req_{number}", 0.0, finish=Finish("stop", turn=turn))
        visit.receipt = (Note("parameter_dropped", "x" * (MOST_BYTES // 4), "t"),)
        records.begin(visit)
        records.end(visit, 1.0)
    kept = list(records.of(None))
    assert [one.visit.id for one in kept] == ["req_19", "req_18", "req_17"]
    assert [one.visit.finish for one in kept] == [Finish("stop")] * 3


def test_of_a_long_answer_only_the_beginning_is_kept() -> None:
    contact = CapturedCall("up", "http://up", {}, (), None, b"")
    for _ in range(100):
        contact.heard(b"x" * 10_000)
    assert contact.size == 1_000_000
    assert sum(map(len, contact.pieces)) < MOST + 10_000


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
    assert "cannot be reached" in capsys.readouterr().err


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
