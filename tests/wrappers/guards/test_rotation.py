"""Keys in rotation, as the upstreams of every kind see them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from adapters.errors import GatewayError
from adapters.protocol import ChatRequest, Journey, RequestContext
from adapters.shared.embeddings import EmbeddingRequest
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.routing import Routes
from tests.support.day_one import Seen, answering, completion, failure
from tests.support.upstreams.loopback import loopback
from tests.wrappers.guards.guarded import ENVIRONMENT, HI, THREE, Guarding, run, told

KINDS = ("compatible", "claude", "deepseek", "ollama", "longtail")
_KEY = re.compile(r"(?:authorization: bearer|x-api-key:) (\S+)")


@asynccontextmanager
async def fleet(kind: str, reply: tuple[str, bytes], seen: Seen) -> AsyncIterator[Routes]:
    name = "openai/m" if kind == "longtail" else "m"
    async with loopback(answering(seen, lambda *_: reply)) as up:
        text = (
            f'[upstreams.up]\nkind = "{kind}"\nbase_url = "{up.url}"\n{THREE}\n'
            f'[models.m]\nupstream = "up"\nname = "{name}"\n[recall]\nstore = "off"\n'
        )
        transport = Transport()
        try:
            yield build(config.parse(text, environment=ENVIRONMENT), transport)
        finally:
            await transport.close()


def keys_of(seen: Seen) -> list[str]:
    """Of all but what is asked about a model."""
    asked = [head for path, head, _ in seen.requests if path != "/api/show"]
    return [found[1] for head in asked if (found := _KEY.search(head))]


async def asked(routes: Routes, call: RequestContext, embed: bool = False) -> str:
    """Ask once; what it failed with."""
    name, model = routes.guarded("m")
    try:
        if embed:
            await model.embed(EmbeddingRequest(name, "text", call))
        else:
            async for _ in model.stream(ChatRequest(name, (HI,), call=call)):
                pass
    except GatewayError as error:
        return error.message
    return ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("embed", [False, True])
def test_every_kind_sends_the_key_of_the_call_and_a_refused_one_rests(
    kind: str, embed: bool
) -> None:
    if embed and kind in ("claude", "deepseek"):
        pytest.skip("it makes no embeddings")
    seen, journey = Seen(), Journey()
    words = "the keys secret-a, secret-A, secret-B and secret-C are unknown"

    async def script() -> list[str]:
        async with fleet(kind, ("401 No", failure(words)), seen) as routes:
            call = RequestContext("req_1", key="the client's own", journey=journey)
            return [await asked(routes, call, embed) for _ in range(3)]

    texts = run(script(), seconds=60)  # LiteLLM takes long to load
    assert sorted(keys_of(seen)) == ["secret-a", "secret-b", "secret-c"]
    assert sorted(call.key for call in journey.calls()) == ["up#1", "up#2", "up#3"]
    assert all("env:KEY_A, env:KEY_B, env:KEY_C" in text for text in texts)
    assert not any(re.search("secret-[ABC]", text) for text in texts)


@pytest.mark.parametrize("chosen", ["up#1", "up#2", "up#3"])
def test_a_call_goes_with_the_key_that_was_chosen(chosen: str) -> None:
    seen = Seen()

    async def script() -> None:
        async with fleet("compatible", ("200 OK", completion()), seen) as routes:
            assert not await asked(routes, RequestContext("req_1", chosen=chosen))

    run(script())
    assert keys_of(seen) == [f"secret-{'abc'[int(chosen[-1]) - 1]}"]


def test_small_questions_are_asked_with_a_key_too() -> None:
    seen = Seen()

    async def script() -> None:
        async with fleet("compatible", ("200 OK", b'{"data": []}'), seen) as routes:
            await routes.leaf("m")[1].models()

    run(script())
    assert keys_of(seen) == ["secret-a"]


def test_a_key_of_another_upstream_that_was_chosen_is_not_taken() -> None:
    guarding = Guarding(THREE)
    run(guarding.ask(chosen="other#1"))
    assert guarding.keys_used()[0] in {"secret-A", "secret-B", "secret-C"}


def test_calls_of_embeddings_hold_slots_and_are_counted() -> None:
    guarding = Guarding("max_concurrent = 1\nqueue = 0")
    journey = Journey()
    request = EmbeddingRequest("m-1", "text", RequestContext(journey=journey))

    async def script() -> None:
        assert await guarding.ring.board.take("up", 1, 0)
        with suppress(GatewayError):
            await guarding.guard.embed(request)

    run(script())
    assert told(journey) == ["m=full"]
