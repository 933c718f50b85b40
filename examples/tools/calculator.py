"""A calculator that reads sums itself: nothing a model writes is ever run as code."""

import ast
import math
import operator
from typing import Annotated

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS = {
    "sqrt": math.sqrt,
    "abs": abs,
    "round": lambda value, digits=0: round(value, min(max(int(digits), -15), 15)),
    "log": math.log,
    "sin": math.sin,
    "cos": math.cos,
}
_NAMES = {"pi": math.pi, "e": math.e}


def calculate(sum: Annotated[str, "Such as (3 + 4) * sqrt(2) / 10"]) -> float:
    """Work out a sum: + - * / // % ** and sqrt, abs, round, log, sin, cos."""
    if len(sum) > 500:
        raise ValueError("the sum is too long")
    return _value(ast.parse(sum, mode="eval").body)


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.UnaryOp(op=ast.USub(), operand=one):
            return -_value(one)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_value(left), _value(right))
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*map(_value, given))
    raise ValueError(f"this cannot be worked out: {ast.unparse(node)[:60]}")


def _power(base: float, exponent: float) -> float:
    if abs(exponent) > 1000 or abs(base) > 1e6:
        raise ValueError("the power is too large")
    return base**exponent
