"""No secret comes to the disk with a turn that is recorded, not for a moment."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from middleware.cassettes.record.finish import RecorderSettings
from middleware.cassettes.secrets import Blotter, Redaction, TurnBlotter
from tests.cassette.core.desk import (
    Desktop,
    asking,
    cassette,
    desk,
    put_together,
    raw,
    texts_below,
)

SECRET = "the quick brown fox is our password"  # no shape that anybody would know
SCRIPTED = '[upstreams.s]\nkind = "scripted"\n[models.m]\nupstream = "s"\n'


@pytest.mark.parametrize("run", ["", "a run of several"])
def test_a_secret_that_was_overlooked_is_never_left_on_the_disk(tmp_path: Path, run: str) -> None:
    desktop = Desktop(tmp_path, {SECRET: "OUR_PASSWORD"})
    recorder = desktop.recorder
    recorder.settings = RecorderSettings(recorder.settings.path, run=run)
    recorder.put(raw(1, "harmless"))
    recorder.put(raw(2, f"they say {SECRET}."))
    recorder.put(raw(3, "harmless again"))
    told = [one.problem for one in recorder.finish()] + recorder.problems
    assert any("OUR_PASSWORD in clear" in problem for problem in told)
    assert not any(SECRET in problem for problem in told)
    assert not any(SECRET.encode() in text for text in texts_below(tmp_path))
    assert not (tmp_path / "t.yaml").exists()


def test_so_is_the_key_of_a_client(tmp_path: Path) -> None:
    recorder = Desktop(tmp_path).recorder
    recorder.blotter = _Blind({})
    recorder.put(raw(1, f"they say {SECRET}.", key=SECRET))
    (finished,) = recorder.finish()
    assert "KEY in clear" in finished.problem
    assert not any(SECRET.encode() in text for text in texts_below(tmp_path))


@pytest.mark.parametrize(
    "said",
    [
        '{"password": "swordfish"}',  # in an ask: JSON in a text, as arguments of calls are
        '{"api_key":"swordfish"}',
        "ask http://me:swordfish@host/",
        "https://host/?token=swordfish&b=1",
    ],
)
@pytest.mark.parametrize("slash", ["/", "\\/"])
def test_what_looks_like_a_secret_is_not_written_in_clear_for_a_moment(
    tmp_path: Path, said: str, slash: str
) -> None:
    turn = raw(1, said)
    body = turn.visitor.body.replace(b"/", slash.encode())  # so does PHP
    recorder = Desktop(tmp_path).recorder
    recorder.put(turn._replace(visitor=turn.visitor._replace(body=body)))
    while not (parts := [*tmp_path.glob("*.part-*")]) or b"req_1" not in parts[0].read_bytes():
        time.sleep(0.005)
    assert b"swordfish" not in parts[0].read_bytes()
    recorder.finish()
    (found,) = cassette(tmp_path, "t").turns
    assert "[secret:" in str(found.body)


def test_so_it_is_of_turns_that_are_told_together(tmp_path: Path) -> None:
    recorder = Desktop(tmp_path).recorder
    said = ["one", "my token=swordfish&", "three", "?token=swordfish", "?token=swordfish", "six"]
    put_together(recorder, [raw(number, text, size=9) for number, text in enumerate(said)])
    recorder.finish()
    found = cassette(tmp_path, "t").turns
    assert [turn.id for turn in found] == [f"req_{number}" for number in range(6)]
    assert ["[secret:" in str(turn.body) for turn in found] == [0, 0, 0, 1, 1, 0]
    assert [str(found[number].body).count(said[number]) for number in (0, 1, 2, 5)] == [1] * 4


@pytest.mark.parametrize("reads", [True, False])
def test_what_is_too_deep_to_be_searched_costs_no_other_turn(tmp_path: Path, reads: bool) -> None:
    desktop, told = Desktop(tmp_path), list[str]()

    def say(text: str) -> None:
        told.append(text)
        if not reads:
            raise BrokenPipeError

    desktop.recorder.say = say
    body = b'{"see": "?token=swordfish", "d": ' + b"[" * 900 + b"]" * 900 + b"}"
    deep = raw(2, size=1)
    deep.calls[0].pieces, deep.calls[0].chunks = [body], [(0.0, [len(body)])]
    put_together(desktop.recorder, [raw(1), deep, raw(3)])
    (finished,) = desktop.recorder.finish()
    assert (finished.turns, desktop.recorder.dropped) == (2, 1)
    assert "JSON cannot say it" in told[0]
    assert not any(b"swordfish" in text for text in texts_below(tmp_path))


def test_what_a_path_of_the_config_names_is_taken_out(tmp_path: Path) -> None:
    text = f'{SCRIPTED}[cassettes]\nredact = ["messages[role=user].content"]\n'

    async def go() -> None:
        async with desk(tmp_path, text, "record") as gateway:
            await gateway.ask(asking("a private matter"))

    asyncio.run(go())
    assert not any(b"private" in text for text in texts_below(tmp_path))
    (found,) = cassette(tmp_path).turns
    assert found.body["messages"][0]["content"] == "[secret:redacted]"


def test_what_a_path_leads_to_is_taken_out_though_it_looks_harmless(tmp_path: Path) -> None:
    recorder = Desktop(tmp_path).recorder
    recorder.blotter = Blotter({}, Redaction(paths=("messages[0].content",)))
    recorder.put(raw(1, "Miller"))
    recorder.finish()
    assert not any(b"Miller" in text for text in texts_below(tmp_path))


class _Blind(Blotter):
    """Knows not even the client's key."""

    def turn(self, key: str = "") -> TurnBlotter:
        return super().turn("")
