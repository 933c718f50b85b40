"""JSON Schema: what fits, and what does not and where."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.shared.schema import mismatch

FITS: list[tuple[Any, Any]] = [
    (1, {"type": "integer"}),
    (1.0, {"type": "integer"}),
    (None, {"type": ["string", "null"]}),
    ("a", {"type": "unheard-of"}),
    ({"a": 1}, {"required": ["a"], "properties": {"a": {"minimum": 1, "maximum": 1}}}),
    ("abc", {"minLength": 3, "maxLength": 3, "pattern": "^a.c$"}),
    ([1, "x"], {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}),
    (5, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
    ({"x_1": 2}, {"patternProperties": {"^x_": {}}, "additionalProperties": False}),
    ("a" * 60, {"pattern": "^(a+)+$b"}),
    ("x", {"pattern": "[unclosed"}),
    (1, True),
    (1, {"minimum": "hostile", "enum": 7, "required": 3, "anyOf": {}}),
    ({"a": {"a": {}}}, {"properties": {"a": {"$ref": "#"}}, "additionalProperties": False}),
]
FAULTS: list[tuple[Any, Any, str]] = [
    ("5", {"type": "integer"}, '$: must be of type "integer", is "5"'),
    (True, {"type": "integer"}, '$: must be of type "integer", is true'),
    (1.5, {"type": "integer"}, '$: must be of type "integer", is 1.5'),
    ({}, {"required": ["a"]}, "$: required property 'a' is missing"),
    ({"b": 1}, {"additionalProperties": False}, "$: property 'b' is not known"),
    ({"b": 1}, {"additionalProperties": {"type": "string"}}, "$.b: must be of type"),
    ({"a": {"b": [0, -1]}}, None, "$.a.b[1]: must be at least 0, is -1"),
    (1, {"enum": [True, 2]}, "$: must be one of [true, 2], is 1"),
    ("b", {"const": "a"}, '$: must be one of ["a"], is "b"'),
    (5, {"exclusiveMaximum": 5}, "$: must be less than 5"),
    ("", {"minLength": 1}, '$: needs at least 1 characters, is ""'),
    ([1, 2], {"maxItems": 1}, "$: has more than 1 items"),
    ({}, {"minProperties": 1}, "$: needs at least 1 properties"),
    ("ab", {"pattern": "^b"}, "$: does not match ^b"),
    (5, {"anyOf": [{"type": "string"}, {"type": "null"}]}, "$: fits none of anyOf ($: must be"),
    (5, {"oneOf": [{}, {"type": "integer"}]}, "$: fits 2 of oneOf, must fit exactly one"),
    (5, {"allOf": [{"type": "integer"}, {"maximum": 4}]}, "$: must be at most 4"),
    (5, {"not": {"type": "integer"}}, "$: must not fit"),
    ([1], {"items": False}, "$[0]: must be left out"),
    ({"a": {"a": 1}}, {"properties": {"a": {"$ref": "#"}}, "type": "object"}, "$.a.a: must be of"),
]
NESTED = {"properties": {"a": {"properties": {"b": {"items": {"minimum": 0}}}}}}


@pytest.mark.parametrize(("value", "schema"), FITS)
def test_a_value_fits(value: Any, schema: Any) -> None:
    assert mismatch(value, schema) is None


@pytest.mark.parametrize(("value", "schema", "fault"), FAULTS)
def test_a_value_that_does_not_fit_is_told_where_and_why(
    value: Any, schema: Any, fault: str
) -> None:
    found = mismatch(value, schema or NESTED)
    assert found is not None
    assert found.startswith(fault)
