"""The model list: what a model can do, and what is away."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.server.upstreams import by_id, ollama
from tests.support.day_one import Json, Seen, answering, running
from tests.support.paths import ROOT
from tests.support.upstreams.loopback import loopback

KEYLESS = """
[upstreams.claude]
kind = "claude"
api_key = "env:CLAUDE"
[upstreams.deepseek]
kind = "deepseek"
api_key = "env:DEEPSEEK"
[upstreams.openai]
kind = "compatible"
base_url = "https://api.openai.com/v1"
api_key = "env:OPENAI"
[models.sonnet]
upstream = "claude"
name = "claude-sonnet-5-5"
[models.old]
upstream = "claude"
name = "claude-3-haiku-20240307"
abilities = { vision = false }
[models."c/*"]
upstream = "claude"
name = "claude-*"
[models.deepseek]
upstream = "deepseek"
name = "deepseek-v4-pro"
[models.gpt]
upstream = "openai"
name = "gpt-4o"
[models.two]
pipeline = "reason-then-answer"
reasoner = "deepseek"
answerer = "sonnet"
"""


def test_what_a_model_can_do_is_told_without_its_key_too() -> None:
    names = ("sonnet", "old", "c/opus-4-5", "deepseek", "gpt", "two")

    async def told(environment: Mapping[str, str]) -> dict[str, Json]:
        async with running(KEYLESS, environment) as gateway:
            return {name: (await gateway.get(f"/v1/models/{name}"))[1] for name in names}

    keys = dict.fromkeys(("CLAUDE", "DEEPSEEK", "OPENAI"), "k")
    with_keys, without = asyncio.run(told(keys)), asyncio.run(told({}))
    for name in names:
        for member in ("context_length", "max_output_tokens"):
            assert with_keys[name].get(member) == without[name].get(member)
        for member in ("abilities", "model_info"):
            assert with_keys[name]["x_usetool"][member] == without[name]["x_usetool"][member]
        assert not without[name]["x_usetool"]["available"]
    info = without["sonnet"]["x_usetool"]["model_info"]
    assert (info["vision"], info["structured_output"], info["family"]) == (
        *(True, True), "claude-4-sonnet",
    )  # fmt: skip
    assert without["sonnet"]["x_usetool"]["abilities"]["reasoning"]
    assert not without["old"]["x_usetool"]["abilities"]["vision"]


AWAY = """
[upstreams.home]
kind = "ollama"
base_url = "URL"
[upstreams.far]
kind = "compatible"
base_url = "URL/v1"
api_key = "env:NO_SUCH_KEY"
[upstreams.demo]
kind = "scripted"
[models."home/*"]
upstream = "home"
name = "*"
[models.able]
upstream = "home"
name = "able:8b"
options = { num_ctx = 4096 }
[models.gone]
upstream = "home"
name = "gone:1b"
[models.cloud]
upstream = "home"
name = "large:1t-cloud"
[models.far]
upstream = "far"
[models.demo]
upstream = "demo"
"""


def lines(text: str, path: Path) -> tuple[str, str]:
    """What `usetool check` and `usetool models` say of a config."""
    path.write_text(f'[recall]\nstore = "off"\n{text}', "utf-8")
    said = [
        subprocess.run(
            [sys.executable, "-m", "middleware", command, "--config", str(path)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        ).stdout
        for command in ("check", "models")
    ]  # fmt: skip
    return said[0], said[1]


def test_clients_are_shown_what_can_answer_and_check_agrees(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            loopback(answering(Seen(), ollama)) as up,
            running(AWAY.replace("URL", up.url)) as gateway,
        ):
            able = ["home/plain:1b", "home/thinker:7b", "able", "cloud", "demo"]
            shown = by_id((await gateway.get("/v1/models"))[1])
            assert [*shown] == ["home/able:8b", *able]
            assert all(one["x_usetool"]["available"] for one in shown.values())
            lengths = [shown[name]["context_length"] for name in ("able", "home/able:8b")]
            assert lengths == [4096, 40960]
            every = by_id((await gateway.get("/v1/models?all=true"))[1])
            assert every.keys() - shown.keys() == {"gone", "far"}
            assert "ollama pull gone:1b" in every["gone"]["x_usetool"]["reason"]
            asked = asyncio.to_thread(lines, AWAY.replace("URL", up.url), tmp_path / "a.toml")
            check, models = await asked
            assert "4 of 6 models available" in check
            assert "does not have 'gone:1b'" in check
            assert models.count("available") == 4

    asyncio.run(run())


def test_what_is_away_is_shown_to_nobody(tmp_path: Path) -> None:
    text = AWAY.replace("URL", "http://127.0.0.1:9")

    async def run() -> None:
        async with running(text) as gateway:
            assert [*by_id((await gateway.get("/v1/models"))[1])] == ["demo"]
            every = by_id((await gateway.get("/v1/models?all=1"))[1])
            assert every["home/*"]["x_usetool"]["available"] is False
            assert every["able"]["x_usetool"]["available"] is False
            assert every["able"]["context_length"] == 4096

    asyncio.run(run())
    check, models = lines(text, tmp_path / "a.toml")
    assert "1 of 6 models available" in check
    assert "4096 tokens" in check
    assert models.count("available") == 1
