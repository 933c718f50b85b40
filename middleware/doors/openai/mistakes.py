"""pydantic's findings → OpenAI's 400: the path in `param`, and what to send instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from adapters.errors import BadRequest
from middleware.doors.openai.shapes import TAG

_SHOWN = 60

# pydantic's error type → OpenAI's code and our sentence about the value at the path.
_TABLE: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "missing": ("missing_required_parameter", lambda _: "is missing"),
    "string_type": ("invalid_type", lambda _: "must be a string"),
    "int_type": ("invalid_type", lambda _: "must be an integer"),
    "int_from_float": ("invalid_type", lambda _: "must be an integer"),
    "float_type": ("invalid_type", lambda _: "must be a number"),
    "bool_type": ("invalid_type", lambda _: "must be true or false"),
    "list_type": ("invalid_type", lambda _: "must be an array"),
    "dict_type": ("invalid_type", lambda _: "must be an object"),
    "greater_than_equal": ("below_min_value", lambda c: f"must be at least {c['ge']}"),
    "less_than_equal": ("above_max_value", lambda c: f"must be at most {c['le']}"),
    "less_than": ("above_max_value", lambda _: "is too large"),
    "finite_number": ("invalid_value", lambda _: "must be a finite number"),
    "literal_error": ("invalid_value", lambda c: f"must be {c['expected']}"),
    "string_too_short": ("string_below_min_length", lambda _: "must not be empty"),
    "string_too_long": (
        "string_above_max_length",
        lambda c: f"must have at most {c['max_length']} characters",
    ),
    "string_pattern_mismatch": (
        "invalid_value",
        lambda _: "may contain only letters, digits, '_' and '-'",
    ),
    "too_short": ("empty_array", lambda _: "must not be an empty array"),
    "too_long": (
        "array_above_max_length",
        lambda c: f"must have at most {c['max_length']} entries",
    ),
    "union_tag_invalid": ("invalid_value", lambda c: f"must be one of {_choices(c)}"),
    "union_tag_not_found": ("invalid_type", lambda _: "must be an object"),
}
_TAGGED_BY: Mapping[str, str] = {"_role()": ".role"}


def refusal(error: ValidationError) -> BadRequest:
    """The first finding, in OpenAI's words; the others are counted."""
    findings = error.errors(include_url=False)
    first = findings[0]
    path = path_of(first["loc"])
    code, sentence = _TABLE.get(first["type"], ("invalid_value", lambda _: "is not valid"))
    context = first.get("ctx") or {}
    if first["type"] == "union_tag_invalid":
        path += _TAGGED_BY.get(context["discriminator"], ".type")
    more = f" ({len(findings) - 1} more like it)" if len(findings) > 1 else ""
    if first["type"] == "missing":
        message = f"Missing required parameter: '{path}'.{more}"
    else:
        message = f"Invalid '{path}': it {sentence(context)}{_found(first)}.{more}"
    return BadRequest(message, code=code, param=path)


def path_of(location: tuple[str | int, ...]) -> str:
    """('messages', 0, '@user', 'content') → messages[0].content"""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif not step.startswith(TAG):
            path += f".{step}" if path else step
    return path


def _choices(context: Mapping[str, Any]) -> str:
    return str(context["expected_tags"]).replace(TAG, "").replace("'plain'", "'text'")


def _found(finding: ErrorDetails) -> str:
    value = finding.get("input")
    if finding["type"] == "union_tag_invalid":
        value = str(finding["ctx"]["tag"]).removeprefix(TAG)
    if isinstance(value, str | int | float | bool):
        shown = repr(value)
        return f", not {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}"
    return ", not null" if value is None else ""
