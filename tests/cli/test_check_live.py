"""`usetool check --live`: names what is wrong with each upstream, and the line to write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import orjson
import pytest

from middleware import config
from middleware.cli import describe
from middleware.cli import live_check as probing
from middleware.cli.live_check import Diagnosis
from tests.cli.probing import KEY
from tests.support.day_one import Json, Reply, Seen, answering, completion, failure
from tests.support.upstreams.loopback import Peer, loopback


def probed(text: str, environment: Mapping[str, str] | None = None) -> dict[str, Diagnosis]:
    found = config.parse(text, environment={"KEY": KEY, **(environment or {})})
    return {one.upstream: one for one in asyncio.run(probing.probe(found, environment or {}))}


def upstream(reply: Callable[[str, str, Json], Reply], text: str) -> Diagnosis:
    """Probe one upstream that answers so."""

    async def run() -> list[Diagnosis]:
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
) -> tuple[list[Diagnosis], int, int]:
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


def test_each_of_several_keys_is_tried_and_models_are_asked_with_one_that_is_well() -> None:
    seen = Seen()

    def reply(path: str, head: str, body: Json) -> Reply:
        good = "bearer key-2" in head
        return well(path, head, body) if good else ("401 No", failure("unknown key"))

    async def run() -> list[Diagnosis]:
        async with loopback(answering(seen, reply)) as up:
            text = RELAY.replace("URL", up.url).replace('"env:KEY"', '["key-1", "key-2", "env:NO"]')
            text += '[models.other]\nupstream = "relay"\nname = "big"\n'
            return await probing.probe(config.parse(text, environment={}), {})

    told = asyncio.run(run())
    assert [(one.upstream, one.model, one.well) for one in told] == [
        ("relay#1", "small", False),
        ("relay#2", "small", True),
        ("relay", "other", True),
    ]
    assert "wrong key" in told[0].verdict
    assert "[upstreams.relay#" not in told[0].advice
