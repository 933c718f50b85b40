"""JSON values as strangers send them: text that YAML reads otherwise, and characters it cannot."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

WORDS = (
    *("yes", "no", "on", "off", "y", "n", "null", "~", "true", "True", ".inf", ".nan", "1e3"),
    *("1.5e+3", "0x1f", "0o7", "010", "1_000", "1:30", "+1", "-0", "1.", ".5", "-", "=", "<<"),
)
ODD = (
    "",
    " ",
    "\n",
    "\n\n",
    " \n",
    "\ta\nb",
    " a\nb",
    "\n a\nb\n",
    "a\n\n\n",
    "a \nb\t\n",
    "a\n   ",
    "a\rb",
    "a\r\nb\r\n",
    "a\u2028b\nc",
    "\ufeffa\nb",
    "a\x7fb",
    "a\x00\x07b\n",
    "\x85",
    "\xa0\n",
    "- a: b\n---\n...\n# c",
    "'it''s'",
    '"\\n"',
    "a: b",
    "a #b",
    "[a, b]",
    "{a: b}",
    "*a",
    "&a b",
    "!a b",
    "%a",
    "@a",
    "`a",
    "| a",
    "> a",
    "? a",
    "- a",
    "2026-11-18",
    "2026-11-18 10:00:00",
    "--- a",
    "é e\u0301 沈阳 😀 \U0010ffff",
    "x" * 2000,
)


def texts() -> st.SearchStrategy[str]:
    characters = "ab01:#,-?|>'\"{}[]&*!%@`\\ \t\n\r\x00\x85\xa0\u2028\ufeff沈😀.eE+~=<_"
    return st.one_of(
        st.sampled_from([*WORDS, *ODD]),
        st.text(st.sampled_from(characters), max_size=14),
        st.text(max_size=8),
    )


def values() -> st.SearchStrategy[Any]:
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    leaves = st.one_of(texts(), st.integers(), numbers, st.booleans(), st.none())
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=5), st.dictionaries(texts(), inner, max_size=5)
        ),
        max_leaves=25,
    )
