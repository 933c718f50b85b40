"""JSON Schema: what is kept, what is put into words; nothing breaks it."""

from __future__ import annotations

import copy
import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.shared.schema import inline, mismatch, object_root, subset

FEW = frozenset({"type", "properties", "items", "enum", "required", "anyOf", "description"})
TREE: dict[str, Any] = {
    "type": "object",
    "$defs": {
        "Node": {
            "type": "object",
            "description": "A node",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
        }
    },
    "properties": {"root": {"$ref": "#/$defs/Node", "description": "The top"}},
}


# inline ----------------------------------------------------------------------------------------


def test_a_reference_is_replaced_and_words_beside_it_outrank() -> None:
    found = inline(TREE)
    root = found["properties"]["root"]
    assert "$defs" not in found
    assert (root["description"], root["properties"]["name"]) == ("The top", {"type": "string"})


def test_a_recursion_is_cut_and_says_so() -> None:
    children = inline(TREE)["properties"]["root"]["properties"]["children"]
    assert children["items"] == {
        "type": "object",
        "description": "A node (the same shape as Node)",
    }


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("#/$defs/a~1b", {"type": "integer"}),
        ("#/$defs/a%20b", {"type": "boolean"}),
        ("#/$defs/list/anyOf/1", {"type": "null"}),
        ("#/$defs/anything", {}),
        ("#/$defs/chain", {"type": "integer"}),
    ],
)
def test_pointers_are_read_as_the_standard_has_them(reference: str, expected: Any) -> None:
    definitions = {
        "a/b": {"type": "integer"},
        "a b": {"type": "boolean"},
        "list": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "anything": True,
        "chain": {"$ref": "#/$defs/a~1b"},
    }
    schema = {"$defs": definitions, "properties": {"x": {"$ref": reference}}}
    assert inline(schema) == {"properties": {"x": expected}}


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/missing", "https://example.com/schema", "#anchor", 7, None, "#/$defs/l/9"],
)
def test_a_reference_to_nowhere_becomes_any_object_that_says_so(reference: Any) -> None:
    schema = {"$defs": {"l": [1]}, "properties": {"x": {"$ref": reference}}}
    assert inline(schema)["properties"]["x"] == {
        "type": "object",
        "description": f"(unknown reference {reference})",
    }


def test_data_that_looks_like_a_reference_is_left_alone() -> None:
    schema = {
        "properties": {"$ref": {"type": "string"}},
        "enum": [{"$ref": "#/x"}],
        "const": {"$defs": {}},
    }
    assert inline(schema) == schema


# object_root -----------------------------------------------------------------------------------


def test_an_object_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert object_root(schema) == (schema, ())


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_a_choice_among_objects_becomes_one_object_and_a_sentence(keyword: str) -> None:
    schema = {
        keyword: [
            {
                "type": "object",
                "description": "by name",
                "properties": {"kind": {"const": "city"}, "city": {"type": "string"}},
                "required": ["kind", "city"],
            },
            {
                "type": "object",
                "properties": {"kind": {"const": "point"}, "at": {"type": "array"}},
                "required": ["kind", "at"],
            },
        ]
    }
    root, lost = object_root(schema)
    assert root == {
        "type": "object",
        "properties": {
            "kind": {"enum": ["city", "point"]},
            "city": {"type": "string"},
            "at": {"type": "array"},
        },
        "required": ["kind"],
    }
    how = "at least" if keyword == "anyOf" else "exactly"
    assert lost == (f"Give {how} one of these: (kind, city) by name | (kind, at).",)


def test_a_property_that_differs_is_either() -> None:
    one, other = {"type": "string"}, {"type": "integer"}
    schema = {"anyOf": [{"properties": {"a": one}}, {"properties": {"a": other}}]}
    assert object_root(schema)[0]["properties"] == {"a": {"anyOf": [one, other]}}


def test_all_of_and_a_root_reference_are_merged_without_loss() -> None:
    schema = {
        "$defs": {"base": {"properties": {"a": {"type": "string"}}, "required": ["a"]}},
        "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {"type": "integer"}}}],
        "required": ["b"],
    }
    root, lost = object_root(schema)
    assert lost == ()
    assert root["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}
    assert set(root["required"]) == {"a", "b"}
    assert root["$defs"] == schema["$defs"]


def test_an_optional_object_loses_nothing() -> None:
    schema = {"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "null"}]}
    assert object_root(schema) == ({"type": "object", "properties": {"a": {}}}, ())


@pytest.mark.parametrize("schema", [{}, {"type": ["object", "null"]}, {"properties": []}])
def test_a_root_that_says_little_is_an_empty_object(schema: Any) -> None:
    assert object_root(schema) == ({"type": "object", "properties": {}}, ())


def test_a_root_of_another_type_is_told() -> None:
    assert object_root({"type": "string"})[1] == ('The value was to be of type "string".',)


# subset ----------------------------------------------------------------------------------------


def reduced(schema: Any) -> Any:
    return subset({"properties": {"x": schema}}, FEW)[0]["properties"]["x"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": 5}, {"enum": [5]}),
        ({"oneOf": [{"const": 1}, {}]}, {"anyOf": [{"enum": [1]}, {}]}),
        (
            {"allOf": [{"type": "object", "properties": {"a": {}}}], "description": "d"},
            {"type": "object", "properties": {"a": {}}, "description": "d"},
        ),
        (
            {"type": "string", "minLength": 1, "format": "date"},
            {"type": "string", "description": "(minLength 1, format date)"},
        ),
        (
            {"type": "integer", "description": "Age", "minimum": 1},
            {"type": "integer", "description": "Age (minimum 1)"},
        ),
        (
            {"type": "object", "additionalProperties": False},
            {"type": "object", "description": "(no other properties)"},
        ),
        (
            {"type": "array", "uniqueItems": True, "items": {"maximum": 9}},
            {
                "type": "array",
                "items": {"description": "(maximum 9)"},
                "description": "(unique items)",
            },
        ),
        ({"additionalProperties": True, "title": "X", "x-order": 3, "$comment": "c"}, {}),
        ({"default": {"a": "沈"}}, {"description": '(default {"a": "沈"})'}),
        ({"not": {"minLength": 2}}, {"description": '(not {"minLength": 2})'}),
        ({"enum": [{"minimum": 1}]}, {"enum": [{"minimum": 1}]}),
        (True, {}),
        (False, {"description": "(must be left out)"}),
        ("nonsense", {}),
    ],
)
def test_what_a_language_lacks_is_said_otherwise_or_in_words(schema: Any, expected: Any) -> None:
    assert reduced(schema) == expected


def test_the_names_of_what_was_moved_are_returned_once_in_order() -> None:
    schema = {
        "properties": {
            "a": {"minimum": 1, "pattern": "x", "title": "A"},
            "b": {"minimum": 2, "not": {"maxLength": 3}},
        }
    }
    assert subset(schema, FEW)[1] == ("minimum", "pattern", "not")


def test_what_the_language_has_is_kept() -> None:
    schema = {"const": 1, "oneOf": [{}], "allOf": [{}]}
    assert subset(schema, frozenset(schema)) == (schema, ())


def test_long_values_are_cut_in_words() -> None:
    assert len(reduced({"pattern": "x" * 5000})["description"]) < 300


# Whatever comes --------------------------------------------------------------------------------


KEYWORDS = (
    *("type", "properties", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs", "required"),
    *("enum", "const", "additionalProperties", "minimum", "minLength", "not", "pattern"),
    *("description", "prefixItems", "a"),
)
JUNK = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
SCHEMAS = st.recursive(
    JUNK | st.sampled_from(["#", "#/$defs/a", "#/properties/a", "object", "string", "array"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=5)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(KEYWORDS), SCHEMAS, max_size=6)


@settings(max_examples=150, deadline=None)
@given(OBJECTS, SCHEMAS)
def test_no_schema_breaks_anything_or_is_changed(schema: Any, value: Any) -> None:
    before = copy.deepcopy(schema)
    inlined = inline(schema)
    root, lost = object_root(inlined)
    small, moved = subset(root, FEW)
    assert root["type"] == "object"
    assert isinstance(root["properties"], dict)
    assert all(isinstance(text, str) for text in (*lost, *moved))
    assert not {"oneOf", "const", "$ref"} & small.keys()
    mismatch(value, schema)
    assert json.dumps([inlined, root, small]) == json.dumps(
        [inline(schema), object_root(inline(schema))[0], subset(root, FEW)[0]]
    )
    assert schema == before


PROPER = st.recursive(
    st.fixed_dictionaries({}, optional={"minimum": st.integers(), "const": st.none()}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "oneOf": st.lists(inner, max_size=2),
            "items": inner,
            "not": inner,
        },
    ),
    max_leaves=12,
)


def keywords_used(schema: Any) -> set[str]:
    children = (*schema.get("properties", {}).values(), *schema.get("anyOf", ()))
    return set(schema).union(*map(keywords_used, children))


@settings(max_examples=100, deadline=None)
@given(PROPER)
def test_a_subset_has_only_the_keywords_of_the_language(schema: Any) -> None:
    few = frozenset({"properties", "anyOf", "description"})
    assert keywords_used(subset(schema, few)[0]) <= few


def bomb(depth: int) -> Any:
    pair = {
        f"d{at}": {
            "properties": {
                "a": {"$ref": f"#/$defs/d{at + 1}"},
                "b": {"$ref": f"#/$defs/d{at + 1}"},
            }
        }
        for at in range(depth)
    }
    return {"$defs": pair, "$ref": "#/$defs/d0"}


def nest(depth: int, keyword: str) -> Any:
    schema: Any = {"minimum": 1}
    for _ in range(depth):
        schema = {keyword: {"a": schema} if keyword == "properties" else schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        bomb(60),
        {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 50}}, "$ref": "#/$defs/a"},
        {"anyOf": [{"properties": {"a": {"const": at}}} for at in range(3000)]},
        nest(400, "properties"),
        nest(400, "items"),
        {"default": nest(5000, "x")},
    ],
    ids=["bomb", "wide cycle", "many tags", "deep properties", "deep items", "deep data"],
)
def test_hostile_schemas_cost_little(schema: Any) -> None:
    inlined = inline(schema)
    assert object_root(schema)[0]["type"] == "object"
    assert isinstance(subset(inlined, FEW)[0], dict)
    deep: Any = {}
    for _ in range(200):
        deep = {"a": deep}
    mismatch(deep, schema)


def test_what_goes_up_is_never_too_deep_to_be_written() -> None:
    assert orjson.dumps(inline({**nest(400, "properties"), "$defs": {}}))
    assert orjson.dumps(subset(nest(400, "properties"), FEW)[0])
