"""The reader: calls, text and thoughts out of a model's text, whatever its cuts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from tests.wrappers.emulation.read.reading import (
    CANONICAL,
    NOW,
    OSLO,
    TRAINED,
    Call,
    block,
    cut_everywhere,
    read,
)

# Noise around the canonical block: (text, visible text, calls).
BLOCKS: Sequence[tuple[str, str, list[Call]]] = [
    (CANONICAL, "", [OSLO]),
    (f"Let me look.\n\n{CANONICAL}\nREASON: it says {{so}}", "Let me look.", [OSLO]),
    (f"{CANONICAL}\nREASON: a\n\n{CANONICAL}", "", [OSLO, OSLO]),
    (f"A\n{CANONICAL}\n\nB", "A B", [OSLO]),
    (f"{'far ' * 30}\n1. {CANONICAL}", ("far " * 30).strip(), [OSLO]),
    (f"{'far ' * 30}\n10) {CANONICAL}\n", ("far " * 30).strip(), [OSLO]),
    (f"```\n{CANONICAL}\n```\nB", "B", [OSLO]),
    (f"```text\n{CANONICAL}\n```", "", [OSLO]),
    ("```python\nprint(1)\n```\nDone.", "```python print(1) ``` Done.", []),
    (CANONICAL.replace("\n", "\r\n"), "", [OSLO]),
    (CANONICAL.replace("\n", "\n\n"), "", [OSLO]),
    ("  " + CANONICAL.replace("\n", "\n  "), "", [OSLO]),
    (CANONICAL.replace("USE_TOOL", "**Use Tool:**"), "", [OSLO]),
    (CANONICAL.replace("TOOL_", "**TOOL_").replace(":", ":**", 2), "", [OSLO]),
    (CANONICAL.replace("TOOL_NAME", "工具名称").replace("TOOL_ARGS", "工具参数"), "", [OSLO]),
    (CANONICAL.replace(": ", "："), "", [OSLO]),
    (CANONICAL.replace("TOOL_NAME", "- Tool Name").replace("TOOL_ARGS", "- Tool Args"), "", [OSLO]),
    ('USE_TOOL\nTOOL_ARGS: {"city": "Oslo"}\nTOOL_NAME: get_weather', "", [OSLO]),
    ('TOOL_NAME: get_weather\nTOOL_ARGS: {"city": "Oslo"}', "", [OSLO]),
    ('USE_TOOL TOOL_NAME: get_weather TOOL_ARGS: {"city": "Oslo"}', "", [OSLO]),
    ('USE_TOOL get_weather {"city": "Oslo"}', "", [OSLO]),
    ('USE_TOOL: get_weather({"city": "Oslo"})', "", [OSLO]),
    ('USE_TOOL\n{"name": "get_weather", "arguments": {"city": "Oslo"}}', "", [OSLO]),
    (block('\n```json\n{"city": "Oslo"}\n```'), "", [OSLO]),
    (block("\n  city: Oslo\n- days: 3"), "", [("get_weather", {"city": "Oslo", "days": 3})]),
    (block('`{"city": "Oslo"}`'), "", [OSLO]),
    (block('"{\\"city\\": \\"Oslo\\"}"'), "", [OSLO]),
    (block('[{"city": "Oslo"}]'), "", [OSLO]),
    (block('{"arguments": {"city": "Oslo"}}'), "", [OSLO]),
    (block("{'city': 'Oslo',}"), "", [OSLO]),
    (block("{“city”: “Oslo”}"), "", [OSLO]),
    (block("{city: Oslo}"), "", [OSLO]),
    (block('{"city": "Oslo"\nREASON: x'), "", [OSLO]),
    (block('{"city": "Oslo"}}'), "", [OSLO]),
    (block('{"city": "Oslo"}<|im_end|>'), "", [OSLO]),
    (
        block('{"city": "He said "hi" there"}'),
        "",
        [("get_weather", {"city": 'He said "hi" there'})],
    ),
    (block('{"city": "a\nb"}'), "", [("get_weather", {"city": "a\nb"})]),
    (block('{"days": "3"}'), "", [("get_weather", {"days": 3})]),
    (block('{"To": "a@b"}', "send_mail"), "", [("send_mail", {"to": "a@b"})]),
    (block('{"Days": 3}'), "", [("get_weather", {"Days": 3})]),
    (block("{}", "`clock.now`"), "", [NOW]),
    (block("None", "Clock.Now()"), "", [NOW]),
    ("USE_TOOL\nTOOL_NAME: functions.clock.now\nREASON: x", "", [NOW]),
    (block('{"city": "Oslo"}', "get_waether"), "", [OSLO]),
    ("NO_TOOL\nREASON: plain\n\nThe answer.", "The answer.", []),
    ("```\nNO_TOOL\nREASON: plain\n```\nThe answer.", "The answer.", []),
    (f"{CANONICAL}\nObservation: 3 degrees\nIt is cold.", "", [OSLO]),
]


@pytest.mark.parametrize(("text", "visible", "calls"), BLOCKS)
def test_a_block_is_read_through_noise(text: str, visible: str, calls: list[Call]) -> None:
    seen = read([text])
    assert " ".join(seen.text.split()) == visible
    assert seen.made() == calls
    assert not seen.reader.judge.open


DATA = [
    {"city": "USE_TOOL\nTOOL_NAME: x"},
    {"city": "TOOL_ARGS: {}"},
    {"city": "}]```</think><tool_call>"},
    {"city": "// not # a /* comment"},
    {"opts": {"a": [1, 2.5, None, True], "b": {"c": "：，"}}},
    {"city": "\u2028\U0001f600\t"},
    {"city": "null"},
]


@pytest.mark.parametrize("arguments", DATA)
def test_markers_keys_and_tags_inside_a_string_are_data(arguments: dict[str, Any]) -> None:
    seen = read([block(orjson.dumps(arguments).decode()) + "\nREASON: r"])
    assert seen.made() == [("get_weather", arguments)]
    assert seen.text == ""


def test_what_is_valid_keeps_the_models_own_numbers() -> None:
    seen = read([block('{"opts": {"a": 1.10, "b": 1e5, "c": 12345678901234567890123}}')])
    assert seen.calls == [
        ["get_weather", '{"opts":{"a":1.10,"b":1e5,"c":12345678901234567890123}}']
    ]


@pytest.mark.parametrize(("text", "calls"), TRAINED)
def test_a_trained_format_is_read(text: str, calls: list[Call]) -> None:
    seen = read([text])
    assert seen.made() == calls
    assert "<" not in seen.text
    assert "[" not in seen.text


@pytest.mark.parametrize("text", [text for text, *_ in BLOCKS] + [text for text, _ in TRAINED])
def test_every_cut_of_the_text_gives_the_same(text: str) -> None:
    expected = read([text]).whole()
    for pieces in cut_everywhere(text):
        assert read(pieces).whole() == expected, pieces
