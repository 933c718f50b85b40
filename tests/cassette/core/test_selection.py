"""Which cassette and which mode a request gets: by header, path, key and config."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from middleware.cassettes.cassette import Cassette
from middleware.cassettes.file import cassette_text, write_cassette
from middleware.server.signposts import CHAT
from tests.cassette.core.desk import REPLAYED, asking, cassette, desk, folded, parsed
from tests.cassette.turns import said, turn
from tests.support.door import Heard
from tests.support.door import door as plain_door

ASK = asking("Who are you?")


def keep(folder: Path, name: str, *texts: str) -> None:
    """A cassette that answers `ASK` with these texts, one after the other."""
    turns = tuple(turn(at, ASK, answer=said(text)) for at, text in enumerate(texts, 1))
    write_cassette(folder / f"{name}.yaml", cassette_text(Cassette(turns=turns)))


def text_of(heard: Heard) -> str:
    return str(folded(heard).get("content"))


def code_of(heard: Heard) -> tuple[int, str]:
    return heard.status, heard.error()["code"]


def played(folder: Path, path: str, headers: dict[str, str], name: str = "default") -> Heard:
    """One ask of a gateway that replays; `name` is the command's."""

    async def go() -> Heard:
        async with desk(folder, REPLAYED, "replay", name=name) as gateway:
            return await gateway.post(path, ASK, **headers)

    return asyncio.run(go())


Way = tuple[str, dict[str, str]]
"""A path, and headers."""


def by_header(name: str) -> Way:
    return CHAT, {"x-usetool-cassette": quote(name)}


def by_path(name: str) -> Way:
    return f"/~{name}{CHAT}", {}


def by_key(name: str) -> Way:
    return CHAT, {"authorization": f"Bearer anything~{name}"}


def by_quoted_key(name: str) -> Way:
    return CHAT, {"authorization": f"Bearer anything~{quote(name)}"}


def by_other_key(name: str) -> Way:
    return CHAT, {"x-api-key": f"any~thing~{quote(name)}"}


WAYS = (by_header, by_path, by_key, by_quoted_key, by_other_key)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["shop", "shop/rain.v2_a-b", "shop@s1", "店/雨@サ"])
def test_a_name_means_the_same_whichever_way_it_comes(
    tmp_path: Path, way: Callable[[str], Way], name: str
) -> None:
    keep(tmp_path, name.partition("@")[0], "I am the shop.")

    heard = played(tmp_path, *way(name))
    assert text_of(heard) == "I am the shop."
    shown = quote(name.partition("@")[0])
    assert heard.headers["x-usetool-replay"] == f"{shown} turn=1 of=1"


@pytest.mark.parametrize("first", WAYS[:3])
@pytest.mark.parametrize("second", WAYS[:3])
def test_ways_that_disagree_are_refused(
    tmp_path: Path, first: Callable[[str], Way], second: Callable[[str], Way]
) -> None:
    if first is second:
        return
    keep(tmp_path, "shop", "I am the shop.")
    for other in ("else", "shop@2"):
        (path, headers), (path2, headers2) = first("shop"), second(other)
        path = path if path != CHAT else path2
        heard = played(tmp_path, path, {**headers, **headers2})
        assert code_of(heard) == (400, "cassette_ambiguous")
    (path, headers), (path2, headers2) = first("shop"), second("shop")
    heard = played(tmp_path, path if path != CHAT else path2, {**headers, **headers2})
    assert text_of(heard) == "I am the shop."


def test_the_commands_own_name_as_a_key_gives_way(tmp_path: Path) -> None:
    keep(tmp_path, "own", "I am its own.")
    keep(tmp_path, "shop", "I am the shop.")
    key = {"authorization": "Bearer usetool~own"}
    assert text_of(played(tmp_path, CHAT, {}, "own")) == "I am its own."
    assert text_of(played(tmp_path, CHAT, key, "own")) == "I am its own."
    assert text_of(played(tmp_path, f"/~shop{CHAT}", key, "own")) == "I am the shop."
    named = {**key, "x-usetool-cassette": "shop"}
    assert text_of(played(tmp_path, CHAT, named, "own")) == "I am the shop."


@pytest.mark.parametrize("name", ["..", "../shop", "/etc/passwd", "a//b", "a b", "", "shop@", "~"])
def test_what_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    heard = played(tmp_path, *by_header(name))
    assert code_of(heard) == (400, "cassette_name")


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    keep(tmp_path / "elsewhere", "shop", "I am outside.")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/shop.yaml").symlink_to(tmp_path / "elsewhere/shop.yaml")
    heard = played(tmp_path / "inside", *by_path("shop"))
    assert code_of(heard) == (400, "cassette_name")


# Without cassettes --------------------------------------------------------------------------------

OTHERS: Sequence[Way] = (
    (CHAT, {"x-usetool-mode": "replay"}),
    (CHAT, {"x-usetool-lane": "a"}),
    (CHAT, {"x-usetool-fault": "{}"}),
    ("/~shop/v1/embeddings", {}),
)


@pytest.mark.parametrize(("path", "headers"), [*(way("shop") for way in WAYS), *OTHERS])
def test_a_gateway_without_cassettes_refuses_whoever_names_one(
    path: str, headers: dict[str, str]
) -> None:
    async def go() -> Heard:
        body = {"model": "demo", "input": "x"} if path.endswith("s") else ASK
        return await plain_door().ask(body, path=path, headers=[*headers.items()])

    assert code_of(asyncio.run(go())) == (400, "cassettes_off")


def test_a_key_that_stands_whole_in_the_config_has_no_suffix() -> None:
    async def go() -> tuple[Heard, Heard]:
        gateway = plain_door(server='keys = ["me~you", "me"]')
        body = asking("hi", "demo")
        whole = await gateway.ask(body, headers=[("authorization", "Bearer me~you")])
        return whole, await gateway.ask(body, headers=[("authorization", "Bearer me~shop")])

    whole, cut = asyncio.run(go())
    assert whole.status == 200
    assert code_of(cut) == (400, "cassettes_off")


# Modes --------------------------------------------------------------------------------------------

LIVE = "This is a scripted model"
MODES = """
[cassettes]
mode = "{mode}"
allow = {allow}
[upstreams.script]
kind = "scripted"
[models.m]
upstream = "script"
{own}
"""
REFUSALS: Mapping[str, int] = {"mode_not_allowed": 403, "invalid_value": 400}
REPLAY, RECORD = '["replay"]', '["record", "refresh", "off"]'


class Row(NamedTuple):
    """What the config says of all and of one model, what a header asks for, what comes of it."""

    mode: str
    allow: str
    own: str
    asked: str
    outcome: str


TABLE: Sequence[Row] = (
    Row("off", REPLAY, "", "", "live"),
    Row("off", REPLAY, "", "replay", "played"),
    Row("off", REPLAY, "", "off", "live"),
    Row("off", REPLAY, "", "record", "mode_not_allowed"),
    Row("off", REPLAY, "", "nonsense", "invalid_value"),
    Row("off", "[]", "", "replay", "mode_not_allowed"),
    Row("off", RECORD, "", "record", "recorded"),
    Row("off", RECORD, "", "auto", "mode_not_allowed"),
    Row("replay", REPLAY, "", "", "played"),
    Row("replay", REPLAY, "", "replay", "played"),
    Row("replay", REPLAY, "", "record", "mode_not_allowed"),
    Row("replay", RECORD, "", "off", "live"),
    Row("replay", REPLAY, "live", "", "passed"),
    Row("replay", REPLAY, "live", "replay", "played"),
    Row("replay", "[]", "live", "replay", "mode_not_allowed"),
    Row("replay", REPLAY, "record", "", "recorded"),
    Row("record", REPLAY, "", "", "recorded"),
    Row("record", REPLAY, "replay", "", "played"),
    Row("record", REPLAY, "live", "", "live"),
    Row("auto", REPLAY, "", "", "played"),
    Row("refresh", REPLAY, "", "", "recorded"),
)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: "-".join(filter(None, row)))
def test_who_says_the_mode(tmp_path: Path, row: Row) -> None:
    keep(tmp_path, "shop", "I am the shop.")
    own = f'cassettes = "{row.own}"' if row.own else ""
    text = MODES.format(mode=row.mode, allow=row.allow, own=own)
    header = {"mode": row.asked} if row.asked else {}

    async def go() -> tuple[Heard, int]:
        async with desk(tmp_path, text, None) as gateway:
            heard = await gateway.ask(ASK, "shop", **header)
            return heard, sum(one.recorded for one in gateway.finish())

    heard, recorded = asyncio.run(go())
    assert recorded == (row.outcome == "recorded")
    if row.outcome in REFUSALS:
        assert code_of(heard) == (REFUSALS[row.outcome], row.outcome)
        return
    label = heard.headers.get("x-usetool-replay", "")
    played = row.outcome == "played"
    assert label == {"played": "shop turn=1 of=1", "passed": "live"}.get(row.outcome, "")
    assert text_of(heard) == "I am the shop." if played else text_of(heard).startswith(LIVE)


@pytest.mark.parametrize("asked", ["off", "record", "auto", "refresh"])
def test_a_command_that_replays_is_never_left(tmp_path: Path, asked: str) -> None:
    keep(tmp_path, "shop", "I am the shop.")
    text = MODES.format(mode="off", allow=RECORD.replace("]", ', "auto"]'), own="")

    async def go() -> Heard:
        async with desk(tmp_path, text, "replay") as gateway:
            return await gateway.ask(ASK, "shop", mode=asked)

    assert code_of(asyncio.run(go())) == (403, "mode_not_allowed")


def test_a_changed_config_says_the_mode_from_the_next_request_on(tmp_path: Path) -> None:
    keep(tmp_path, "shop", "I am the shop.")
    off = MODES.format(mode="off", allow=REPLAY, own="")
    replay = MODES.format(mode="replay", allow="[]", own="")

    async def go() -> list[Heard]:
        async with desk(tmp_path, off, None) as gateway:
            app = gateway.door.app
            heard = [await gateway.ask(ASK, "shop")]
            for text in (replay, off):
                app.use(app.prepare(parsed(text)))
                heard.append(await gateway.ask(ASK, "shop"))
            return heard

    first, second, third = map(text_of, asyncio.run(go()))
    assert first.startswith(LIVE)
    assert second == "I am the shop."
    assert third.startswith(LIVE)


def test_what_a_client_may_not_ask_is_not_recorded(tmp_path: Path) -> None:
    models = "".join(f'[models.{name}]\nupstream = "s"\n' for name in ("m", "other"))
    text = f'[upstreams.s]\nkind = "scripted"\n{models}[clients.a]\nkey = "A"\nmodels = ["m"]\n'

    async def go() -> list[int]:
        async with desk(tmp_path, text, "record") as gateway:
            asks = [{**ASK, "model": name} for name in ("m", "other")]
            return [
                (await gateway.post(CHAT, ask, authorization="Bearer A")).status for ask in asks
            ]

    assert asyncio.run(go()) == [200, 404]
    assert [one.model for one in cassette(tmp_path).turns] == ["m"]
