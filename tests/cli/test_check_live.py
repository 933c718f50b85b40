"""`usetool check --live`: names what is wrong with each upstream, and the line to write."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from middleware import config
from middleware.cli import describe
from middleware.cli import live_check as probing
from middleware.cli.live_check import Finding
from tests.support.day_one import Json, Reply, Seen, answering, completion, failure
from tests.support.paths import ROOT
from tests.support.upstreams.loopback import Peer, loopback

KEY = "sk-ant-canary-0123456789"
WEATHER: Json = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}},
}


def probed(text: str, environment: Mapping[str, str] | None = None) -> dict[str, Finding]:
    found = config.parse(text, environment={"KEY": KEY, **(environment or {})})
    return {one.upstream: one for one in asyncio.run(probing.probe(found, environment or {}))}


def upstream(reply: Callable[[str, str, Json], Reply], text: str) -> Finding:
    """Probe one upstream that answers so."""

    async def run() -> list[Finding]:
        async with loopback(answering(Seen(), reply)) as up:
            found = config.parse(text.replace("URL", up.url), environment={"KEY": KEY})
            return await probing.probe(found, {})

    (one,) = asyncio.run(run())
    return one


RELAY = """
[upstreams.relay]
kind = "compatible"
base_url = "URL/v1"
api_key = "env:KEY"
[models.small]
upstream = "relay"
name = "tiny-1"
tools = "native"
"""


def lists(path: str) -> Reply | None:
    if path.endswith("/models"):
        return "200 OK", orjson.dumps({"data": [{"id": "tiny-2"}, {"id": "big"}]})
    return None


def well(path: str, head: str, body: Json) -> Reply:
    return lists(path) or ("200 OK", completion())


def no_such_model(path: str, head: str, body: Json) -> Reply:
    return lists(path) or ("404 Not Found", failure("The model `tiny-1` does not exist"))


def wrong_key(path: str, head: str, body: Json) -> Reply:
    return "401 Unauthorized", failure("invalid key")


def no_tools(path: str, head: str, body: Json) -> Reply:
    if "tools" in body:
        return "400 Bad Request", failure("tiny-1 does not support tools")
    return "200 OK", completion()


def below_v1(path: str, head: str, body: Json) -> Reply:
    if path.startswith("/v1/"):
        return "200 OK", completion()
    return "404 Not Found", failure("no such path")


def nothing_there(path: str, head: str, body: Json) -> Reply:
    return "404 Not Found", b"<html>404 page not found</html>"


def silent_about_models(path: str, head: str, body: Json) -> Reply:
    return lists(path) or ("404 Not Found", b'{"detail": "Not Found"}')


@pytest.mark.parametrize(
    ("reply", "text", "verdict", "advice"),
    [
        (well, RELAY, "answers, and takes tools", ""),
        (no_such_model, RELAY, "unknown model", "Did you mean 'tiny-2'? It has: tiny-2, big"),
        (wrong_key, RELAY, "wrong key", "into the variable KEY"),
        (
            wrong_key,
            RELAY.replace('api_key = "env:KEY"\n', ""),
            "wrong key",
            'write api_key = "env:NAME" under [upstreams.relay]',
        ),
        (no_tools, RELAY, "does not support tools", 'tools = "emulated" under [models."small"]'),
        (no_tools, RELAY.replace('tools = "native"\n', ""), "makes them by prompt", ""),
        (below_v1, RELAY.replace("URL/v1", "URL"), "wrong path", '/v1" under [upstreams.relay]'),
        (below_v1, RELAY.replace("URL/v1", "URL/api/v2"), "wrong path", '/v1" under [upstreams.'),
        (nothing_there, RELAY, "/v1/chat/completions: ", "base_url = (now http://127.0.0.1:"),
        (silent_about_models, RELAY, "unknown model", "Did you mean 'tiny-2'? It has: tiny-2"),
        (
            well,
            RELAY.replace("models.small", 'models."r/*"').replace("tiny-1", "*"),
            "answers, and takes tools",
            "",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_what_to_do(
    reply: Callable[[str, str, Json], Reply], text: str, verdict: str, advice: str
) -> None:
    found = upstream(reply, text)
    assert verdict in found.verdict
    assert "\n" not in found.verdict
    assert advice in found.advice
    assert bool(found.advice) != found.well
    assert KEY not in describe.findings([found])
    assert "check --live" not in found.verdict


def several(count: int) -> str:
    models = [f'[models.m{n}]\nupstream = "relay"\nname = "tiny-{n}"\n' for n in range(count)]
    return RELAY.partition("[models")[0] + "".join(models)


async def asked_all(
    text: str, reply: Callable[[str, str, Json], Reply], slowly: float = 0.0
) -> tuple[list[Finding], int, int]:
    """What is found, how many were asked, and how many at once at most."""
    seen, most, now = Seen(), 0, 0
    plain = answering(seen, reply)

    async def behave(peer: Peer) -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(slowly)
        try:
            await plain(peer)
        finally:
            now -= 1

    async with loopback(behave) as up:
        found = config.parse(text.replace("URL", up.url), environment={"KEY": KEY})
        findings = await probing.probe(found, {})
    return findings, len(seen.bodies("/v1/chat/completions")), most


def only_even(path: str, head: str, body: Json) -> Reply:
    if int(body.get("model", "tiny-0").removeprefix("tiny-")) % 2:
        return no_such_model(path, head, body)
    return well(path, head, body)


def test_every_model_of_an_upstream_is_asked() -> None:
    found, _, _ = asyncio.run(asked_all(several(4), only_even))
    assert [one.model for one in found] == ["m0", "m1", "m2", "m3"]
    assert [one.well for one in found] == [True, False, True, False]
    assert "unknown model" in found[3].verdict


def test_only_so_many_are_asked_side_by_side_and_altogether() -> None:
    found, asked, most = asyncio.run(asked_all(several(30), well, slowly=0.05))
    assert asked == 20
    assert most <= 4
    assert found[-1].verdict == "and 10 more were not asked"


def test_what_is_wrong_with_an_upstream_is_told_once() -> None:
    found, asked, _ = asyncio.run(asked_all(several(9), wrong_key))
    assert [one.model for one in found] == ["m0"]
    assert asked == 2  # the other way to send a key is tried


def test_an_upstream_that_is_away_is_told_from_one_that_refuses() -> None:
    found = probed(RELAY.replace("URL", "http://127.0.0.1:9"))["relay"]
    assert found.verdict.startswith("unreachable: ")
    assert not found.well


def test_an_ollama_that_is_away_can_be_started() -> None:
    text = '[upstreams.o]\nkind = "ollama"\nbase_url = "http://127.0.0.1:9"\n[models."o/*"]\n'
    found = probed(f'{text}upstream = "o"\nname = "*"\n')["o"]
    assert "ollama serve" in found.advice


def test_keys_of_clients_are_not_asked_with() -> None:
    text = RELAY.replace("URL", "http://127.0.0.1:9").replace('"env:KEY"', '"client"')
    assert probed(text)["relay"].well


# Behind a proxy, and at a relay ----------------------------------------------------------------


def bearer_only(path: str, head: str, body: Json) -> Reply:
    if f"authorization: bearer {KEY}" not in head:
        return "401 Unauthorized", failure("no token")
    return claude(path, head, body)


def claude(path: str, head: str, body: Json) -> Reply:
    block = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    said = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [block],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "output_tokens": 5},
    }
    return "200 OK", orjson.dumps(said)


@asynccontextmanager
async def serving(behave: Callable[[Peer], Any], **options: Any) -> AsyncIterator[int]:
    """A server on loopback; yields its port."""
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await behave(Peer(reader, writer, asyncio.Event()))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def tunnel(port: Callable[[], int], asked: list[str]) -> Callable[[Peer], Any]:
    """A CONNECT proxy behind which there is only one host."""

    async def behave(peer: Peer) -> None:
        head, _ = await peer.request()
        asked.append(head.split("\r\n")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port())
        await peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with suppress(ConnectionError):
                while data := await source.read(1 << 16):
                    sink.write(data)
                    await sink.drain()
                sink.close()

        await asyncio.gather(pump(peer.reader, writer), pump(reader, peer.writer))

    return behave


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """One for claude.test that nobody else trusts."""
    key, chain = folder / "key.pem", folder / "chain.pem"
    extensions = (
        "subjectAltName=DNS:claude.test",
        "keyUsage=critical,digitalSignature,keyCertSign",
    )
    command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=claude.test"]
    command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += [word for extension in extensions for word in ("-addext", extension)]
    subprocess.run([*command, "-keyout", key, "-out", chain], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    return chain, context


BOTH = """
[server]
port = PORT
[recall]
store = "off"
[upstreams.anthropic]
kind = "claude"
base_url = "https://claude.test:SECURE"
api_key = "env:KEY"
[upstreams.relay]
kind = "claude"
base_url = "http://127.0.0.1:RELAY"
api_key = "env:KEY"
[models.far]
upstream = "anthropic"
name = "claude-sonnet-4-5"
[models.near]
upstream = "relay"
name = "claude-sonnet-4-5"
"""


async def usetool(environment: Mapping[str, str], *arguments: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "middleware", *arguments,
        cwd=ROOT, env=environment, stdout=-1, stderr=-1,
    )  # fmt: skip
    out, err = await process.communicate()
    return process.returncode, out.decode() + err.decode()


# Only a TLS upstream has a proxy asked for CONNECT; no package we test with makes certificates.
@pytest.mark.skipif(
    shutil.which("openssl") is None,
    reason="no openssl here to make the fake upstream's certificate",
)
def test_check_prints_the_lines_a_proxy_and_a_relay_need_and_with_them_tools_are_called(
    tmp_path: Path,
) -> None:
    chain, context = certificate(tmp_path)
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    async def run() -> None:
        far, near = Seen(), Seen()
        async with (
            serving(answering(far, claude), ssl=context) as secure,
            serving(answering(near, bearer_only)) as relay,
            serving(tunnel(lambda: secure, asked)) as proxy,
        ):
            environment = {**os.environ, "KEY": KEY, "SSL_CERT_FILE": str(chain)}
            environment |= {"HTTPS_PROXY": f"http://127.0.0.1:{proxy}"}
            text = BOTH.replace("SECURE", str(secure)).replace("RELAY", str(relay))
            path = tmp_path / "config.toml"
            path.write_text(text.replace("PORT", str(port)))
            code, said = await usetool(environment, "check", "--live", "--config", str(path))
            assert code == 1
            missing = 'write proxy = "env:HTTPS_PROXY" under [upstreams.anthropic]'
            assert missing in said
            assert 'write auth = "bearer" under [upstreams.relay]' in said
            assert "HTTPS_PROXY is set, but" in said
            assert KEY not in said
            fixed = path.read_text()
            for name, line in (
                ("anthropic", 'proxy = "env:HTTPS_PROXY"'),
                ("relay", 'auth = "bearer"'),
            ):
                fixed = fixed.replace(f"[upstreams.{name}]", f"[upstreams.{name}]\n{line}")
            path.write_text(fixed)
            code, said = await usetool(environment, "check", "--live", "--config", str(path))
            assert (code, said.count("answers, and takes tools")) == (0, 2), said
            asked.clear()
            far.requests.clear()
            await call_tools(environment, path, port)
            assert asked == [f"connect claude.test:{secure} http/1.1"]
            assert len(far.requests) == 1

    asyncio.run(run())


async def call_tools(environment: Mapping[str, str], path: Path, port: int) -> None:
    """Serve the config, and have both models call a tool."""
    import aiohttp

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "middleware", "serve", "--config", str(path),
        cwd=ROOT, env=environment, stderr=-1,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        await process.stderr.readline()
        async with aiohttp.ClientSession() as session:
            for model in ("far", "near"):
                body = {"model": model, "messages": [{"role": "user", "content": "Weather?"}]}
                async with session.post(
                    f"http://127.0.0.1:{port}/v1/chat/completions",
                    json={**body, "tools": [WEATHER]},
                ) as answer:
                    said = await answer.json()
                    assert answer.status == 200, said
                    assert said["choices"][0]["finish_reason"] == "tool_calls"
    finally:
        process.terminate()
        await process.communicate()
