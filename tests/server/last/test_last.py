"""What was sent: kept for its own client, shown without secrets, repeated by one command."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import orjson
import pytest

from adapters.protocol import Finish
from adapters.receipts import Note
from adapters.wire.capture import MOST, CapturedCall
from middleware.cli.command import FINE
from middleware.server.last.records import MOST_BYTES, Records
from middleware.server.visits import Visit
from tests.server.last.kept import (
    AGENT_RUN,
    BODY_KEY,
    DEMO,
    ENVIRONMENT,
    HEADER,
    OTHER_KEY,
    SERVER_KEY,
    STRAY_KEY,
    TEXT,
    UPSTREAM_KEY,
    line,
    refusing,
)
from tests.support.day_one import Json, Running, Seen, answering, completion, failure, running
from tests.support.upstreams.loopback import loopback

CANARIES = (SERVER_KEY, OTHER_KEY, UPSTREAM_KEY, HEADER, BODY_KEY, STRAY_KEY)


def identity(answer: Json) -> str:
    said: str = answer["error"]["message"]
    return said.rpartition("(request id ")[2].rstrip(")")


def gateway_file(folder: Path, up: str, gateway: Running) -> str:
    """The config as the person at the terminal has it."""
    port = gateway.url.rpartition(":")[2]
    path = folder / "config.toml"
    path.write_text(TEXT.replace("URL", up).replace("[server]", f"[server]\nport = {port}"))
    return str(path)


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


@pytest.mark.parametrize("sizes", [[10_000] * 100, [MOST - 1, 3_000_000], [3_000_000]])
def test_of_a_long_answer_only_the_beginning_is_kept(sizes: list[int]) -> None:
    contact = CapturedCall("up", "http://up", {}, (), None, b"")
    for size in sizes:
        contact.heard(b"x" * size)
    assert contact.size == sum(sizes)
    assert sum(map(len, contact.pieces)) == contact.kept == MOST


@pytest.mark.parametrize("recorded", [False, True])
def test_who_goes_while_it_is_answered_holds_nothing_unless_it_is_recorded(recorded: bool) -> None:
    records = Records(1)
    first = records.begin(Visit("req_1", 0.0))
    assert first is not None
    first.body, first.calls.whole = b"asked", recorded
    calls = [first.calls.begin(CapturedCall("up", "http://up", {}, (), None, b"sent"))]
    calls[0].heard(b"one")
    records.begin(Visit("req_2", 0.0))
    calls.append(first.calls.begin(CapturedCall("up", "http://up", {}, (), None, b"again")))
    for call in calls:
        call.heard(b"two")
    held = [(call.body, call.pieces) for call in calls]
    assert first.body == b""
    if recorded:
        assert held == [(b"sent", [b"one", b"two"]), (b"again", [b"two"])]
    else:
        assert held == [(b"", []), (b"", [])]
