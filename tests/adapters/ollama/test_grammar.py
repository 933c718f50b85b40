"""What a real Ollama refuses in `format`, or makes no JSON of, is left out of it and named."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.ollama.grammar import grammar_subset
from adapters.protocol import Json

TEXT: Json = {"type": "string"}
QUOTED, TWO_LINES = 'a "b"', "a\nb"


def holding(member: Any) -> Json:
    return {"type": "object", "properties": {"x": member}, "required": ["x"]}


@pytest.mark.parametrize(
    "member",
    [
        TEXT,
        {"enum": ["a", 1, None, "沈阳 🌨", "a\\b"]},
        {"const": "q"},
        {"type": "string", "pattern": "^[a-z]{2,4}(-[0-9]+)*$"},
        {"type": ["string", "null"], "title": QUOTED, "description": TWO_LINES},
        {"anyOf": [TEXT, {"$ref": "#/$defs/A"}], "additionalProperties": False},
        holding({"type": "array", "items": {"enum": ["a b"]}}),
    ],
)
def test_what_its_grammar_can_say_goes_up_as_it_is(member: Json) -> None:
    schema = holding(member)
    assert grammar_subset(schema) == (schema, ())


@pytest.mark.parametrize(
    ("member", "left", "lost"),
    [
        ({"type": "string", "enum": [QUOTED, "c"]}, TEXT, ("enum",)),
        ({"enum": [TWO_LINES]}, TEXT, ("enum",)),
        ({"enum": [QUOTED, 1]}, {}, ("enum",)),
        ({"const": QUOTED}, TEXT, ("const",)),
        ({"not": TEXT}, {}, ("not",)),
        (
            {"type": "string", "maxLength": 5000, "minLength": 2},
            {**TEXT, "minLength": 2},
            ("maxLength",),
        ),
        (True, {}, ()),
        (False, {}, ()),
    ],
)
def test_what_it_cannot_say_is_left_out_and_named(
    member: Any, left: Json, lost: tuple[str, ...]
) -> None:
    assert grammar_subset(holding(member)) == (holding(left), lost)
    assert grammar_subset({"type": "array", "items": holding(member)})[0]["items"] == holding(left)


@pytest.mark.parametrize(
    "pattern", ["a", "^(?!a)b$", r"^\d{3}$", '^a"b$', "^.+$", "^[^@]+$", "^[!-~]$", "^a", None]
)
def test_only_a_simple_whole_pattern_is_enforced(pattern: Any) -> None:
    assert grammar_subset({"type": "string", "pattern": pattern}) == (TEXT, ("pattern",))


@pytest.mark.parametrize("name", [QUOTED, TWO_LINES])
def test_an_object_with_a_name_it_cannot_say_is_any_object(name: str) -> None:
    schema = holding({**holding(TEXT), "additionalProperties": False, "description": "d"})
    schema["properties"]["x"]["properties"][name] = TEXT
    assert grammar_subset(schema) == (
        holding({"type": "object", "description": "d"}),
        ("properties",),
    )


@pytest.mark.parametrize("definitions", ["$defs", "definitions"])
def test_what_is_only_referred_to_is_looked_at_too(definitions: str) -> None:
    schema = {**holding({"$ref": f"#/{definitions}/A"}), definitions: {"A": {"enum": [QUOTED]}}}
    assert grammar_subset(schema) == ({**schema, definitions: {"A": TEXT}}, ("enum",))


def test_a_schema_without_end_has_one() -> None:
    schema: Json = {}
    for _ in range(200):
        schema = holding(schema)
    assert grammar_subset(schema)[0] != schema
