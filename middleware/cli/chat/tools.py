"""Three tools to try a model with: a weather that is made up, a calculator and a clock."""

from __future__ import annotations

import ast
import json
import math
import operator
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]
_LONGEST = 200
_MOST_BITS = 10_000


class ToolFailed(Exception):
    """What the model is told instead of a result."""


@dataclass(frozen=True, slots=True)
class ChatTool:
    name: str
    description: str
    properties: Mapping[str, Json]
    run: Callable[[Json], Json]
    required: tuple[str, ...] = ()

    def schema(self) -> Json:
        """As a request names it."""
        parameters = {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
        }
        about = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": about}

    def answer(self, arguments: str) -> str:
        """The result for arguments as a model wrote them, always JSON."""
        try:
            given = json.loads(arguments or "{}")
            if not isinstance(given, dict):
                raise ToolFailed("the arguments must be a JSON object")
            return json.dumps(self.run(given), ensure_ascii=False)
        except json.JSONDecodeError as error:
            return json.dumps({"error": f"the arguments are no JSON: {error}"})
        except ToolFailed as error:
            return json.dumps({"error": str(error)}, ensure_ascii=False)


def example_tools(now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> tuple[ChatTool, ...]:
    return (
        ChatTool(
            "get_weather",
            "The weather in a city. An example: its data is made up.",
            {"city": {"type": "string"}},
            weather,
            ("city",),
        ),
        ChatTool(
            "calculate",
            "The exact value of an arithmetic expression.",
            {"expression": {"type": "string", "description": "such as 2 * (3 + 4) or sqrt(2)"}},
            calculate,
            ("expression",),
        ),
        ChatTool(
            "get_time",
            "The date and time now.",
            {"zone": {"type": "string", "description": "such as Asia/Shanghai; UTC if not given"}},
            lambda given: clock(given, now()),
        ),
    )


def _text(given: Json, name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ToolFailed(f"'{name}' must be a text that is not empty")
    return value.strip()


def weather(given: Json) -> Json:
    city = _text(given, "city")
    chance = zlib.crc32(city.casefold().encode())
    skies = ("sunny", "cloudy", "light rain", "snow", "fog")
    return {
        "city": city,
        "sky": skies[chance % len(skies)],
        "celsius": chance // 7 % 40 - 8,
        "note": "made-up example data",
    }


def clock(given: Json, now: datetime) -> Json:
    from zoneinfo import ZoneInfo

    zone = given.get("zone") or "UTC"
    try:
        found = UTC if zone == "UTC" else ZoneInfo(str(zone))
    except (OSError, ValueError, LookupError) as error:
        text = f"there is no time zone '{zone}' on this machine; write it as Asia/Shanghai"
        raise ToolFailed(text) from error
    return {"zone": str(zone), "time": now.astimezone(found).isoformat(timespec="seconds")}


_OPERATORS: Mapping[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "cos": math.cos,
    "exp": math.exp,
    "log": math.log,
    "round": round,
    "sin": math.sin,
    "sqrt": math.sqrt,
    "tan": math.tan,
}
_CONSTANTS: Mapping[str, float] = {"e": math.e, "pi": math.pi}


def calculate(given: Json) -> Json:
    expression = _text(given, "expression").replace("^", "**")
    if len(expression) > _LONGEST:
        raise ToolFailed(f"the expression is longer than {_LONGEST} characters")
    try:
        value = _value(ast.parse(expression, mode="eval").body)
        return {"expression": expression, "result": str(value)}
    except (ArithmeticError, ValueError, TypeError, SyntaxError) as error:
        raise ToolFailed(f"that cannot be calculated: {error}") from error


def _value(node: ast.expr) -> int | float:
    """Walk the expression: nothing of it is ever run as a program."""
    match node:
        case ast.Constant(value=bool() | complex()):
            pass
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=sign, operand=inner) if type(sign) in _OPERATORS:
            return _number(_OPERATORS[type(sign)](_value(inner)))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _number(_OPERATORS[type(sign)](_value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in _FUNCTIONS:
            return _number(_FUNCTIONS[name](*map(_value, given)))
    raise ValueError("only numbers, + - * / // % **, brackets and simple functions are known")


def _power(base: int | float, exponent: int | float) -> int | float:
    large = isinstance(base, int) and isinstance(exponent, int)
    if large and int(base).bit_length() * abs(exponent) > _MOST_BITS:
        raise ValueError("the result would be too large")
    return _number(base**exponent)


def _number(value: Any) -> int | float:
    if not isinstance(value, int | float):
        raise ValueError("the result is no real number")
    return value
