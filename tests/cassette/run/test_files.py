"""The commands on files: what they print, change, refuse, and leave as it was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from middleware.__main__ import main
from middleware.cassettes.cassette import Cassette, CassetteTurn
from middleware.cassettes.file import cassette_text, read_cassette, write_cassette
from middleware.cassettes.verify import Verified, verified
from tests.cassette.core.desk import REPLAYED, asking, desk, folded, full_disk, streamed
from tests.cassette.core.test_endings import CONFIG, EVENTS, answers, streams
from tests.cassette.run.test_merging import Echo
from tests.cassette.turns import FULL, said, turn
from tests.support.day_one import answering, completion, running
from tests.support.upstreams.loopback import Behaviour, loopback

LONG = "a long question about lamps " * 30
TURNS = (
    turn(1, asking("Who is Ms Lee?"), answer=said("Ms Lee sells lamps.")),
    turn(2, asking(LONG), answer=said("Yes.")),
    replace(FULL, number=3),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    keep(tmp_path, *TURNS)
    return tmp_path


def keep(folder: Path, *turns: CassetteTurn) -> Path:
    path = folder / "cassettes/shop/t.yaml"
    write_cassette(path, cassette_text(Cassette(turns=turns, recorded="2026-11-18", by="1")))
    return path


def kept(folder: Path) -> Cassette:
    return read_cassette(folder / "cassettes/shop/t.yaml")


def test_a_folder_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cassettes/bad.yaml").write_text("turns: [", "utf-8")
    (folder / "cassettes/shop/t.faults.yaml").write_text("[]", "utf-8")
    assert main(["cassette", "ls"]) == 0
    bad, good = capsys.readouterr().out.splitlines()
    assert bad.startswith("bad ")
    assert "cannot be read" in bad
    assert good.split()[:4] == ["shop/t", "2026-11-18", "3", "turns"]
    assert good.endswith("m, sonnet, (not whole), (redacted)")
    assert main(["cassette", "ls", "--dir", "nowhere"]) == 0
    assert "No cassettes are in nowhere/" in capsys.readouterr().out


def test_turns_are_shown_as_a_conversation(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cassette", "show", "shop/t"]) == 0
    told = capsys.readouterr().out
    assert "turn 1  m\n  user: Who is Ms Lee?\n  → assistant: Ms Lee sells lamps.\n" in told
    assert LONG not in told
    assert "turn 3  sonnet  left  redacted  s 1" in told
    assert main(["cassette", "show", "cassettes/shop/t.yaml", "2"]) == 0
    assert LONG in capsys.readouterr().out
    assert main(["cassette", "show", "shop/t", "3", "--wire"]) == 0
    assert "message_start" in capsys.readouterr().out
    assert main(["cassette", "show", "shop/t", "3", "--curl"]) == 0
    assert "curl" in capsys.readouterr().out


REFUSED: Sequence[tuple[Sequence[str], str]] = (
    (["show", "shop/none"], "There is no cassettes/shop/none.yaml"),
    (["show", "shop/t", "9"], "t.yaml has no turn 9: it has 3"),
    (["show", "../t"], "is no name of a cassette"),
    (["show", "cassettes"], "There is no cassettes/cassettes.yaml"),
    (["redact", "shop/t"], "Say what: --value, --path or --pattern"),
    (["redact", "shop/t", "--pattern", "("], "A --path or --pattern cannot be one"),
    (["redact", "shop/t", "--path", "messages["], "A --path or --pattern cannot be one"),
    (["prune", "shop/t", "--report", "r.json"], "r.json is no report"),
    (["import", "vcrpy", "nothing.yaml", "t2"], "nothing.yaml: cannot be read"),
    (["import", "vcrpy", "cassettes/shop/t.yaml", "a b"], "is no name of a cassette"),
    (["export", "shop/t", "-o", "no/out.har", "--to", "har"], "no/out.har cannot be written"),
)


@pytest.mark.parametrize(("arguments", "text"), REFUSED)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    folder: Path, arguments: Sequence[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "cassettes/shop/t.yaml"
    before = path.read_bytes()
    assert main(["cassette", *arguments]) in (1, 2)
    assert text in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_text_is_taken_out_wherever_it_stands(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cassette", "redact", "shop/t", "--value", "Ms Lee"]) == 0
    path = folder / "cassettes/shop/t.yaml"
    assert "Ms Lee" not in path.read_text("utf-8")
    assert [one.redacted for one in kept(folder).turns] == [True, False, True]
    assert "2 of 3 turns" in capsys.readouterr().err

    async def go() -> str:
        async with desk(folder / "cassettes", REPLAYED, "replay") as playing:
            heard = await playing.ask(TURNS[0].body, "shop/t")
            return str(heard.status)

    assert asyncio.run(go()) == "422"


def test_turns_that_no_run_played_are_dropped(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, played in (("a.json", [1]), ("b.json", [1, 3]), ("none.json", [])):
        (folder / name).write_text(json.dumps({"played": played}), "utf-8")
    assert main(["cassette", "prune", "shop/t", "--report", "none.json"]) == 1
    assert len(kept(folder).turns) == 3
    assert main(["cassette", "prune", "shop/t", "--report", "a.json", "b.json"]) == 0
    assert [(one.number, one.model) for one in kept(folder).turns] == [(1, "m"), (2, "sonnet")]
    assert "1 turns dropped, 2 are left" in capsys.readouterr().err


def test_a_cassette_is_exported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "cassettes/shop/t.yaml"
    assert main(["cassette", "export", "shop/t"]) == 0
    assert capsys.readouterr().out == path.read_text("utf-8")
    assert main(["cassette", "export", "shop/t", "--slim", "-o", "slim.yaml"]) == 0
    slim = read_cassette(folder / "slim.yaml")
    assert not any(one.exchanges for one in slim.turns)
    assert [one.answer for one in slim.turns] == [one.answer for one in kept(folder).turns]
    assert main(["cassette", "export", "shop/t", "--to", "vcrpy", "-o", "v.yaml"]) == 0
    assert yaml.safe_load((folder / "v.yaml").read_text("utf-8"))["interactions"]
    assert main(["cassette", "export", "shop/t", "--to", "har"]) == 0
    assert json.loads(capsys.readouterr().out)["log"]["entries"]


def test_what_another_tool_recorded_is_imported_and_played(folder: Path) -> None:
    keep(folder, turn(1, asking("Who?"), answer=said("Me.")))
    source = folder / "cassettes/shop/t.yaml"
    found = json.dumps(
        {
            "version": 1,
            "interactions": [
                {
                    "request": {
                        "method": "POST",
                        "uri": "https://api.example.test/v1/chat/completions",
                        "body": json.dumps(asking("Who?")),
                        "headers": {},
                    },
                    "response": {
                        "status": {"code": 200, "message": "OK"},
                        "headers": {"content-type": ["application/json"]},
                        "body": {"string": completion("Me.").decode()},
                    },
                }
            ],
        }
    )
    (folder / "theirs.yaml").write_text(found, "utf-8")
    assert main(["cassette", "import", "vcrpy", "theirs.yaml", "imported"]) == 0
    assert source.exists()

    async def go() -> object:
        async with desk(folder / "cassettes", REPLAYED, "replay") as playing:
            return folded(await playing.ask(asking("Who?"), "imported"))["content"]

    assert asyncio.run(go()) == "Me."


@pytest.mark.parametrize(
    "arguments",
    [["redact", "shop/t", "--value", "Ms Lee"], ["export", "shop/t", "-o", "out.yaml"]],
)
def test_a_full_disk_is_said_and_leaves_the_file(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "cassettes/shop/t.yaml"
    before = path.read_bytes()
    with full_disk(10):
        assert main(["cassette", *arguments]) == 1
    assert "File too large" in capsys.readouterr().err
    assert path.read_bytes() == before


# Asked again --------------------------------------------------------------------------------------


def asked_again(folder: Path, echo: Echo, *more: str) -> int:
    """Refresh the cassette from an upstream that says what it is told."""

    async def go() -> int:
        async with loopback(answering(echo.seen, echo.reply)) as up:
            text = f'[recall]\nstore = "off"\n{CONFIG.replace("URL", up.url)}'
            (folder / "config.toml").write_text(text, "utf-8")
            return await asyncio.to_thread(main, ["cassette", "refresh", "shop/t", *more])

    return asyncio.run(go())


def test_an_answer_in_other_words_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, *TURNS[:2])
    echo = Echo()
    assert asked_again(folder, echo) == 0
    assert len(echo.seen.requests) == 2
    before = (folder / "cassettes/shop/t.yaml").read_bytes()
    assert asked_again(folder, Echo()) == 0
    assert "t.yaml: nothing changed" in capsys.readouterr().err
    assert (folder / "cassettes/shop/t.yaml").read_bytes() == before
    changed = Echo(**{"Who is Ms Lee?": "Somebody else."})
    assert asked_again(folder, changed) == 0
    first, second = kept(folder).turns
    assert first.answer.message == {"role": "assistant", "content": "Somebody else."}
    assert len(first.exchanges) == len(second.exchanges) == 1
    found = kept(folder)
    assert asyncio.run(verified(found, "t.yaml")) == Verified(found, ())


def test_a_decision_that_changed_is_named_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, *TURNS[:2])
    before = (folder / "cassettes/shop/t.yaml").read_bytes()
    assert asked_again(folder, Echo(**{LONG: "FAIL"})) == 1
    assert "turn 2 is broken" in capsys.readouterr().err
    assert (folder / "cassettes/shop/t.yaml").read_bytes() == before


def test_a_model_that_is_not_there_any_more_is_a_change_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, turn(1, asking("Who?", "gone"), answer=said("Me.")))
    assert asked_again(folder, Echo()) == 1
    assert "turn 1 is broken" in capsys.readouterr().err


def test_asks_that_only_their_order_tells_apart_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = said("Mr Lee.")
    turns = [TURNS[0], replace(TURNS[0], number=2), replace(TURNS[0], number=3, answer=other)]
    keep(folder, *turns, replace(turns[0], number=4, lane="a"))
    assert main(["cassette", "verify", "shop/t"]) == 0
    assert "turns 1, 2, 3 are one ask with several answers" in capsys.readouterr().out
    keep(folder, *turns[:2], replace(turns[2], lane="a"))
    assert main(["cassette", "verify", "shop/t"]) == 0
    assert capsys.readouterr().out == "shop/t: nothing to say\n"


# Of the last requests -----------------------------------------------------------------------------


def last(folder: Path, behaves: Behaviour, body: object, *more: str) -> int:
    """Ask a gateway that records nothing, and make a cassette of what it keeps."""

    async def go() -> int:
        async with loopback(behaves) as up, running(CONFIG.replace("URL", up.url)) as gateway:
            await gateway.session.post(f"{gateway.url}/v1/chat/completions", json=body)
            listed = await gateway.get("/v1/x_usetool/last")
            identity = listed[1]["data"][0]["id"]
            (folder / "config.toml").write_text(CONFIG.replace("URL", up.url), "utf-8")
            command = ["last", identity, "--cassette", "bug.yaml", "--url", gateway.url, *more]
            return await asyncio.to_thread(main, command)

    return asyncio.run(go())


@pytest.mark.parametrize("streams_it", [False, True])
def test_a_request_that_was_not_recorded_becomes_a_cassette(folder: Path, streams_it: bool) -> None:
    body = streamed(asking("Count.")) if streams_it else asking("Count.")
    (folder / "bug.yaml").write_text("another's", "utf-8")
    behaves = streams(*EVENTS) if streams_it else answers(completion("One, two, three."))
    assert last(folder, behaves, body) == 2
    assert (folder / "bug.yaml").read_text("utf-8") == "another's"
    assert last(folder, behaves, body, "--force") == 0
    found = read_cassette(folder / "bug.yaml")
    (one,) = found.turns
    assert one.answer.message == {"role": "assistant", "content": "One, two, three."}
    assert asyncio.run(verified(found, "bug.yaml")) == Verified(found, ())

    async def go() -> object:
        async with desk(folder, REPLAYED, "replay") as playing:
            heard = await playing.ask(body, "bug")
            return folded(heard)["content"], heard.headers["x-usetool-replay"]

    assert asyncio.run(go()) == ("One, two, three.", "bug turn=1 of=1")


def test_of_a_request_that_was_kept_in_part_none_is_made(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    behaves = answers(completion("x" * 600_000))
    assert last(folder, behaves, asking("Much.")) == 1
    assert "only the first 262144 are kept" in capsys.readouterr().err
    assert not (folder / "bug.yaml").exists()


@pytest.mark.parametrize(
    ("path", "text", "status"),
    [
        ("/v1/embeddings", "input", 200),
        ("/api/embed", "input", 200),
        ("/api/embeddings", "prompt", 400),
    ],
)
def test_a_question_for_vectors_becomes_one_where_it_is_asked_as_openai_has_it(
    path: str, text: str, status: int
) -> None:
    async def go() -> int:
        vectors = json.dumps({"data": [{"embedding": [0.5], "index": 0}]}).encode()
        async with (
            loopback(answers(vectors)) as up,
            running(CONFIG.replace("URL", up.url)) as gateway,
        ):
            assert (await gateway.post(path, {"model": "m", text: "a"}))[0] == 200
            listed = await gateway.get("/v1/x_usetool/last")
            identity = listed[1]["data"][0]["id"]
            return (await gateway.get(f"/v1/x_usetool/last/{identity}/cassette"))[0]

    assert asyncio.run(go()) == status
