"""Calls that an answer quotes are text: whoever explains a format calls nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from middleware.wrappers.emulation.read.rules import ReadRules
from tests.wrappers.emulation.read.formats import FORMATS
from tests.wrappers.emulation.read.reading import CANONICAL, OSLO, TRAINED, Seen, read


def on_one_line(text: str) -> str:
    return " ".join(text.split())


def behind_marks(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n"))


STYLES: Mapping[str, Callable[[str], str]] = {
    "a fence that explains": lambda text: f"```\nA call looks so:\n{text}\n```",
    "a fence with words below": lambda text: f"Look:\n\n```xml\n{text}\nThat is all.\n```\n",
    "a fence amid prose": lambda text: (
        f"It is written so:\n\n```\n{text}\n```\n\nPut the city of your choice there."
    ),
    "tildes amid prose": lambda text: f"It is written so:\n~~~text\n{text}\n~~~\nReplace the city.",
    "an example": lambda text: f"For example:\n\n```\n{text}\n```",
    "a quotation": lambda text: f"The manual says:\n\n{behind_marks(text)}\n\nThat is all.",
    "nothing but a quotation": behind_marks,
    "inline code": lambda text: f"You would write `{on_one_line(text)}` to call it.",
    "inline code at the end": lambda text: f"You would write `{on_one_line(text)}`.",
    "inline code over lines": lambda text: f"You would write `{text}` to call it.",
    "inline code first": lambda text: f"`{on_one_line(text)}` is what a call looks like.",
    "a sentence": lambda text: f"Models write {on_one_line(text)} to call a tool.",
    "a sentence over lines": lambda text: f"Models write {text}, and the server reads it.",
}
# A fence inside a fence ends it, and what a model invents behind its call is not quoted either.
PLAIN = [
    text
    for text, _ in (*TRAINED, *FORMATS)
    if not any(part in text for part in ("```", "\\n", "<tool_response>", "},\n{"))
]


def cuts(text: str) -> list[list[str]]:
    return [[text], list(text), [text[at : at + 7] for at in range(0, len(text), 7)]]


@pytest.mark.parametrize("style", STYLES)
def test_a_quoted_call_is_text_in_every_format(style: str) -> None:
    for call in (CANONICAL, *PLAIN):
        text = STYLES[style](call)
        for pieces in cuts(text):
            seen: Seen = read(pieces)
            assert not seen.made(), text
            assert not seen.reader.judge.open, text
            assert on_one_line(seen.text) == on_one_line(text)


ALONE: Mapping[str, Callable[[str], str]] = {
    "alone": lambda text: text,
    "below a line": lambda text: f"I look it up.\n{text}",
    "behind a sentence": lambda text: f"I look it up. {text}",
    "behind a colon": lambda text: f"Let me see: {text}",
    "in a fence of its own": lambda text: f"I look it up.\n```\n{text}\n```\n",
    "in a fence below a colon": lambda text: f"I look it up:\n```tool_call\n{text}\n```",
    "with an end token": lambda text: f"I look it up.\n{text}<|im_end|>",
}
MARKED = [
    (text, calls)
    for text, calls in (*TRAINED, *FORMATS)
    if text[:1] == "<" and "<tool_response>" not in text
]


@pytest.mark.parametrize("style", ALONE)
def test_a_call_that_stands_on_its_own_is_one_in_every_format(style: str) -> None:
    for call, calls in MARKED:
        text = ALONE[style](call)
        if "```" in call and "fence" in style:
            continue
        for pieces in cuts(text):
            seen: Seen = read(pieces)
            assert seen.made() == calls, text
            assert "<" not in seen.text, text
            assert "```" not in seen.text, text


def test_calls_on_both_sides_of_a_listing_are_calls() -> None:
    code = "```python\nget_weather(city='Oslo')\n```"
    seen = read([f"{CANONICAL}\n\nOr in Python:\n{code}\n\n{CANONICAL}"])
    assert seen.made() == [OSLO, OSLO]
    assert seen.text.strip() == f"Or in Python:\n{code}"


def test_a_demanded_call_may_stand_in_a_fence_amid_prose() -> None:
    call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
    text = f"So:\n```\n{call}\n```\nThere."
    assert read([text]).made() == []
    assert read([text], ReadRules(forced=True)).made() == [OSLO]
