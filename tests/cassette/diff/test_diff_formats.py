"""What comparing came to, as people and programs read it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest

from middleware.cassettes.cassette import RecordedAnswer
from middleware.cassettes.diff.formats import FORMATS
from middleware.cassettes.diff.outcome import NOISE, CassetteDiff, TurnDiff
from middleware.cassettes.diff.rules import DiffRules, Word
from middleware.cassettes.diff.verdict import Verdict, verdict
from tests.cassette.deciding import ASK, said

EVIL = "a|b`c`\n<script>*x*\x1b[31m\x00\ufffe"


def found(old: RecordedAnswer, new: RecordedAnswer) -> Verdict:
    return verdict(ASK, old, new, DiffRules())


def book(seat: object) -> RecordedAnswer:
    return said(None, ("book", {"seat": seat}))


def diffed(*verdicts: Verdict, fail_on: Word = "different") -> CassetteDiff:
    turns = [TurnDiff(at, each, each.word) for at, each in enumerate(verdicts, 1)]
    return CassetteDiff("old", "new", tuple(turns), fail_on)


SAME = found(said("Yes."), said("Yes."))
WORDED = found(said("Yes, of course."), said("Yes, sure."))
CHANGED = found(book(1), book(2))
BROKEN = found(book(1), book("1"))
EXITS: Sequence[tuple[tuple[Verdict, ...], Word, int]] = (
    ((SAME, WORDED, CHANGED), "different", 0),
    ((SAME, WORDED, CHANGED), "changed", 1),
    ((SAME, WORDED), "worded", 1),
    ((SAME,), "worded", 0),
    ((SAME, BROKEN), "different", 1),
    ((SAME, BROKEN), "broken", 1),
    ((), "different", 0),
)


@pytest.mark.parametrize(("verdicts", "fail_on", "code"), EXITS)
def test_exit_is_one_from_a_word_on(
    verdicts: tuple[Verdict, ...], fail_on: Word, code: int
) -> None:
    diff = diffed(*verdicts, fail_on=fail_on)
    assert diff.exit == code
    assert json.loads(FORMATS["json"](diff))["exit"] == code
    suite = ElementTree.fromstring(FORMATS["junit"](diff))
    assert len(suite.findall("testcase")) == len(verdicts) == int(suite.attrib["tests"])
    assert bool(suite.findall(".//failure")) == bool(code)


def test_failed_questions_go_before() -> None:
    assert CassetteDiff("old", "new", (TurnDiff(1, BROKEN, "broken"),), unanswered=True).exit == 6


def test_text_names_what_differs() -> None:
    assert FORMATS["text"](diffed(SAME, WORDED, CHANGED, BROKEN)) == "\n".join(
        [
            "turn 2: worded",
            "  answer: 15 → 10 characters, 72% alike",
            "turn 3: changed",
            "  book.seat: 1 → 2",
            "turn 4: broken",
            '  book.seat: must be of type "integer", is "1"',
            '  book.seat: 1 → "1"',
            "4 turns: 1 same, 1 worded, 1 changed, 1 broken",
        ]
    )


NOISY = TurnDiff(7, CHANGED, "same", "5/10", "6/10", NOISE)


def test_json_has_the_shape_that_programs_read() -> None:
    said = json.loads(FORMATS["json"](CassetteDiff("old", "new", (NOISY,))))
    (told,) = said["turns"]
    expected = {
        "turn": 7,
        "verdict": "changed",
        "agreement": "5/10",
        "baseline": "6/10",
        "within_noise": True,
    }
    assert expected.items() <= told.items()
    (difference,) = told["differences"]
    assert {
        "path": "book.seat",
        "change": "changed",
        "recorded": 1,
        "now": 2,
    }.items() <= difference.items()
    assert (said["worst"], said["exit"]) == ("same", 0)


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_noise_is_told(form: str) -> None:
    text = FORMATS[form](CassetteDiff("old", "new", (NOISY,)))
    assert NOISE in text
    assert "5/10, old model 6/10" in text


def test_markdown_is_a_table() -> None:
    text = FORMATS["markdown"](diffed(SAME, WORDED, CHANGED))
    assert "| 3 | changed | `book.seat: 1 → 2` |" in text.splitlines()
    assert "| 1 |" not in text


def test_markdown_of_strangers_texts_is_no_markdown() -> None:
    call = found(said(None, ("x", {"a": 1, EVIL: EVIL})), said(None, ("x", {"a": 1, EVIL: 2})))
    text = FORMATS["markdown"](diffed(call, found(said(EVIL), said(EVIL + "!"))))
    (row,) = [line for line in text.splitlines() if line.startswith("| 1 |")]
    assert row.replace("\\|", "").count("|") == 4
    assert row.count("`") == 2
    assert "<script>" not in text.replace(row, "")


def test_markdown_fits_a_comment() -> None:
    many = diffed(*[found(said("a" * 5000), said("b" * 5000)), CHANGED] * 1000)
    text = FORMATS["markdown"](many)
    assert len(text) < 65_536
    assert "more" in text


def test_junit_reads_back_whatever_a_model_said() -> None:
    odd = found(said(EVIL, ("x", {"a": EVIL})), said(EVIL + "\ud800", ("y", {"a": EVIL})))
    suite = ElementTree.fromstring(FORMATS["junit"](diffed(odd, SAME, WORDED)))
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.attrib == {"type": "different", "message": "different"}
    assert "x: removed" in (failure.text or "")
    assert suite.find("testcase[@name='turn 3']/system-out") is not None
