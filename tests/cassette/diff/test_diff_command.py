"""`usetool cassette diff`, run on files in a folder."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.protocol import Json
from middleware.cassettes.cassette import Cassette, CassetteTurn
from middleware.cassettes.file import cassette_text, write_cassette
from middleware.cli.cassettes.diff import add
from tests.cassette.core.desk import full_disk
from tests.cassette.deciding import failed, said, tool, turn

CONFIG = """
[upstreams.script]
kind = "scripted"
"""
MODEL = """
[models.{}]
upstream = "script"
options = {{ rules = [ {{ when = "seat", call = {{ name = "{}", arguments = {} }} }},
                       {{ when = "", say = "{}" }} ] }}
"""
MODELS: Sequence[tuple[str, str, str, str]] = (
    ("old", "book", "{ seat = 1 }", "Done."),
    ("args", "book", "{ seat = 2 }", "Done."),
    ("tool", "find", "{ words = 'x' }", "Done."),
    ("words", "book", "{ seat = 1 }", "Well done."),
    ("broken", "book", "{ seat = 'one' }", "Done."),
)
TOOLS = [tool("book", ("seat",), seat={"type": "integer"}), tool("find")]
USAGE: Json = {"prompt_tokens": 1200, "completion_tokens": 34, "total_tokens": 1234}


def recorded(*texts: str, seat: int = 1) -> list[CassetteTurn]:
    turns = []
    for at, text in enumerate(texts, 1):
        answer = said(None, ("book", {"seat": seat})) if "seat" in text else said("Done.")
        ask = {"model": "old", "tools": TOOLS, "messages": [{"role": "user", "content": text}]}
        turns.append(turn(at, answer, ask))
    return turns


def keep(
    name: str, turns: Sequence[CassetteTurn], diff: Json | None = None, match: Json | None = None
) -> None:
    cassette = Cassette(tuple(turns), diff=diff or {}, match=match or {})
    write_cassette(Path("cassettes", f"{name}.yaml"), cassette_text(cassette))


Command = Callable[..., int]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, in a folder with a config and a cassette of two turns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CI", raising=False)
    config = CONFIG + "".join(MODEL.format(*model) for model in MODELS)
    Path("config.toml").write_text(config + '[models.gone]\nupstream = "none"\n[upstreams.none]\n'
                                   'kind = "deepseek"\napi_key = "env:NOT_SET"\n')  # fmt: skip
    keep("old", recorded("a seat", "thanks"))

    def run(*arguments: str) -> int:
        parser = argparse.ArgumentParser()
        add(parser.add_subparsers())
        options = parser.parse_args(["diff", *arguments])
        code: int = options.command(options)
        return code

    return run


@pytest.mark.parametrize(
    ("model", "words", "code"),
    [
        ("old", ["same", "same"], 0),
        ("args", ["changed", "same"], 0),
        ("words", ["same", "worded"], 0),
        ("tool", ["different", "same"], 1),
        ("broken", ["broken", "same"], 1),
    ],
)
def test_a_model_is_asked_what_was_recorded(
    command: Command, capsys: pytest.CaptureFixture[str], model: str, words: list[str], code: int
) -> None:
    assert command("old", "--against", model, "--format", "json") == code
    shown = capsys.readouterr()
    assert [each["verdict"] for each in json.loads(shown.out)["turns"]] == words
    assert "2 questions" in shown.err


def test_nothing_is_asked_twice(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    for before in (0, 2):
        command("old", "--against", "args")
        assert f"2 questions, {before} of them answered before" in capsys.readouterr().err


def test_the_old_model_is_asked_too(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("old", "--against", "tool", "-n", "5", "--baseline") == 1
    shown = capsys.readouterr()
    assert "turn 1: different, agreement 0/5, old model 5/5" in shown.out
    assert "20 questions" in shown.err


def test_what_costs_too_much_is_not_begun(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    keep("dear", [priced(one) for one in recorded("a seat", "thanks")])
    for limit in (("--max-requests", "1"), ("--max-tokens-total", "2467")):
        assert command("dear", "--against", "args", *limit) == 2
        shown = capsys.readouterr()
        assert "the others took 2,468 tokens" in shown.err
        assert "more than is allowed" in shown.err
        assert not Path("cache").exists()
    assert command("dear", "--against", "args", "--max-requests", "1", "--sample", "1") == 0


def priced(one: CassetteTurn) -> CassetteTurn:
    return replace(one, answer=replace(one.answer, usage=USAGE))


def test_failures_have_a_code_of_their_own(command: Command) -> None:
    turns = recorded("a seat")
    asked = turns[0].body | {"audio": {"voice": "x", "format": "wav"}}
    keep("odd", [*recorded("thanks"), CassetteTurn(2, asked, turns[0].answer)])
    assert command("odd", "--against", "old") == 6
    assert command("odd", "--against", "old", "--allow-errors", "1") == 1


def test_what_holds_no_decision_is_named(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    keep("odd", [*recorded("thanks"), turn(2, failed(), recorded("x")[0].body)])
    assert command("odd", "--against", "old") == 0
    assert "1 of 2 turns" in capsys.readouterr().err
    keep("empty", [turn(1, failed(), recorded("x")[0].body)])
    assert command("empty", "--against", "old") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Name either NEW"),
        (("new", "--against", "old"), "Name either NEW"),
        (("missing",), "missing.yaml: No such file"),
        (("../x",), "name"),
        (("--against", "nobody"), "'nobody' does not exist here"),
        (("--against", "gone"), "NOT_SET is not set"),
        (("old", "--rules", "none.yaml"), "none.yaml"),
        (("old", "--rules", "list.yaml"), "list.yaml: must be of type"),
        (("old", "--rules", "bad.yaml"), "bad.yaml: cannot be read"),
        (("old", "--rules", "wrong.yaml"), "wrong.yaml: property 'ignored' is not known"),
    ],
)
def test_mistakes_are_named(
    command: Command, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], said: str
) -> None:
    Path("list.yaml").write_text("- a\n")
    Path("bad.yaml").write_text("ignore: [")
    Path("wrong.yaml").write_text("ignored: [a]\n")
    assert command("old", *arguments) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert not shown.out


def test_two_cassettes_are_compared(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    keep("new", [*recorded("thanks", "a seat", seat=2)])
    assert command("old", "cassettes/new.yaml") == 0
    assert capsys.readouterr().out == (
        "turn 1: changed\n  book.seat: 1 → 2\n2 turns: 1 same, 1 changed\n"
    )
    assert command("old", "new", "--fail-on", "changed") == 1


def test_rules_are_of_the_cassette_and_of_a_file(command: Command) -> None:
    file = "rules.yaml"
    keep("new", recorded("a seat", "thanks", seat=3))
    Path(file).write_text("near: {book.seat: 2}")
    Path("none.yaml").write_text("{}")
    assert command("old", "new", "--fail-on", "changed") == 1
    assert command("old", "new", "--fail-on", "changed", "--rules", file) == 0
    keep("lenient", recorded("a seat", "thanks"), diff={"ignore": ["book.seat"]})
    assert command("lenient", "new", "--fail-on", "changed") == 0
    assert command("lenient", "new", "--fail-on", "changed", "--rules", "none.yaml") == 0


def test_asks_are_the_same_whatever_their_ids_and_model(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    def after(identity: str, number: int) -> CassetteTurn:
        call = {"id": identity, "type": "function",
                "function": {"name": "book", "arguments": '{"seat": 1}'}}  # fmt: skip
        said_before = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": identity, "content": "done"},
        ]
        body = recorded("x")[0].body | {"model": identity}
        return turn(number, said("Done."), body, messages=said_before)

    keep("one", [*recorded("thanks"), after("call_1", 2)])
    keep("two", [after("toolu_9", 1), replace(recorded("thanks")[0], number=2)])
    assert command("one", "two") == 0
    assert capsys.readouterr().out == "2 turns: 2 same\n"


def test_asks_are_the_same_where_only_masked_values_differ(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    masks = {"mask": [{"at": "messages[*]", "what": "date"}]}
    keep("monday", recorded("a seat on 2026-11-16", "thanks"), match=masks)
    keep("friday", [*recorded("thanks", "a seat on 2026-11-20")], match=masks)
    assert command("monday", "friday") == 0
    assert capsys.readouterr().out == "2 turns: 2 same\n"


def test_the_report_may_go_to_a_file(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("old", "old", "--format", "junit", "-o", "report.xml") == 0
    assert Path("report.xml").read_text("utf-8").startswith("<?xml")
    assert not capsys.readouterr().out
    assert command("old", "old", "-o", "nowhere/report.xml") == 2
    assert "nowhere/report.xml" in capsys.readouterr().err
    with full_disk(1):
        assert command("old", "old", "-o", "full.txt") == 2
    assert capsys.readouterr().err == "full.txt: File too large\n"
