"""The file of a cassette: all of it comes back, mistakes are named, the old file stays whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware.cassettes.cassette import Cassette, CassetteTurn, RecordedAnswer
from middleware.cassettes.errors import CassetteRefused, UnreadableCassette
from middleware.cassettes.file import (
    CassetteText,
    cassette_text,
    read_cassette,
    turn_from_json,
    turn_to_json,
    write_cassette,
)
from tests.cassette.turns import CASSETTE, EVENTS, FULL, again, asked, sent, turn
from tests.cassette.values import values
from tests.linear.measuring import is_within

HEAD = "usetool: {cassette: 1}\n"
ONE = "- {ask: {body: {model: m}}, answer: {status: 200}}\n"


def read(tmp_path: Path, text: str) -> Cassette:
    (tmp_path / "c.yaml").write_text(text, "utf-8", newline="")
    return read_cassette(tmp_path / "c.yaml")


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(UnreadableCassette) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "c.yaml"))
    assert "expected" in str(caught.value)
    return str(caught.value)


def test_all_of_it_comes_back(tmp_path: Path) -> None:
    assert again(tmp_path / "c.yaml", CASSETTE) == CASSETTE
    assert again(tmp_path / "c.yaml", Cassette()) == Cassette()


def test_what_was_read_is_written_as_it_was(tmp_path: Path) -> None:
    written = cassette_text(CASSETTE)
    write_cassette(tmp_path / "c.yaml", written)
    assert cassette_text(read_cassette(tmp_path / "c.yaml")) == written


@given(st.lists(values(), min_size=1, max_size=4))
def test_any_ask_comes_back(tmp_path_factory: pytest.TempPathFactory, found: list[Any]) -> None:
    bodies = [{"model": "m", "messages": found[: at + 1], "x": one} for at, one in enumerate(found)]
    turns = [turn(at, body) for at, body in enumerate(bodies, 1)]
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    assert repr(again(path, Cassette(tuple(turns)))) == repr(Cassette(tuple(turns)))


def test_a_turn_alone_is_one_line_of_json() -> None:
    line = orjson.dumps(turn_to_json(FULL))
    assert turn_from_json(orjson.loads(line), "c.yaml.part-7") == FULL
    with pytest.raises(
        UnreadableCassette, match=r"c\.yaml\.part-7, line 3: turn: 'x'; expected a map"
    ):
        turn_from_json("x", "c.yaml.part-7", 3)


def test_people_can_read_it() -> None:
    made = turn(1, asked("Cold", stream=True), id="req_1", exchanges=(sent({"model": "c"}),))
    assert (
        cassette_text(Cassette((made,), by="0.9.0")).text.decode()
        == """\
usetool: {cassette: 1, by: '0.9.0'}
turns:
- turn: 1
  id: req_1
  ask:
    body:
      model: sonnet
      messages:
      - {role: user, content: Cold}
      stream: true
  upstream:
  - request:
      method: POST
      uri: 'http://claude.test/v1/messages'
      body: {json: {model: c}}
    response:
      status: {code: 200}
      headers: {content-type: [text/event-stream]}
      body:
        events:
        - |-
          event: message_start
          data: {"a":1}
        - |-
          event: message_stop
          data: {}
      pieces: [[410, 66]]
      ended: whole
  answer:
    status: 200
    message: {role: assistant, content: answer 1}
    finish_reason: stop
"""
    )


def test_by_hand(tmp_path: Path) -> None:
    text = """\
usetool: {cassette: 1}
# what the bot is asked first
turns:
- ask:
    body: {model: m, messages: [{role: user, content: hi}]}
  answer: {message: {role: assistant, content: hello}, finish_reason: stop}
- ask: {body: {as: 1, messages: [{as: 1}, {role: user, content: again}]}}
  answer: {status: 429, error: {message: slow}}
  upstream:
  - request: {uri: http://c.test/v1}
    response: {headers: {content-type: text/event-stream}, body: {events: ['data: a']}}
"""
    first, second = read(tmp_path, text).turns
    hi = {"role": "user", "content": "hi"}
    hello = {"role": "assistant", "content": "hello"}
    answer = RecordedAnswer(message=hello, finish_reason="stop")
    assert first == CassetteTurn(1, {"model": "m", "messages": [hi]}, answer, line=4)
    assert (second.number, second.line) == (2, 7)
    assert second.body["messages"] == [hi, {"role": "user", "content": "again"}]
    assert second.answer == RecordedAnswer(429, error={"message": "slow"})
    (exchange,) = second.exchanges
    assert (exchange.upstream, exchange.path, exchange.method) == ("c", "/v1", "POST")
    assert (exchange.status, exchange.body) == (200, b"data: a\n\n")


MISTAKES = {
    "": "no number of its format; expected `usetool: {cassette: 1}`",
    "version: 1\ninteractions: []\n": "expected `usetool: {cassette: 1}` at the top",
    "usetool: {cassette: 7, by: 9.9.9, new: 1}\n": "its format is 7, which usetool 9.9.9 reads",
    "usetool: {cassette: 7}\n": "which a newer usetool reads; expected at most 1",
    "usetool: {cassette: 1, by: 0.9}\n": "usetool.by: 0.9; expected text",
    f"{HEAD}tunrs: []\n": "unknown key 'tunrs'; expected usetool, routes",
    f"{HEAD}turn: []\n": "Did you mean 'turns'?",
    f"{HEAD}turns: {{}}\n": "cassette.turns: a map; expected a list",
    f"{HEAD}facts: [1]\n": "cassette.facts[0]: 1; expected a map",
}
WRONG_TURNS = {
    "x": "turn: 'x'; expected a map of turn, id",
    "{answer: {}}": "turn: no ask.body or no answer; expected both",
    "{ask: {body: {}}}": "turn: no ask.body or no answer; expected both",
    "{ask: {bodi: {}}, answer: {}}": "turn.ask: unknown key 'bodi'; expected operation",
    "{turn: 1, ask: {body: {}}, answer: {}}": "turn: 1; expected a number of its own",
    "{turn: 0, ask: {body: {}}, answer: {}}": "turn: 0; expected a number of its own, from 1 on",
    "{turn: [1], ask: {body: {as: 1}}, answer: {}}": "turn.turn: a list; expected a whole number",
    "{turn: one, ask: {body: {}}, answer: {}}": "turn.turn: 'one'; expected a whole number",
    "{at: -1, ask: {body: {}}, answer: {}}": "turn.at: -1; expected a whole number",
    "{kept: 1, ask: {body: {}}, answer: {}}": "turn.kept: 1; expected true or false",
    "{ended: well, ask: {body: {}}, answer: {}}": "expected one of whole, cut, reset",
    "{id: 2026, ask: {body: {}}, answer: {}}": "words like `yes` stand in quotes",
    "{ask: {body: {as: 2}}, answer: {}}": "turn 2: as: 2; expected the number of an earlier turn",
}
WRONG_EXCHANGES = {
    "request: {uri: c.test}": "turn.upstream[0].request.uri: 'c.test'; expected http://UPSTREAM",
    "response: {status: 200}": "turn.upstream[0].response.status: 200; expected a map of code",
    "response: {headers: {a: 1}}": "headers.a[0]: 1; expected text",
    "response: {pieces: [[1]]}": "expected pairs of milliseconds and bytes",
    "response: {pieces: [[1, 2]]}": "milliseconds and bytes, 0 bytes in all; or leave them out",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_named(text: str, tmp_path: Path) -> None:
    assert MISTAKES[text] in refusal(tmp_path, text)


@pytest.mark.parametrize("row", WRONG_TURNS)
def test_mistakes_in_a_turn_are_named_with_its_line(row: str, tmp_path: Path) -> None:
    said = refusal(tmp_path, f"{HEAD}turns:\n{ONE}- {row}\n")
    assert "c.yaml, line 4: " in said
    assert WRONG_TURNS[row] in said


@pytest.mark.parametrize("row", WRONG_EXCHANGES)
def test_mistakes_in_an_exchange(row: str, tmp_path: Path) -> None:
    uri = "" if "uri" in row else "request: {uri: 'http://c.test/'}, "
    turn_row = f"- {{ask: {{body: {{}}}}, answer: {{}}, upstream: [{{{uri}{row}}}]}}\n"
    assert WRONG_EXCHANGES[row] in refusal(tmp_path, f"{HEAD}turns:\n{turn_row}")


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_cassette(tmp_path / "none.yaml")
    with pytest.raises(UnreadableCassette, match="expected a file"):
        read_cassette(tmp_path)


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a/c.yaml"
    write_cassette(path, cassette_text(CASSETTE))
    path.rename(tmp_path / "a/old.yaml")
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_cassette(path, cassette_text(CASSETTE))
    assert {one.name for one in path.parent.iterdir()} == {"c.yaml", "old.yaml"}


def test_sizes(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    assert write_cassette(path, CassetteText(b"x" * (2 << 20), {})) == ""
    assert "c.yaml has 3.0 MB" in write_cassette(path, CassetteText(b"x" * (3 << 20), {}))
    for size, large in ((51 << 20, False), (65 << 20, True)):
        with pytest.raises(CassetteRefused, match=f"{size >> 20} MB"):
            write_cassette(path, CassetteText(bytes(size), {}), large=large)
    assert path.stat().st_size == 3 << 20
    assert write_cassette(path, CassetteText(b"x" * (51 << 20), {}), large=True)


def test_a_thousand_small_turns_are_read_at_once(tmp_path: Path) -> None:
    turns = tuple(turn(at, asked(f"question {at}", "hello", "more")) for at in range(1, 1001))
    write_cassette(tmp_path / "c.yaml", cassette_text(Cassette(turns)))
    assert is_within(0.5, lambda: read_cassette(tmp_path / "c.yaml"))


def test_streams_are_read_at_some_megabytes_a_second(tmp_path: Path) -> None:
    body = asked("x " * 500)
    long = turn(1, body, exchanges=(sent(body),))
    long = CassetteTurn(1, body, long.answer, exchanges=(sent(body),) * 300)
    size = len(cassette_text(Cassette((long,))).text)
    write_cassette(tmp_path / "c.yaml", cassette_text(Cassette((long,))))
    assert read_cassette(tmp_path / "c.yaml").turns[0].exchanges[-1].body == EVENTS
    assert is_within(size / 1_000_000, lambda: read_cassette(tmp_path / "c.yaml"))
