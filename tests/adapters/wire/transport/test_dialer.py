"""How connections are opened: names, addresses that do not answer, TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.errors import Truncated, Unavailable
from adapters.wire.http import Transport
from adapters.wire.transport.client import HttpClient
from adapters.wire.transport.dialer import Addresses, Dialer
from adapters.wire.transport.request import Origin
from tests.adapters.wire.asking import answering, ask, cut_chunks, soon
from tests.support.fold import run
from tests.support.upstreams.certificates import certificate
from tests.support.upstreams.loopback import loopback


@contextmanager
def full_port() -> Iterator[int]:
    """One on which nobody is accepted, nor refused."""
    with closing(socket.socket()) as listening, closing(socket.socket()) as waiting:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting.connect(listening.getsockname())
        yield listening.getsockname()[1]


class Several(Dialer):
    """Finds these addresses for every name."""

    def __init__(self, *ports: int) -> None:
        super().__init__()
        self.ports = ports

    async def _addresses(self, origin: Origin) -> Addresses:
        kind = socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, ""
        return [(*kind, ("127.0.0.1", port)) for port in self.ports]


def test_an_address_that_does_not_answer_is_not_waited_for() -> None:
    async def check() -> None:
        with full_port() as full:
            async with loopback(answering()) as up:
                port = int(up.url.rpartition(":")[2])
                transport = Transport(HttpClient(Several(full, port)))
                started = asyncio.get_running_loop().time()
                assert await ask(replace(up.link, transport=transport)) == b"{}"
                assert asyncio.get_running_loop().time() - started < 1
                await transport.close()

    run(check())


def test_an_address_that_refuses_is_passed_over() -> None:
    async def check() -> None:
        async with loopback(answering()) as up:
            port = int(up.url.rpartition(":")[2])
            transport = Transport(HttpClient(Several(1, port)))
            assert await ask(replace(up.link, transport=transport)) == b"{}"
            await transport.close()

    run(check())


def test_to_connect_has_its_own_time() -> None:
    async def check() -> None:
        with full_port() as full:
            async with loopback(answering(), connect=0.1) as up:
                link = replace(up.link, base_url=f"http://127.0.0.1:{full}")
                with pytest.raises(Unavailable, match=r"no connection to upstream 'up' in 0\.1 s"):
                    await ask(link)
                # Whoever has less time than that hears of that.
                with pytest.raises(Unavailable, match="did not answer in time"):
                    await ask(replace(link, timeouts=replace(link.timeouts, connect=5)), 0.1)

    run(check())


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1"])
def test_names_and_addresses(host: str) -> None:
    async def check() -> None:
        async with loopback(answering()) as up:
            link = replace(up.link, base_url=up.url.replace("127.0.0.1", host))
            assert await ask(link) == b"{}"

    run(check())


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".test"])
def test_a_name_that_is_unknown(host: str) -> None:
    async def check() -> None:
        async with loopback(answering()) as up:
            link = replace(up.link, base_url=f"http://{host}")
            found = await asyncio.gather(*(ask(link) for _ in range(3)), return_exceptions=True)
            assert all("its host name is unknown" in str(error) for error in found)

    run(check())


# TLS -------------------------------------------------------------------------------------------


LARGE = b"0123456789abcdef" * (1 << 16)


@pytest.mark.parametrize(
    ("names", "host", "words"),
    [
        ("DNS:claude.test", "claude.test", ""),
        ("DNS:claude.test", "CLAUDE.test.", ""),
        ("IP:127.0.0.1", "127.0.0.1", ""),
        ("DNS:claude.test", "127.0.0.1", "certificate is not trusted"),
        ("DNS:claude.test", "other.test", "certificate is not trusted"),
    ],
)
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_tls_is_spoken_with_whom_the_machine_trusts(
    trust: Callable[[str], ssl.SSLContext], names: str, host: str, words: str, loop: str
) -> None:
    context, shown = trust(names), list[str | None]()
    context.sni_callback = lambda _, name, __: shown.append(name)

    async def check() -> None:
        async with loopback(answering(LARGE), context) as up:
            port = int(up.url.rpartition(":")[2])
            transport = Transport(HttpClient(Several(port)))
            link = replace(up.link, base_url=f"https://{host}:{port}", transport=transport)
            if words:
                with pytest.raises(Unavailable, match=words):
                    await ask(link)
                return
            for _ in range(2):
                reply = await link.post("/", LARGE, soon())
                assert await reply.whole(soon()) == LARGE
            assert up.connections == 1
            await transport.close()

    factory = pytest.importorskip(loop).new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(asyncio.wait_for(check(), 10))
    assert shown == [host.rstrip(".").lower() if host[0].isalpha() else None]


def test_a_certificate_nobody_knows_is_not_trusted(tmp_path: Path) -> None:
    _, context = certificate(tmp_path, "DNS:localhost")

    async def check() -> None:
        async with loopback(answering(), context) as up:
            with pytest.raises(Unavailable, match="certificate is not trusted"):
                await ask(replace(up.link, base_url=up.url.replace("127.0.0.1", "localhost")))

    run(check())


def test_an_answer_that_is_cut_is_cut_behind_tls_too(
    trust: Callable[[str], ssl.SSLContext],
) -> None:
    async def check() -> None:
        async with loopback(cut_chunks, trust("IP:127.0.0.1")) as up:
            with pytest.raises(Truncated):
                await ask(up.link)

    run(check())


@pytest.fixture
def trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ssl.SSLContext]:
    """Makes what a server of these names shows, which this machine trusts for a test."""

    def trusted(names: str) -> ssl.SSLContext:
        chain, context = certificate(tmp_path, names)
        monkeypatch.setenv("SSL_CERT_FILE", str(chain))
        return context

    return trusted
