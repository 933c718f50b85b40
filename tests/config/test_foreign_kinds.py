"""A provider of another distribution: the very code of docs/adapters.md, installed and used."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from adapters.protocol import ChatRequest
from adapters.wire.http import Link, Transport
from tests.support.paths import ROOT
from tests.support.upstreams.loopback import Peer, loopback

PAGE = (ROOT / "docs/adapters.md").read_text("utf-8")
CODE, ENTRY, STANZA = re.findall(r"^```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASK = """
import asyncio, sys
from adapters.protocol import ChatRequest
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from tests.support.fold import fold

async def ask():
    transport = Transport()
    found = build(config.load(sys.argv[1]), transport).find("clever")
    hello = {"role": "user", "content": "Hello"}
    answer = await fold(found.stream(ChatRequest("clever", (hello,), params={"seed": 1})))
    print(answer.text, answer.reason, [note.field for note in answer.receipt])
    await transport.close()

asyncio.run(ask())
"""


def install(folder: Path, code: str = CODE, entry: str = ENTRY) -> None:
    (folder / "acme_usetool.py").write_text(code)
    described = folder / "acme_usetool-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-usetool\nVersion: 1.0\n")
    points = entry.replace("[project.entry-points.", "[").replace('"', "")
    (described / "entry_points.txt").write_text(points)


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


def check(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "config.toml").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "middleware", "check", "--config", str(folder / "config.toml")],
        cwd=folder, env=environment(folder), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_page_shows_a_whole_provider_in_few_lines() -> None:
    assert len([line for line in CODE.splitlines() if line.strip()]) <= 80


def test_a_kind_of_another_distribution_is_configured_and_checked(tmp_path: Path) -> None:
    install(tmp_path)
    done = check(tmp_path, STANZA)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 of 1 models available" in done.stdout
    assert "tools emulated" in done.stdout or "EmulatedTools › Breaker › Acme" in done.stdout
    wrong = check(tmp_path, STANZA.replace("mood =", "mod ="))
    assert wrong.returncode != 0
    assert "upstreams.ours.options.mod: is no key here. Did you mean 'mood'?" in wrong.stderr


def test_what_searches_is_named_by_its_kind(tmp_path: Path) -> None:
    search = 'options=Options, search=print, base_url="http://127.0.0.1:1"'
    install(tmp_path, CODE.replace("options=Options", search))
    pipeline = '[models.both]\npipeline = "reason-then-answer"\nsearch = "acme"\n'
    done = check(tmp_path, f'{STANZA}{pipeline}reasoner = "clever"\nanswerer = "clever"\n')
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 of 2 models available" in done.stdout


async def serve(peer: Peer, told: list[dict[str, object]]) -> None:
    _, body = await peer.request()
    told.append(json.loads(body))
    await peer.start("content-type: application/x-ndjson")
    await peer.chunk(b'{"text": "Hi."}\n{"end": "stop", "tokens": [3, 1]}\n')
    await peer.chunk(b"")


def test_it_answers_with_options_of_its_own(tmp_path: Path) -> None:
    install(tmp_path)
    told: list[dict[str, object]] = []

    async def asked() -> bytes:
        async with loopback(lambda peer: serve(peer, told)) as upstream:
            path = tmp_path / "config.toml"
            path.write_text(STANZA.replace("http://127.0.0.1:9000", upstream.link.base_url))
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", ASK, str(path)),
                cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE,
            )  # fmt: skip
            return (await process.communicate())[0]

    assert asyncio.run(asked()) == b"Hi. stop ['seed']\n"
    turns = [{"from": "user", "text": "Hello"}]
    assert told == [{"model": "clever", "turns": turns, "mood": "warm", "limit": 1000}]


def test_it_names_what_it_cannot_say() -> None:
    acme = ModuleType("acme_usetool")
    exec(compile(CODE, "acme_usetool.py", "exec", dont_inherit=True), acme.__dict__)
    messages = (
        {"role": "user", "content": "a", "name": "Ann", "mark": 1},
        {"role": "assistant", "content": "b", "reasoning_content": "hm", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "c"},
    )
    link = Link("ours", "http://127.0.0.1:9", Transport())
    limits = {"max_completion_tokens": 7, "max_tokens": 9}
    leaf = acme.KIND.connect(acme.KIND.settings(link))
    (planned,) = leaf.plan(ChatRequest("m", messages, params=limits))
    assert planned.body["limit"] == 7
    assert [note.field for note in planned.receipt] == [
        *("messages.name", "messages.tool_calls", "messages.tool_call_id"),
        *("messages.reasoning_content", "messages[0].mark"),
    ]


@pytest.mark.parametrize(
    ("code", "entry", "words"),
    [
        ("1 / 0", ENTRY, "cannot be imported (ZeroDivisionError: division by zero)"),
        ("KIND = 3", ENTRY, "is no Kind with the name 'acme': it is of type int"),
        (CODE, ENTRY.replace("KIND", "GONE"), "has no attribute 'GONE'"),
        (
            CODE.replace('name="acme"', 'name="amce"'),
            ENTRY,
            "is no Kind with the name 'acme': it is named 'amce'",
        ),
        (CODE.replace("options=Options", "options=int"), ENTRY, "TypeError"),
    ],
)
def test_a_kind_that_cannot_be_used_is_a_mistake_of_the_config(
    tmp_path: Path, code: str, entry: str, words: str
) -> None:
    install(tmp_path, code, entry)
    done = check(tmp_path, f'{STANZA}mood = "warm"\nabilities = {{ loud = true }}\n')
    assert "upstreams.ours.kind: is 'acme', but 'acme_usetool:" in done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1  # its options may be good


BESIDE = "import adapters, sys; adapters.__path__.append(sys.argv.pop(1)); "


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (CODE.replace('name="acme"', 'name="amce"'), "with the name 'acme': it is named 'amce'."),
        (CODE.replace("KIND =", "KINDS ="), "with the name 'acme': it is of type NoneType."),
    ],
)
def test_so_is_one_beside_ours_that_has_another_name_than_its_folder(
    tmp_path: Path, code: str, words: str
) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme/__init__.py").write_text(code)
    config = tmp_path / "config.toml"
    config.write_text(STANZA)
    run = "from middleware.__main__ import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", BESIDE + run, str(tmp_path), "check", "--config", str(config)],
        cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    place = "upstreams.ours.kind: is 'acme', but 'adapters.acme:KIND' is no Kind"
    assert f"{place} {words}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ('timeouts={"frist_event": 3}', "kind.timeouts.frist_event: is no key here. Did you mean"),
        ('timeouts={"idle": -1}', "kind.timeouts.idle: is -1, but must be"),
        ('emulation={"holdd": 3}', "kind.emulation.holdd: is no key here. Did you mean 'hold'?"),
        ("connect=lambda settings: settings.gone", "Its kind failed: AttributeError: 'Settings'"),
    ],
)
def test_what_a_kind_says_of_itself_is_checked_too(tmp_path: Path, told: str, said: str) -> None:
    code = CODE.replace("connect=Acme", told if "connect" in told else f"connect=Acme, {told}")
    install(tmp_path, code)
    done = check(tmp_path, STANZA)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
