"""pydantic's findings → OpenAI's 400: the path in `param`, and what to send instead.

Codes and sentences are like OpenAI's, since clients look for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from adapters.errors import BadRequest

TAG = "@"
"""Begins the tag of a union's member, to tell it from the keys of a request in an error's path."""
_SHOWN = 60
_TOO_MANY_BITS = 2.0**63
"""From here on JSON's integers are read as decimal numbers."""
_EXPECTED: Mapping[str, str] = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "a boolean",
    "list_type": "an array",
    "dict_type": "an object",
    "union_tag_not_found": "an object",
}
_FOUND: Mapping[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a decimal number",
    list: "an array",
    dict: "an object",
    type(None): "null",
}
_BOUNDS: Mapping[str, tuple[str, str, str, str]] = {
    # Key of the bound, its sign, and what a value beyond it is: in the code, in the sentence.
    "greater_than_equal": ("ge", ">=", "below_min", "below minimum"),
    "less_than_equal": ("le", "<=", "above_max", "above maximum"),
    "less_than": ("lt", "<", "above_max", "above maximum"),
}
# What tells the members of a union apart, by the function that reads it.
_TOLD_APART_BY: Mapping[str, str] = {"_role()": "role"}


def refusal(error: ValidationError) -> BadRequest:
    """Say the first finding in OpenAI's words."""
    finding = error.errors(include_url=False)[0]
    return _TELL.get(finding["type"], _invalid)(_field_path(finding["loc"]), finding)


def _field_path(location: tuple[str | int, ...]) -> str:
    """('messages', 0, '@user', 'content') → messages[0].content"""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif not step.startswith(TAG):
            path += f".{step}" if path else step
    return path


def _wrong_type(path: str, finding: ErrorDetails) -> BadRequest:
    expected = _EXPECTED[finding["type"]]
    if finding["loc"][-1] == f"{TAG}string":
        expected = "a string or an array"
    # The kind of the value says enough, and the value may be a prompt: messages are logged.
    found = _FOUND.get(type(finding["input"]), "something else")
    if isinstance(finding["input"], float) and abs(finding["input"]) >= _TOO_MANY_BITS:
        found = "a number of more than 64 bits"
    return BadRequest(
        f"Invalid type for '{path}': expected {expected}, but got {found} instead.",
        code="invalid_type",
        param=path,
    )


def _missing(path: str, _: ErrorDetails) -> BadRequest:
    return BadRequest(
        f"Missing required parameter: '{path}'.", code="missing_required_parameter", param=path
    )


def _no_such_member(path: str, finding: ErrorDetails) -> BadRequest:
    context, value = finding["ctx"], finding["input"]
    key = _TOLD_APART_BY.get(context["discriminator"], "type")
    if key not in value:
        return _missing(f"{path}.{key}", finding)
    tags = context["expected_tags"].replace(TAG, "").split(", ")
    expected = ", ".join(tag for tag in tags if tag != "'word'")
    return _no_such_value(f"{path}.{key}", expected, value[key])


def _no_such_word(path: str, finding: ErrorDetails) -> BadRequest:
    return _no_such_value(path, finding["ctx"]["expected"], finding["input"])


def _no_such_value(path: str, expected: str, value: Any) -> BadRequest:
    found = _FOUND.get(type(value), "something else")
    if isinstance(value, str):
        found = repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}…"
    expected = expected if expected.count("'") == 2 else f"one of {expected}"
    return BadRequest(
        f"Invalid value for '{path}': expected {expected}, but got {found} instead.", param=path
    )


def _beyond(path: str, finding: ErrorDetails) -> BadRequest:
    key, sign, code, side = _BOUNDS[finding["type"]]
    bound = finding["ctx"][key]
    kind = "integer" if isinstance(bound, int) else "decimal"
    return BadRequest(
        f"Invalid '{path}': {kind} {side} value. Expected a value {sign} {bound:g}, but got "
        f"{finding['input']} instead.",
        code=f"{kind}_{code}_value",
        param=path,
    )


def _empty(path: str, finding: ErrorDetails) -> BadRequest:
    kind = "string" if isinstance(finding["input"], str) else "array"
    article = "a" if kind == "string" else "an"
    return BadRequest(
        f"Invalid '{path}': empty {kind}. Expected {article} {kind} with minimum length 1, but got "
        f"an empty {kind} instead.",
        code=f"empty_{kind}",
        param=path,
    )


def _too_long(path: str, finding: ErrorDetails) -> BadRequest:
    kind = "string" if isinstance(finding["input"], str) else "array"
    return BadRequest(
        f"Invalid '{path}': {kind} too long. Expected a maximum length of "
        f"{finding['ctx']['max_length']}, but got {len(finding['input'])} instead.",
        code=f"{kind}_above_max_length",
        param=path,
    )


def _odd_name(path: str, finding: ErrorDetails) -> BadRequest:
    return BadRequest(
        f"Invalid '{path}': string does not match pattern. Expected only letters, digits, '_', "
        f"'-' and '.', but got {finding['input']!r} instead.",
        param=path,
    )


def _invalid(path: str, finding: ErrorDetails) -> BadRequest:
    return BadRequest(f"Invalid value for '{path}': {finding['msg']}.", param=path)


_TELL: Mapping[str, Callable[[str, ErrorDetails], BadRequest]] = {
    **dict.fromkeys(_EXPECTED, _wrong_type),
    **dict.fromkeys(_BOUNDS, _beyond),
    "missing": _missing,
    "union_tag_invalid": _no_such_member,
    "literal_error": _no_such_word,
    "string_too_short": _empty,
    "too_short": _empty,
    "string_too_long": _too_long,
    "too_long": _too_long,
    "string_pattern_mismatch": _odd_name,
}
