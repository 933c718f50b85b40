"""The gateway's own cassettes: read as they were, played as they were, and not if it changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from openai import OpenAI

from middleware.__main__ import main
from middleware.cassettes.setup import RunOptions, studio_of
from middleware.cassettes.studio import Studio
from middleware.cli.launch.gateway import private_gateway
from middleware.config import read
from tests.replays.scenes import FOLDER, SCENES

MOST_BYTES = 300_000
FILES = sorted(str(path) for path in FOLDER.glob("*.yaml"))


@contextmanager
def replaying(name: str) -> Iterator[tuple[OpenAI, Studio]]:
    """A client of a gateway that answers from a cassette, as `usetool replay` starts it."""
    config = read({"cassettes": {"mode": "replay"}}, "replay")
    studio = studio_of(config, print, RunOptions(mode="replay", name=name, folder=str(FOLDER)))
    with (
        private_gateway(config, studio) as address,
        OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        yield client, studio


def test_each_scene_has_its_cassette_and_all_are_small() -> None:
    assert {Path(path).stem for path in FILES} == SCENES.keys()
    assert sum(Path(path).stat().st_size for path in FILES) < MOST_BYTES


def test_this_version_sends_and_reads_what_was_recorded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["cassette", "verify", *FILES]) == 0, capsys.readouterr().out


Edit = tuple[str, str]
EDITS: Mapping[str, tuple[str, Edit, str]] = {
    "a translation that loses a field": (
        "agent",
        ("name: claude-sonnet-4-5}", "name: claude-sonnet-4-5, drop: [stop]}"),
        "encode drift turn 1: upstream[0].stop_sequences removed",
    ),
    "one that has a new field": (
        "agent",
        ("{display: summarized, ", "{"),
        "encode drift turn 3: upstream[0].thinking.display added",
    ),
    "a thought that comes back otherwise": (
        "agent",
        (
            "            - {type: thinking, thinking: 'Both",
            "            - {type: thinking, thinking: 'Our",
        ),
        "encode drift turn 3: upstream[0].messages[3].content[0].thinking changed",
    ),
    "the words of a second question": (
        "by-prompt",
        ("corrected block only", "corrected block alone"),
        "encode drift turn 1: upstream[1].messages[3].content changed",
    ),
    "what an answerer is told of a thought": (
        "pipeline",
        ("prepared for you", "prepared for us"),
        "encode drift turn 1: upstream[1].messages[0].content[0].text changed",
    ),
    "what is embedded": (
        "embeddings",
        ("json: {model: vectors-1, input: [snow", "json: {model: vectors-1, input: [rain"),
        "encode drift turn 1: upstream[0].input[0] changed",
    ),
    "text of an answer": (
        "agent",
        ('"text":"Then "', '"text":"Well "'),
        "decode drift turn 4: message.content changed",
    ),
    "what an answer cost": (
        "agent",
        ('"usage":{"output_tokens":5}', '"usage":{"output_tokens":6}'),
        "decode drift turn 1: usage.completion_tokens changed",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_translation_that_changes_is_named_with_its_turn_and_field(
    edit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, (recorded, changed), line = EDITS[edit]
    text = (FOLDER / f"{name}.yaml").read_text("utf-8")
    assert recorded in text
    other = tmp_path / "other.yaml"
    other.write_text(text.replace(recorded, changed, 1), "utf-8")
    assert main(["cassette", "verify", str(other)]) == 1
    assert f"  {line}\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", SCENES)
def test_who_was_recorded_can_ask_all_of_it_again(name: str) -> None:
    with replaying(name) as (client, studio):
        SCENES[name]().ask(client)
        told = studio.status(name, "")
    assert (told["unused"], told["missed"]) == ([], [])


def test_an_agent_comes_to_the_same_end_as_when_it_was_recorded() -> None:
    with replaying("agent") as (client, _):
        said = SCENES["agent"]().ask(client)
    assert said == ["沈阳 is colder: -12°C 🌨️, Oslo -3°C.", "Then take a coat."]
