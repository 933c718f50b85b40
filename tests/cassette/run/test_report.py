"""What a run is told to be: its exit code, its text, and the files that programs read."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from middleware.cassettes.cassette import Mode
from middleware.cassettes.lint import Lint
from middleware.cassettes.match import Explanation
from middleware.cassettes.match.explanation import Difference
from middleware.cassettes.replay import Drift
from middleware.cassettes.replay.playback import Missed
from middleware.cassettes.report import (
    ReportedProblem,
    RunReport,
    UnknownReport,
    as_text,
    exit_code,
    find_rendering,
    rendered,
)

FINE = RunReport(cassette="shop", mode="replay", turns=3, played=(1, 2, 3), asks=3, code=0)
RECORDED = RunReport(cassette="shop", mode="record", turns=3, asks=3, code=0)
DIFFERENCE = Difference("messages[0].content", "careful", "careless")
TOLD = "shop has no turn like this.\n  messages[0].content  recorded careful  now careless"
MISS = Missed("cassette_miss", Explanation(TOLD, 2, (DIFFERENCE,)))
CARRIED = {"turn": 4, "path": "a", "recorded": "o-1", "now": "o-2"}
DRIFT = (1, Drift("encode", "up.stop"))
CUT = ((2, "cut"),)
# Each alone, with the code it ends with; in the order in which one goes before another.
FAULTS: tuple[tuple[int, dict[str, Any]], ...] = (
    (2, {"problems": (ReportedProblem("a name that is none", 2),)}),
    (6, {"problems": (ReportedProblem("a question failed", 6),)}),
    (5, {"asks": 0}),
    (3, {"missed": (MISS,)}),
    (3, {"unfired": ("t.faults.yaml, rule 2",)}),
    (4, {"unused": (2,), "all_played": True}),
    (4, {"problems": (ReportedProblem("the disk is full"),)}),
    (4, {"dropped": 2}),
    (1, {"problems": (ReportedProblem("other decisions", 1),)}),
)


def with_all(report: RunReport, *changes: dict[str, Any]) -> RunReport:
    problems = tuple(one for change in changes for one in change.get("problems", ()))
    for change in changes:
        report = replace(report, **change)
    return replace(report, problems=problems)


def read_json(report: RunReport) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(rendered(report, "r.json"))
    return read


# The exit code ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "change"), FAULTS)
def test_each_fault_has_its_code(code: int, change: dict[str, Any]) -> None:
    assert exit_code(FINE) == 0
    assert exit_code(with_all(FINE, change)) == code


@pytest.mark.parametrize(("first", "second"), [*combinations(FAULTS, 2)])
def test_the_gravest_goes_before(
    first: tuple[int, dict[str, Any]], second: tuple[int, dict[str, Any]]
) -> None:
    assert exit_code(with_all(FINE, second[1], first[1])) == first[0]


@pytest.mark.parametrize(("_", "change"), FAULTS)
def test_the_commands_own_code_goes_before_all(_: int, change: dict[str, Any]) -> None:
    assert exit_code(replace(with_all(FINE, change), code=7)) == 7


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (replace(FINE, unused=(2,)), 0),
        (replace(FINE, code=None, asks=0), 0),
        (replace(RECORDED, not_whole=CUT), 4),
        (replace(RECORDED, not_whole=CUT, errors_meant=True), 0),
        (replace(FINE, not_whole=CUT), 0),
        (replace(RECORDED, mode="auto", not_whole=CUT), 4),
        (replace(FINE, lint=(Lint("a", "date", "b", "c"),)), 0),
        (replace(FINE, drift=(DRIFT,)), 0),
    ],
)
def test_what_fails_a_run_and_what_is_only_told(report: RunReport, code: int) -> None:
    assert exit_code(report) == code


# For people ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("replay", "usetool replay shop: played 2 of 3, 1 unused, 1.2 s"),
        ("auto", "usetool auto shop: played 2 of 3, 1 unused, 1.2 s"),
        ("record", "usetool record shop: 3 turns, 1 unused, 1.2 s"),
    ],
)
def test_the_first_line_says_what_was_played(mode: Mode, words: str) -> None:
    report = replace(FINE, mode=mode, played=(1, 2, 2), unused=(3,), seconds=1.23)
    assert as_text(report).splitlines()[0] == words


def test_a_fine_run_has_one_line() -> None:
    assert as_text(FINE) == "usetool replay shop: played 3 of 3, 0.0 s"


def test_lint_can_be_pasted() -> None:
    date = Lint("messages[0].content", "date", "2026-11-18", "{at: 'm', what: date}")
    text = as_text(replace(RECORDED, lint=(date, date)))
    pasted = "match:\n  mask:\n  - {at: 'm', what: date}  # messages[0].content: \"2026-11-18\""
    assert text.endswith(pasted)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"asks": 0}, "has to take its address from OPENAI_BASE_URL"),
        ({"unused": (9, 1, 2, 3, 7)}, "Not played: 9, 1, 2, 3, 7."),
        ({"not_whole": CUT, "mode": "record"}, "Turn 2 is not whole: cut. Record it again"),
        ({"unfired": ("t.faults.yaml, rule 2",)}, "nothing was tested with it: t.faults.yaml, rul"),
        ({"dropped": 1}, "1 turn could not be written"),
        ({"drift": (DRIFT,)}, "  turn 1: encode up.stop"),
        ({"problems": (ReportedProblem("The disk is full."),)}, "The disk is full."),
    ],
)
def test_everything_is_told_in_every_form(change: dict[str, Any], words: str) -> None:
    report = replace(FINE, **change)
    assert words in as_text(report)
    assert words in rendered(report, "r.md")


def test_a_thousand_misses_do_not_flood_a_terminal() -> None:
    report = replace(FINE, missed=(MISS,) * 1000)
    assert len(as_text(report).splitlines()) < 200
    assert as_text(report).endswith("… and 950 more")
    assert len(read_json(report)["missed"]) == 1000


# For programs -------------------------------------------------------------------------------------


def test_json_has_the_keys_that_programs_read() -> None:
    report = replace(
        FINE,
        missed=(MISS,),
        unused=(2,),
        not_whole=CUT,
        drift=(DRIFT,),
        substitutions=(CARRIED,),
        lint=(Lint("m", "date", "2026-11-18", "{at: m, what: date}"),),
        seconds=1.5,
    )
    read = read_json(report)
    expected = {
        "cassette": "shop",
        "mode": "replay",
        "turns": 3,
        "played": [1, 2, 3],
        "missed": [
            {
                "code": "cassette_miss",
                "message": TOLD,
                "nearest": 2,
                "differences": [
                    {
                        "path": "messages[0].content",
                        "recorded": "careful",
                        "now": "careless",
                        "hint": "",
                    }
                ],
            }
        ],
        "unused": [2],
        "not_whole": [{"turn": 2, "ended": "cut"}],
        "drift": [{"turn": 1, "kind": "encode", "path": "up.stop", "change": ""}],
        "substitutions": [{"turn": 4, "path": "a", "recorded": "o-1", "now": "o-2"}],
        "lint": [{"at": "m", "what": "date", "value": "2026-11-18", "rule": "{at: m, what: date}"}],
        "seconds": 1.5,
        "exit": 3,
    }
    assert {name: read[name] for name in expected} == expected


def test_junit_has_a_case_for_each_failure_or_one_that_passes() -> None:
    (passed,) = ElementTree.fromstring(rendered(FINE, "R.XML"))
    assert not [*passed]
    report = replace(FINE, played=(1, 3), unused=(2,), missed=(MISS, MISS))
    suite = ElementTree.fromstring(rendered(report, "R.XML"))
    assert [case.get("name") for case in suite] == ["miss 1", "miss 2"]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    failure = suite[1].find("failure")
    assert failure is not None
    assert failure.get("message") == "shop has no turn like this."
    assert "careless" in (failure.text or "")


@pytest.mark.parametrize(("_", "change"), FAULTS)
def test_junit_fails_whenever_the_run_does(_: int, change: dict[str, Any]) -> None:
    suite = ElementTree.fromstring(rendered(with_all(RECORDED, change), "r.xml"))
    assert len(suite.findall(".//failure")) == 1


def test_markdown_keeps_what_strangers_wrote_as_code() -> None:
    miss = Missed("cassette_miss", Explanation("```\n# <script>"))
    text = rendered(replace(FINE, missed=(miss,)), "r.md")
    assert text.startswith("### usetool replay shop: played 3 of 3, 1 missed, 0.0 s\n\n**miss 1**")
    assert "\n    ```\n    # <script>\n" in text


@given(st.text(st.characters()), st.text(st.characters(max_codepoint=0x20)))
@example("\uffff\ud800", "\ufffe")
def test_every_text_can_be_written_and_read(one: str, other: str) -> None:
    miss = Missed("cassette_miss", Explanation(one, None, (Difference("p", other, [one]),)))
    report = replace(FINE, missed=(miss,))
    ElementTree.fromstring(rendered(report, "r.xml"))
    for name in ("r.xml", "r.md", "r.json"):
        rendered(report, name).encode("utf-8")
    if "\ufffe" not in one and "\uffff" not in one:
        assert read_json(report)["missed"][0]["message"] == one


@pytest.mark.parametrize("name", ["report", "report.yaml", "report.json.txt", ".json"])
def test_another_ending_is_a_mistake(name: str) -> None:
    with pytest.raises(UnknownReport, match=r"ends in \.json, \.xml \(JUnit\) or \.md"):
        find_rendering(name)
