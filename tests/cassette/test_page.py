"""The page on cassettes: what it shows can be read, and is there."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import pytest
import yaml

from middleware import config
from middleware.cassettes.cassette import Ended
from middleware.cassettes.diff.rules import WORDS, read_diff_rules
from middleware.cassettes.match import read_rules
from middleware.cassettes.match.patterns import WORDS as KINDS
from middleware.cassettes.replay.faults import find_fault, read_faults
from middleware.cli.parser import parser
from middleware.config import keys
from tests.cassette.page import PAGE, PROVIDER, commands, shown, spans
from tests.documents.test_documents import blocks

READERS: Mapping[str, Callable[[str], Any]] = {
    "yaml": yaml.safe_load,
    "toml": tomllib.loads,
    "python": ast.parse,
}


@pytest.mark.parametrize("language", READERS)
def test_every_block_is_of_its_language(language: str) -> None:
    found = blocks(PAGE, language)
    assert found
    for block in found:
        READERS[language](block)


# Commands -----------------------------------------------------------------------------------------


def lines() -> list[str]:
    """Commands in blocks and in sentences, as far as these say what they are about."""
    whole = [span for span in spans() if re.match(r"usetool (record|replay|cassette \w+) \w", span)]
    return [*commands(), *whole]


@pytest.mark.parametrize("line", lines())
def test_every_command_can_be_understood(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    own = words[: words.index("--")] if "--" in words else words
    assert parser().parse_args(own).command


def test_every_option_is_one_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    helped = ""
    for command in ("record", "replay", "last", *(f"cassette {one}" for one in SUBCOMMANDS)):
        with pytest.raises(SystemExit):
            parser().parse_args([*command.split(), "--help"])
        helped += capsys.readouterr().out
    for span in spans():
        for option in re.findall(r"(?<!\S)--[a-z-]+", span):
            assert option in helped or option.startswith("--usetool-"), option


SUBCOMMANDS = ("ls", "show", "diff", "verify", "redact", "refresh", "prune", "import", "export")


def test_every_subcommand_is_named() -> None:
    named = set(re.findall(r"usetool cassette (\w+)", PAGE))
    assert named | {"show"} == set(SUBCOMMANDS)


# Settings -----------------------------------------------------------------------------------------


def test_the_section_has_every_key_with_its_default() -> None:
    said = tomllib.loads(shown("toml", "[cassettes]"))["cassettes"]
    usual = {name: key.default for name, key in keys.CASSETTES.items()}
    assert said == {**usual, "allow": ["replay"], "redact": [], "repeats": "miss"}
    assert config.parse(shown("toml", "[cassettes]") + PROVIDER, environment={}).cassettes


def test_every_mode_is_in_the_table() -> None:
    assert re.findall(r"^\| `(\w+)` \| (?:asked|answered)", PAGE, re.MULTILINE) == [*keys.MODES]


def flow(begin: str) -> Sequence[Any]:
    return [yaml.safe_load(span) for span in spans() if span.startswith(begin)]


def test_rules_of_matching_can_be_meant() -> None:
    table = re.findall(r"^\| (`(?:level|model|repeats|mask).*?) \|", PAGE, re.MULTILINE)
    rules = [yaml.safe_load(one) for row in table for one in re.findall(r"`([^`]+)`", row)]
    assert len(rules) == 7
    for rule in rules[:-1]:
        assert read_rules(rule, "the page")
    masks = flow("{at:")
    assert len(masks) == 2
    for mask in [*masks, {"at": "messages", "what": "date"}]:
        assert read_rules({"mask": [mask]}, "the page").masks


def test_places_and_kinds_of_masks_are_those_there_are() -> None:
    (line,) = [line for line in PAGE.splitlines() if "PLACE is" in line]
    places, _, rest = line.partition("KIND is")
    for place in re.findall(r"`([^`]+)`", places):
        assert read_rules({"mask": [{"at": place, "what": "uuid"}]}, "the page").masks
    named = re.findall(r"`([^`]+)`", rest.partition("regular expression")[0])
    assert sorted(named) == sorted(KINDS)


def test_rules_of_comparing_can_be_meant() -> None:
    said = [*flow("ignore:"), *flow("near:"), *flow("text:")]
    assert len(said) == 3
    for rule in said:
        assert read_diff_rules(rule, "the page").joined(read_diff_rules({}, "")) is not None
    for word in WORDS:
        assert f"`{word}`" in PAGE


def test_every_end_of_an_exchange_is_named() -> None:
    (line,) = [line for line in PAGE.splitlines() if "ended:" in line]
    assert all(re.search(rf"\b{end}\b", line) for end in get_args(Ended))


# Faults -------------------------------------------------------------------------------------------


def test_every_fault_that_is_shown_can_act() -> None:
    rules = read_faults(yaml.safe_load(shown("yaml", "after_event")), "the page")
    acting = {find_fault(rules, turn, "sonnet", nth) for turn in range(1, 9) for nth in range(1, 9)}
    assert acting >= {*rules}


def test_every_fault_in_a_sentence_is_one() -> None:
    (line,) = [line for line in PAGE.splitlines() if line.startswith("A rule has one fault")]
    said = re.findall(r"`((?:garbage|empty|slow|finish|refuse): \w+)`", line)
    assert len(said) == 5
    for one in said:
        assert read_faults(yaml.safe_load(one), "the page")
    (header,) = [span for span in spans() if span.startswith("x-usetool-fault: ")]
    assert read_faults(yaml.safe_load(header.partition(": ")[2]), "the header")


# Jobs ---------------------------------------------------------------------------------------------


def test_the_job_has_no_key_and_fails_for_whatever_was_not_played() -> None:
    job = yaml.safe_load(shown("yaml", "runs-on"))["jobs"]["replay"]
    assert "env" not in job
    assert "secrets." not in shown("yaml", "runs-on")
    (replayed,) = [step["run"] for step in job["steps"] if "replay" in step.get("run", "")]
    assert {"--all-played", "--report"} <= set(replayed.split())
