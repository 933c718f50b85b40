"""Who may come in, and what of a body is read."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

import pytest
from starlette.types import Message

from adapters.errors import BadRequest, TooLarge, Unauthorized
from middleware import config
from middleware.accounts.clients import Client, clients_by_key, digest
from middleware.config import Config
from middleware.server.transport.intake import Caller, Keys, read_body

Headers = Sequence[tuple[bytes, bytes]]
BEARER = (b"authorization", b"Bearer K")


CLIENTS = """
[server]
keys = ["K", "other"]
[clients.alpha]
key = "A"
[clients.beta]
key = "B"
[upstreams.script]
kind = "scripted"
[models.demo]
upstream = "script"
"""


def parsed(text: str = CLIENTS) -> Config:
    return config.parse(text, environment={})


def opened(*headers: tuple[bytes, bytes], text: str = CLIENTS) -> Caller:
    return Keys(clients_by_key(parsed(text))).caller(scope(*headers))


def scope(*headers: tuple[bytes, bytes]) -> dict[str, object]:
    return {"type": "http", "headers": list(headers)}


# Keys ------------------------------------------------------------------------------------------

RIGHT: tuple[Headers, ...] = (
    [BEARER],
    [(b"authorization", b"bearer K")],
    [(b"authorization", b"BEARER   K  ")],
    [(b"x-api-key", b"K")],
    [(b"api-key", b" K ")],
    [BEARER, (b"x-api-key", b"K")],
    [BEARER, BEARER],
)
WRONG: tuple[Headers, ...] = (
    [(b"authorization", b"Bearer k")],
    [(b"authorization", b"Bearer KK")],
    [(b"authorization", b"Basic Sw==")],
    [(b"authorization", b"Bearer K, Bearer K")],
    [(b"authorization", "Bearer ключ".encode())],
    [(b"x-api-key", b"k")],
)
NONE: tuple[Headers, ...] = (
    [],
    [(b"authorization", b"")],
    [(b"authorization", b"Bearer ")],
    [(b"x-api-key", b"  ")],
    [(b"cookie", b"authorization=K")],
)
ONE_IS_RIGHT: tuple[Headers, ...] = (
    [BEARER, (b"x-api-key", b"wrong")],
    [(b"authorization", b"Bearer wrong"), (b"api-key", b"wrong"), (b"x-api-key", b"K")],
)
TWICE: tuple[Headers, ...] = (
    [(b"authorization", b"Bearer wrong"), BEARER],
    [(b"x-api-key", b"K"), (b"x-api-key", b"wrong")],
)
OF_TWO_OWNERS: tuple[Headers, ...] = (
    [BEARER, (b"x-api-key", b"other")],
    [BEARER, (b"x-api-key", b"A")],
    [(b"authorization", b"Bearer B"), (b"x-api-key", b"A")],
)


@pytest.mark.parametrize("headers", RIGHT)
def test_a_key_opens_in_every_form_clients_send_it(headers: Headers) -> None:
    assert opened(*headers).owner == hashlib.sha256(b"K").hexdigest()
    assert Keys({}).caller(scope(*headers)).key == "K"


@pytest.mark.parametrize("headers", WRONG)
def test_a_wrong_key_is_refused_without_repeating_it(headers: Headers) -> None:
    with pytest.raises(Unauthorized, match="Incorrect API key provided") as caught:
        opened(*headers)
    assert (caught.value.status, caught.value.code) == (401, "invalid_api_key")
    assert "KK" not in caught.value.message


@pytest.mark.parametrize("headers", NONE)
def test_who_sends_no_key_is_told_how(headers: Headers) -> None:
    with pytest.raises(
        Unauthorized, match=r"You didn't provide an API key\..*Authorization: Bearer"
    ):
        opened(*headers)


@pytest.mark.parametrize("headers", ONE_IS_RIGHT)
def test_of_two_keys_the_right_one_opens(headers: Headers) -> None:
    assert (opened(*headers).key, opened(*headers).client.name) == ("K", "default")


@pytest.mark.parametrize("headers", OF_TWO_OWNERS)
def test_two_right_keys_of_different_owners_are_refused(headers: Headers) -> None:
    with pytest.raises(Unauthorized, match="two different API keys"):
        opened(*headers)


@pytest.mark.parametrize("headers", TWICE)
def test_two_different_keys_in_one_header_are_refused(headers: Headers) -> None:
    with pytest.raises(Unauthorized, match="two different API keys"):
        opened(*headers)


def test_without_keys_everybody_comes_in_and_clients_are_told_apart() -> None:
    keys = Keys({})
    assert keys.caller(scope()).client == Client()
    assert keys.caller(scope(BEARER)).client == Client(owner=digest(b"K"))
    with pytest.raises(Unauthorized, match="two different API keys"):
        keys.caller(scope(BEARER, (b"x-api-key", b"other")))


def test_keys_are_kept_as_digests() -> None:
    assert "K-secret" not in repr(vars(Keys({digest(b"K-secret"): Client()})))


def test_a_client_with_a_name_keeps_its_memories_when_its_key_is_another() -> None:
    before = opened((b"x-api-key", b"A"))
    after = opened((b"x-api-key", b"A2"), text=CLIENTS.replace('"A"', '"A2"'))
    assert (before.client.name, before.owner) == ("alpha", after.owner)
    assert before.owner != opened((b"x-api-key", b"B")).owner
    assert opened(BEARER).owner != opened((b"x-api-key", b"other")).owner


def test_a_cassette_behind_the_key_is_no_part_of_it() -> None:
    found = opened((b"x-api-key", b"A~test/one"))
    assert (found.client.name, found.key, found.suffix) == ("alpha", "A", "test/one")


# Bodies ----------------------------------------------------------------------------------------


class Sender:
    """Sends a body in pieces, then stays silent until it is asked for more and leaves."""

    def __init__(self, *pieces: bytes, leaves: bool = False) -> None:
        self.left = [
            {"type": "http.request", "body": piece, "more_body": leaves or position < len(pieces)}
            for position, piece in enumerate(pieces, 1)
        ]
        self.leaves = leaves
        self.asked = 0

    async def receive(self) -> Message:
        self.asked += 1
        if self.left:
            return self.left.pop(0)
        if not self.leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}


def read(client: Sender, *headers: tuple[bytes, bytes], limit: int = 10) -> bytes:
    async def within_seconds() -> bytes:
        async with asyncio.timeout(1):
            return await read_body(scope(*headers), client.receive, limit)

    return asyncio.run(within_seconds())


@pytest.mark.parametrize(
    "pieces", [(b"",), (b"0123456789",), (b"01234", b"", b"56789"), (b"", b"0", b"")]
)
def test_a_body_is_read_whole(pieces: tuple[bytes, ...]) -> None:
    assert read(Sender(*pieces)) == b"".join(pieces)


@pytest.mark.parametrize("pieces", [(), (b"01",), (b"01", b"23")])
def test_a_body_that_breaks_off_is_none(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(BadRequest, match="broke off"):
        read(Sender(*pieces, leaves=True))


@pytest.mark.parametrize(
    "pieces", [(b"01234567890",), (b"0123456789", b"0"), (b"0" * 9, b"0" * 9, b"0", b"end")]
)
def test_a_body_that_grows_too_large_is_refused_when_the_client_has_sent_it(
    pieces: tuple[bytes, ...],
) -> None:
    client = Sender(*pieces)
    with pytest.raises(TooLarge, match=r"larger than 10 bytes.*max_body"):
        read(client)
    assert client.left == []


def test_a_body_said_to_be_too_large_is_passed_by() -> None:
    client = Sender(b"01234", b"0123456")
    with pytest.raises(TooLarge):
        read(client, (b"content-length", b"12"))
    assert client.left == []


def test_a_client_that_asks_whether_to_send_is_told_at_once() -> None:
    client = Sender(b"")
    with pytest.raises(TooLarge):
        read(client, (b"content-length", b"12"), (b"expect", b"100-continue"))
    assert client.asked == 0


def test_a_compressed_body_is_refused() -> None:
    with pytest.raises(BadRequest, match="uncompressed") as caught:
        read(Sender(b"x"), (b"content-encoding", b"gzip"))
    assert caught.value.status == 415
    assert read(Sender(b"x"), (b"content-encoding", b"identity")) == b"x"


@pytest.mark.parametrize(
    ("headers", "fine"),
    [
        ([(b"a", b"b")] * 100, True),
        ([(b"a", b"b")] * 101, False),
        ([(b"a", b"b" * 65535)], True),
        ([(b"a", b"b" * 65536)], False),
    ],
)
def test_headers_are_modest(headers: Headers, fine: bool) -> None:
    if fine:
        assert read(Sender(b"x"), *headers) == b"x"
        return
    with pytest.raises(BadRequest, match="too many") as caught:
        read(Sender(b"x"), *headers)
    assert caught.value.status == 431
