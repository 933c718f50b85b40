"""Grammars and patterns that could crash their parser are refused; others are taken."""

from __future__ import annotations

import contextlib

import pytest

from adapters.errors import BadRequest
from adapters.protocol import Json
from tests.doors.chat.bodies import ask, body, refused
from tests.linear.measuring import is_within

DEEP = "root ::= " + "(" * 30_000 + "x" + ")" * 30_000
LISTED = 'root ::= "(" * 99 [(]+ # ((\n' + 'item ::= ("(" "x" ")" | "\\"(" [\\](()])*\n' * 400


def held_to(grammar: str) -> list[Json]:
    custom = {"name": "f", "format": {"type": "grammar", "grammar": {"definition": grammar}}}
    return [
        *({name: grammar} for name in ("grammar", "guided_grammar", "ebnf")),
        {"structured_outputs": {"grammar": grammar}},
        {"tools": [{"type": "custom", "custom": custom}]},
    ]


def with_pattern(pattern: str) -> list[Json]:
    schema = {"type": "object", "properties": {"a": {"items": [{"pattern": pattern}]}}}
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    return [{"response_format": form}, {"json_schema": schema}]


GRAMMARS = (
    DEEP,
    "(" * 65,
    "root ::= x\n" * 1001,
    "x" * 65_537,
    '# "\n' + "(" * 65,
    "[]" + "(" * 65,
)
PATTERNS = ("^" + "(" * 30_000, '"' + "(" * 65, "#" + "(" * 65, r"\[" + "(" * 65, "x" * 65_537)
REFUSED = [
    *(fields for grammar in GRAMMARS for fields in held_to(grammar)),
    *(fields for pattern in PATTERNS for fields in with_pattern(pattern)),
]
TAKEN = [
    *(fields for one in (LISTED, "(" * 64, "()" * 9000) for fields in held_to(one)),
    *(fields for one in (r"\(" * 99, "[(]" * 99, "()" * 9000) for fields in with_pattern(one)),
]


@pytest.mark.parametrize("fields", REFUSED, ids=range(len(REFUSED)))
def test_a_grammar_that_could_crash_its_parser_is_refused(fields: Json) -> None:
    error = refused(body(**fields))
    assert "too large" in error.message or "within each other" in error.message
    assert error.param is not None
    assert error.param.split(".")[0].split("[")[0] in fields


@pytest.mark.parametrize("fields", TAKEN, ids=range(len(TAKEN)))
def test_a_grammar_that_somebody_may_write_is_taken(fields: Json) -> None:
    ask(**fields)


@pytest.mark.parametrize("text", ["[", '"', "\\", "#", "(", '["', "[\\", '"\\'])
def test_a_grammar_is_measured_in_linear_time(text: str) -> None:
    def ask_for_each() -> None:
        for fields in (*held_to(text * 30_000 + "(" * 60), *with_pattern(text * 30_000 + "(" * 60)):
            with contextlib.suppress(BadRequest):
                ask(**fields)

    assert is_within(0.25, ask_for_each)
