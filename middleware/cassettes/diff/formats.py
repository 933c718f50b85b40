"""What comparing came to, in words for people and in forms for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from xml.etree.ElementTree import Element, SubElement, tostring

from adapters.shared.schema.walk import clipped, shown
from middleware.cassettes.diff.outcome import NOISE, CassetteDiff, TurnDiff
from middleware.cassettes.diff.rules import DecisionChange
from middleware.server.terminal import one_line

_COMPARED = 400
"""Characters of two texts whose likeness is measured."""
_TOLD = 5
"""Differences of a turn in a table."""
_MOST = 60_000
"""Characters of a table: a comment at GitHub may have 65,536."""


def as_text(diff: CassetteDiff) -> str:
    lines = []
    for turn in _other(diff):
        lines.append(f"turn {_number(turn)}: {_headline(turn)}")
        lines += [f"  {_line(each)}" for each in turn.verdict.differences]
    return "\n".join([*lines, diff.counts()])


def as_json(diff: CassetteDiff) -> str:
    turns = [
        {
            **turn._asdict(),
            "verdict": turn.verdict.word,
            "differences": [
                {**each._asdict(), "change": each.change} for each in turn.verdict.differences
            ],
            "within_noise": turn.note == NOISE,
        }
        for turn in diff.turns
    ]
    whole = {"turns": turns, "worst": diff.worst, "exit": diff.exit}
    # What stands where one side has nothing is no JSON.
    return json.dumps(whole, ensure_ascii=False, indent=1, default=lambda _: None)


def as_markdown(diff: CassetteDiff) -> str:
    """A comment of a pull request: what is the same is only counted."""
    lines = [
        f"### {_code(diff.old)} against {_code(diff.new)}: {diff.worst}\n\n{diff.counts()}.\n",
        "| turn | verdict | differences |",
        "| --- | --- | --- |",
    ]
    rows = [_row(turn) for turn in _other(diff)]
    fitting = sum(size <= _MOST for size in accumulate(map(len, rows)))
    if more := len(rows) - fitting:
        rows[fitting:] = [f"\n… and {more} more"]
    return "\n".join([*lines, *rows])


def as_junit(diff: CassetteDiff) -> str:
    # What cannot be printed cannot stand in XML either.
    failing = [turn for turn in diff.turns if diff.fails(turn.counted)]
    name, suite = one_line(f"{diff.old} against {diff.new}"), Element("testsuite")
    suite.attrib = {"name": name, "tests": str(len(diff.turns)), "failures": str(len(failing))}
    for turn in diff.turns:
        case = SubElement(suite, "testcase", classname=name, name=f"turn {_number(turn)}")
        head = one_line(_headline(turn))
        told = "\n".join([one_line(_line(each)) for each in turn.verdict.differences])
        if diff.fails(turn.counted):
            SubElement(case, "failure", type=turn.counted, message=head).text = told
        elif told:
            SubElement(case, "system-out").text = f"{head}\n{told}"
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suite, encoding="unicode")}'


FORMATS: Mapping[str, Callable[[CassetteDiff], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "json": as_json,
    "junit": as_junit,
}


def _other(diff: CassetteDiff) -> Sequence[TurnDiff]:
    return [turn for turn in diff.turns if turn.verdict.word != "same"]


def _number(turn: TurnDiff) -> str:
    return "-" if turn.turn is None else str(turn.turn)


def _headline(turn: TurnDiff) -> str:
    rates = f", agreement {turn.agreement}" if turn.agreement else ""
    rates += f", old model {turn.baseline}" if turn.baseline else ""
    return f"{turn.verdict.word}{rates}{': ' * bool(turn.note)}{turn.note}"


def _line(found: DecisionChange) -> str:
    path, old, new = clipped(found.path), found.recorded, found.now
    if found.why:
        return found.why
    if found.word == "worded" and found.change == "changed":
        ratio = SequenceMatcher(None, old[:_COMPARED], new[:_COMPARED], autojunk=False).ratio()
        return f"{path}: {len(old):,} → {len(new):,} characters, {ratio:.0%} alike"
    if found.change == "changed":
        return f"{path}: {shown(old)} → {shown(new)}"
    return f"{path}: {found.change} {shown(new if found.change == 'added' else old)}"


def _row(turn: TurnDiff) -> str:
    told = [_code(_line(each)) for each in turn.verdict.differences[:_TOLD]]
    if (more := len(turn.verdict.differences) - _TOLD) > 0:
        told.append(f"and {more} more")
    return f"| {_number(turn)} | {_headline(turn)} | {'<br>'.join(told)} |"


def _code(text: str) -> str:
    """Text of strangers in which nothing is markdown, in a cell of a table."""
    plain = one_line(text).replace("`", "'").replace("|", "\\|")
    return f"`{plain}`"
