"""What models see of Python functions, and what their arguments become."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from middleware.tools import Registry, ToolError, schema_of, tool


class Node(BaseModel):
    value: int
    children: list[Node] = []


@dataclass
class Choices:
    """An object with a description and choices, as other frameworks have them."""

    description: str
    enum: tuple[str, ...] = ()


class Query(BaseModel):
    city: str
    days: int = Field(1, le=7)


def weather(
    city: Annotated[str, "Name of the city"],
    unit: Literal["C", "F"] = "C",
    how: Annotated[str, Choices("In words", ("short", "long"))] = "short",
    _context: Any = None,
    **more: Any,
) -> str:
    """Say what the weather is
    in a city.

    Not shown.

    Args:
        unit: Celsius
            or Fahrenheit.
    """
    return f"{city} {unit} {how}"


def tree(root: Node, depth: int = 1) -> int:
    return root.value * depth


def forecast(query: Query) -> str:
    return f"{query.city} {query.days}"


def test_a_schema_has_what_signature_and_docstring_say() -> None:
    said = schema_of(weather)
    assert said["description"] == "Say what the weather is in a city."
    assert said["parameters"] == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city"},
            "unit": {
                "type": "string",
                "enum": ["C", "F"],
                "default": "C",
                "description": "Celsius or Fahrenheit.",
            },
            "how": {
                "type": "string",
                "enum": ["short", "long"],
                "default": "short",
                "description": "In words",
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_only_what_refers_to_itself_is_referred_to() -> None:
    said = schema_of(tree)["parameters"]
    assert said["properties"]["root"] == {"$ref": "#/$defs/Node"}
    assert said["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}


def test_one_object_is_the_whole_of_the_arguments() -> None:
    assert [*schema_of(forecast)["parameters"]["properties"]] == ["city", "days"]
    assert answer(forecast, {"city": "x", "days": "3"}) == "x 3"


def test_what_a_partial_has_set_is_gone() -> None:
    made = functools.partial(weather, "Paris")
    assert "city" not in schema_of(made, "paris")["parameters"]["properties"]


@pytest.mark.parametrize(
    ("callee", "arguments", "words"),
    [
        (weather, {"town": "x"}, ("city", "town")),
        (weather, {"city": "x", "unit": "K"}, ("unit", "'C' or 'F'")),
        (weather, {"city": "x", "how": "loud"}, ("how", "'short', 'long'")),
        (weather, {"city": "x", "_context": {}}, ("_context",)),
        (forecast, {"city": "x", "days": 9}, ("days", "7")),
        (tree, {"root": {"value": 1, "children": [{}]}}, ("root.children.0.value",)),
        (weather, '{"city":', ("JSON",)),
        (weather, "[]", ("JSON object",)),
        (weather, '{"city": NaN}', ("JSON",)),
    ],
)
def test_wrong_arguments_are_named(
    callee: Callable[..., object], arguments: Any, words: tuple[str, ...]
) -> None:
    with pytest.raises(ToolError) as raised:
        answer(callee, arguments)
    assert str(raised.value).startswith("Error: ")
    assert all(word in str(raised.value) for word in words), str(raised.value)


def test_long_integers_survive_and_the_callers_object_too() -> None:
    def same(n: int, rows: list[int]) -> int:
        rows.append(1)
        return n

    given = {"n": 10**40, "rows": []}
    assert answer(same, given) == str(10**40)
    assert given["rows"] == []


def test_a_function_that_cannot_be_called_is_no_tool() -> None:
    def secretive(a: int, _key: str) -> None: ...
    def strange(a: asyncio.Event) -> None: ...

    with pytest.raises(Exception, match="_key"):
        schema_of(secretive)
    with pytest.raises(Exception, match=r"'a'.*Event"):
        schema_of(strange)


def test_a_mark_names_and_describes() -> None:
    registry = Registry()
    registry.register(tool(name="other", description="d")(forecast))
    assert registry.get_tools()[0]["function"] | {"parameters": {}} == {
        "name": "other",
        "description": "d",
        "parameters": {},
    }


def test_a_registry_works_inside_of_a_loop_too() -> None:
    async def inside() -> str:
        return answer(forecast, {"city": "x"})

    assert asyncio.run(inside()) == "x 1"


def answer(callee: Callable[..., object], arguments: Any) -> str:
    registry = Registry()
    registry.register(callee, "one")
    return registry.call("one", arguments)
