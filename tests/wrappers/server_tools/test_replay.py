"""Server tools, recorded and played: without their modules and their config, and never run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapters.protocol import Json
from middleware.cassettes.cassette import Cassette
from middleware.cassettes.file import cassette_text, turn_from_json, write_cassette
from middleware.cassettes.record.again import ask_again
from tests.cassette.core.desk import asking, folded, parsed, streamed, whole_desk
from tests.support.tools import declared
from tests.support.upstreams.loopback import loopback
from tests.wrappers.server_tools.recordings import (
    MODULE,
    Recorded,
    answering_as,
    call,
    recorded,
    says,
)

NOW = says(None, call("c1", "now", city="x"))
SUNNY = says("It is sunny.")
both = pytest.mark.parametrize("form", [dict, streamed], ids=["plain", "streamed"])


@both
def test_a_recorded_turn_is_played_without_its_tools(tmp_path: Path, form: type[Json]) -> None:
    found = recorded(tmp_path, [NOW, SUNNY], form(asking("how is it?")))
    assert folded(found.played[0])["content"] == "It is sunny."
    assert found.ran == ["now x"]
    (turn,) = found.cassette().turns
    assert [(one.name, one.content, one.failed) for one in turn.tools] == [
        ("now", "sunny in x", False)
    ]
    tools = found.cassette().routes["m"]["server_tools"]
    (now,) = [tool for tool in tools if tool["id"] == "here.now"]
    assert now["function"]["description"] == "The weather."
    (performance,) = asyncio.run(found.performances())
    assert [run.tool for run in performance.journey.tools] == ["here.now"]


@both
@pytest.mark.parametrize("model", ["steps", "told"])
def test_steps_are_told_again_as_they_were(tmp_path: Path, model: str, form: type[Json]) -> None:
    beside = says("Wait.", call("c1", "later"), call("c2", "now", city="y"))
    answers = [beside, says(None, call("c3", "pieces")), SUNNY]
    found = recorded(tmp_path, answers, form(asking("how?", model)))
    (turn,) = found.cassette().turns
    assert {one.order for one in turn.tools[:2]} == {0, 1}
    assert turn.tools[2].pieces == ["one ", "two"]


@both
def test_what_was_cut_is_named_again(tmp_path: Path, form: type[Json]) -> None:
    found = recorded(tmp_path, [says("Wait.", call("c1", "long")), SUNNY], form(asking("how?")))
    told = found.played[0].headers.get("x-usetool-warnings", "") + found.played[0].body.decode()
    assert "result_cut" in told


def test_a_name_that_a_client_has_too_is_whose_it_was(tmp_path: Path) -> None:
    own = asking("mine?", tools=[declared("now")])
    found = recorded(tmp_path, [NOW, NOW, SUNNY], own, asking("yours?"))
    assert folded(found.played[0])["tool_calls"][0]["function"]["name"] == "now"
    assert "tool_shadowed" in found.played[0].headers["x-usetool-warnings"]
    assert folded(found.played[1])["content"] == "It is sunny."


def test_turns_without_tools_do_not_hide_those_of_others(tmp_path: Path) -> None:
    forced = asking("one?", tools=[declared("mine")], tool_choice="required")
    off = asking("two?", tool_choice="none")
    answers = [says(None, call("c0", "mine")), says("No."), NOW, SUNNY]
    recorded(tmp_path, answers, forced, off, asking("three?"))


def test_what_was_taken_over_is_so_again(tmp_path: Path) -> None:
    tools = [declared("now"), declared("nothing_here")]
    mixed = says(None, call("c1", "now", city="x"), call("c2", "nothing_here"))
    found = recorded(tmp_path, [mixed, SUNNY], asking("how?", "taken", tools=tools), asking("?"))
    names = [one["function"]["name"] for one in folded(found.played[0])["tool_calls"]]
    assert names == ["nothing_here"]
    assert found.cassette().routes["taken"]["takeover"] == ["now", "nothing_here"]


@both
@pytest.mark.parametrize("model", ["either", "pipe"])
def test_rounds_over_choices_and_pipelines(tmp_path: Path, model: str, form: type[Json]) -> None:
    answers = [says("Hm."), NOW, SUNNY][model != "pipe" :]
    found = recorded(tmp_path, answers, form(asking("how?", model)))
    assert folded(found.played[0])["content"] == "It is sunny."


def test_hidden_rounds_come_back_in_a_replay(tmp_path: Path) -> None:
    tools = [declared("mine")]
    first = asking("how?", tools=tools)
    mixed = says("Wait.", call("c1", "now", city="x"), call("c2", "mine"))
    turn = says("Wait.", call("c2", "mine"))
    back = {"role": "tool", "tool_call_id": "c2", "content": "seven"}
    second = {**first, "messages": [*first["messages"], turn, back]}
    found = recorded(tmp_path, [mixed, SUNNY], first, second)
    sent = found.seen.requests[1][2]["messages"]
    assert [one["role"] for one in sent] == ["user", "assistant", "tool", "tool"]


def test_a_call_that_was_not_recorded_is_told_to_the_model(tmp_path: Path) -> None:
    """Where recordings are of another version, the stored answer counts."""
    found = Recorded(tmp_path, [NOW, SUNNY], [asking("how?")])

    async def go() -> None:
        await found.record()
        path = tmp_path / "default.yaml"
        text = path.read_text()
        start, end = text.index("tools:\n"), text.index("answer:")
        assert "name: now" in text[start:end]
        path.write_text(text.replace("name: now\n", "name: other\n"))
        await found.play()

    asyncio.run(go())
    assert folded(found.played[0])["content"] == "It is sunny."
    assert found.ran == ["now x"]


def test_a_kept_request_becomes_a_cassette(tmp_path: Path) -> None:
    """`usetool last ID --cassette FILE`."""
    found = Recorded(tmp_path, [NOW, SUNNY], [asking("how?")])

    async def go() -> None:
        found.module.write_text(MODULE)
        async with (
            loopback(answering_as(found.said, found.seen)) as one,
            whole_desk(tmp_path, found.config(one.url), None) as live,
        ):
            (heard,) = await live.asks(found.asks)
            identity = heard.headers["x-request-id"]
            told = (await live.get(f"/v1/x_usetool/last/{identity}/cassette")).json()
        found.module.unlink()
        turn = turn_from_json(told.pop("turn"), "told")
        made = Cassette(turns=(turn,), **{**told, "facts": tuple(told["facts"])})
        write_cassette(tmp_path / "default.yaml", cassette_text(made))
        await found.play()
        assert found.played[0].body == heard.body
        assert [one.drift for one in await found.performances()] == [()]

    asyncio.run(go())
    assert found.ran == ["now x"]


def test_refreshing_runs_the_tools_again(tmp_path: Path) -> None:
    found = Recorded(tmp_path, [NOW, SUNNY], [asking("how?")])

    async def go() -> None:
        await found.record()
        found.module.write_text(MODULE.replace("sunny", "rainy"))
        found.said += [NOW, says("It rains.")]
        async with loopback(answering_as(found.said, found.seen)) as one:
            again = await ask_again(parsed(found.config(one.url)), found.cassette())
        (turn,) = again.turns
        assert [one.content for one in turn.tools] == ["rainy in x"]
        assert turn.answer.message is not None
        assert turn.answer.message["content"] == "It rains."
        assert [one["id"] for one in again.routes["m"]["server_tools"]][-1] == "here.pieces"

    asyncio.run(go())
    assert found.ran == ["now x", "now x"]
