"""What strangers write in texts, errors and values is read in linear time.

Twice as much may take twice as long, and nothing of a few megabytes may hold the event loop.
CPU time of this thread is what counts, the least of several tries, so that other load says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from adapters.errors import from_words, words_of
from adapters.shared.schema import mismatch
from middleware.wrappers.emulation.judge.schemas import coerced
from middleware.wrappers.recall import fingerprint
from tests.linear.measuring import is_long, require_linear, seconds

# Texts: what a message, a schema or an error says -----------------------------------------------


RECALLED: Mapping[str, Callable[[int], str]] = {
    "openers": lambda size: "<think>" * (size // 7),
    "closers": lambda size: "</think>" * (size // 8),
    "closers with words": lambda size: "</think> x" * (size // 10),
    "closers with blanks": lambda size: ("</think>" + " " * 1000 + "x") * (size // 1009),
    "pairs": lambda size: "<think></think>" * (size // 15),
    "blanks": lambda size: " " * size + "</think>",
    "openers behind a closer": lambda size: "</think>" + "<think>" * (size // 7),
    "openers before a closer": lambda size: "<think>" * (size // 7) + "</think>",
}


@pytest.mark.parametrize("text", RECALLED)
def test_thoughts_in_texts_are_found_in_linear_time(text: str) -> None:
    require_linear(fingerprint.plain_text, RECALLED[text], 1 << 20)


ERRORS: Mapping[str, Callable[[int], str]] = {
    "scripts": lambda size: "<script " * (size // 8),
    "styles": lambda size: "<style>" * (size // 7),
    "closers": lambda size: "</script>" * (size // 9),
    "brackets": lambda size: "<" * size,
    "words": lambda size: "context " * (size // 8),
    "histories": lambda size: "reasoning_content tool_use " * (size // 27),
    "keys": lambda size: "sk-" * (size // 3),
    "blanks": lambda size: " " * size,
}


@pytest.mark.parametrize("text", ERRORS)
def test_an_upstreams_error_is_worded_in_linear_time(text: str) -> None:
    def read(body: bytes) -> None:
        from_words(400, words_of(body), "upstream", ("a-secret",))

    require_linear(read, lambda size: ERRORS[text](size).encode(), 1 << 18)


# Values and schemas: each may be made for the other ---------------------------------------------


def _nested(keyword: str, depth: int) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = {keyword: [schema, schema]}
    return schema


PATTERNS = (
    *(
        "^(a+)+$",
        "^(a|a)*b",
        "^(a|aa)+$",
        "^(a?){25}a{25}$",
        "a*a*a*a*b",
        "(?:(?:(?:){99}){99}){99}",
    ),
    *("^" + "a?" * 25 + "a" * 25 + "$", "^(?=(a+)+b)", "(((a{1,60}){1,60}){1,60})c"),
)
CHECKED: Mapping[str, tuple[Any, Any]] = {
    **{pattern: ("a" * 60, {"items": {}, "pattern": pattern}) for pattern in PATTERNS},
    **{keyword: ("x", _nested(keyword, 12)) for keyword in ("anyOf", "oneOf", "allOf")},
    "wide": ([["x" * 1_000_000]] * 99, {"anyOf": [{"items": {"type": "null"}}] * 50_000}),
    "required": ({"x": "y"}, {"anyOf": [{"required": ["name" * 250_000]}] * 9000}),
    "enum": ("x", {"allOf": [{"anyOf": [{"enum": ["y"] * 20_000}, {}]}] * 9000}),
    "unlike": ([{}] * 100_000, {"items": {"anyOf": [{"required": ["a"]}] * 20}}),
    "patterns": ("a" * 60, {"anyOf": [{"pattern": "b" * 400 + str(at)} for at in range(9000)]}),
    "paths": ({"a" * 1_000_000: 1}, {"anyOf": [{"additionalProperties": False}] * 9000}),
    "references": (
        "x",
        {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 9}}, "$ref": "#/$defs/a"},
    ),
}


@pytest.mark.parametrize("case", CHECKED)
def test_a_value_is_checked_within_a_budget(case: str) -> None:
    value, schema = CHECKED[case]
    assert not is_long(seconds(lambda: mismatch(value, schema), 1))
    assert not is_long(seconds(lambda: coerced(value, schema), 1))


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        (r"^\d{4}-\d{2}-\d{2}$", "2026-11-18", "18.11.2026"),
        (r"^[^@\s]+@[^@\s]+\.[^@\s]+$", "a@b.example", "a.example"),
        (r"^\+?[1-9]\d{1,14}$", "+4930123456", "none"),
        (r"^#?([a-f0-9]{6}|[a-f0-9]{3})$", "#c0ffee", "#coffee"),
        (r"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}\d+$", "127.0.0.1", "127.0.1"),
        (r"^\d+(?:\.\d+)?$", "1.5", "1.5.0"),
        (r"^(?=.*\d)(?=.*[a-z]).{8,}$", "passw0rd", "password"),
    ],
)
def test_usual_patterns_are_still_checked(pattern: str, fits: str, does_not: str) -> None:
    assert mismatch(fits, {"pattern": pattern}) is None
    assert mismatch(does_not, {"pattern": pattern})
