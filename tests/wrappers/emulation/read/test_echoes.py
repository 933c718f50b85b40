"""What a small model repeats of our own prompt and frames is no text for the user."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware.wrappers.emulation.ask.prompt import OWN_LINES
from middleware.wrappers.emulation.emulated import EmulatedTools
from middleware.wrappers.emulation.rescue import LeakRescue
from tests.support.text_only import (
    HISTORY,
    Heard,
    Say,
    TextOnly,
    ask,
    asked,
    heard,
    tool,
)

CALL = {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
TURN = (
    {"role": "user", "content": "What time is it?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "noon"},
)
TOOLS = (tool("now"),)


def answer(text: str, size: int = 1000) -> Heard:
    model = EmulatedTools(TextOnly([Say(text, size=size)]))
    return heard(model, asked(*TURN, tools=TOOLS))


ECHOES = [
    ("CALL_ID: call_1\nCONTENT:\nnoon\nEND_TOOL_RESULT\nIt is noon.", "noon\nIt is noon."),
    ("CALL_ID: call_1 CONTENT: noon END_TOOL_RESULT", "noon"),
    ("TOOL_RESULT\nTOOL_NAME: now\nCALL_ID: call_1\nCONTENT:\nnoon\nEND_TOOL_RESULT", "noon"),
    ("TOOL_RESULT\nTOOL_NAME: now\nCONTENT:\nnoon\nEND_TOOL_RESULT\nNoon.", "noon\nNoon."),
    ("TOOL_RESULT TOOL_NAME: now CONTENT: noon", "noon"),
    ("TOOL_NAME: now\nCALL_ID: call_1\nCONTENT:\nIt is noon.", "It is noon."),
    ("TOOL_NAME: now\nCONTENT: It is noon.", "It is noon."),
    ("TOOL_RESULT\nTOOL_NAME: now", ""),
    ("CONTENT:\nIt is noon.", "It is noon."),
    ("CALL_ID: call_1\nIt is noon.", "It is noon."),
    ("It is noon.\nCALL_ID: call_1", "It is noon."),
    ("It is noon.\nEND_TOOL_RESULT", "It is noon."),
    ("It is noon.\nEND_TOOL_RESULT\nYes.", "It is noon.\nYes."),
    ('CALL_ID: x\nCONTENT:\n{"a": 1} END_TOOL_RESULT\nSo.', '{"a": 1}\nSo.'),
    ("It is noon.\nAnswer the user, or call another tool in the same format.", "It is noon."),
    ("You can call tools. To call a tool, write exactly this block and nothing after it:\nNoon.",
     "Noon."),
    ("CALL_ID: x\r\nCONTENT:\r\nnoon\r\nEND_TOOL_RESULT\r\n", "noon"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "visible"), ECHOES)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_lines_of_our_frames_never_reach_the_user(text: str, visible: str, size: int) -> None:
    heard = answer(text, size)
    assert (heard.text.strip().replace("\r", ""), heard.calls) == (visible, [])
    assert heard.notes == ["prompt_lines_dropped"]


@pytest.mark.parametrize(
    "text",
    [
        "The line CALL_ID: tells the call, END_TOOL_RESULT ends it.",
        "Content:\nIt is noon.",
        "Here:\nCONTENT:\n1. Noon\n2. Evening",
        "CONTENT: a list of what is in it.",
        "TOOL_RESULT is what I was given, CALL_ID: is its id.",
        "END_TOOL_RESULT comes last.",
        "```\nTOOL_RESULT\nTOOL_NAME: now\nCALL_ID: x\nCONTENT:\nnoon\nEND_TOOL_RESULT\n```\nSo.",
        "> CALL_ID: call_1\n> CONTENT:\n> noon",
        "`CALL_ID: call_1`\nis what it says.",
        "You can call tools. To call a tool, ask me.",
        "Answer the user, or go.",
    ],
)
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_text_that_speaks_of_the_frames_stays(text: str, size: int) -> None:
    heard = answer(text, size)
    assert (heard.text, heard.calls, heard.notes) == (text, [], [])


def test_behind_a_call_the_rest_of_a_frame_is_an_invented_result() -> None:
    block = "USE_TOOL\nTOOL_NAME: now\nTOOL_ARGS: {}\n"
    for rest in ("CALL_ID: 1\nCONTENT:\n3 o'clock", "CONTENT: 3 o'clock\nSo it is three."):
        for size in (1, 1000):
            heard = answer(block + rest, size)
            assert (heard.text, heard.calls) == ("", [("now", {})])


def test_the_form_repeated_without_a_call_is_asked_again_and_never_shown() -> None:
    form = "USE_TOOL\nTOOL_NAME: <one tool name from the list>\n"
    heard = answer(form + "TOOL_ARGS: <one JSON object on one line>")
    assert (heard.text, heard.notes) == ("", ["tool_repair_failed"])


def test_a_server_with_tools_of_its_own_was_told_no_lines_of_ours() -> None:
    text = "CALL_ID: call_1\nCONTENT:\nnoon"
    heard_native = heard(LeakRescue(TextOnly([Say(text)])), asked(*TURN, tools=TOOLS))
    assert heard_native.text == text


PIECES = st.sampled_from([
    "TOOL_RESULT", "END_TOOL_RESULT", "CALL_ID:", " c1", "CONTENT:", "TOOL_NAME:", " now", "\n",
    " ", "noon", "USE_TOOL", "TOOL_ARGS: {}", "```", *sorted(OWN_LINES),
])  # fmt: skip


@given(st.lists(PIECES, max_size=12).map("".join), st.integers(1, 9))
def test_what_is_dropped_does_not_hang_on_the_cuts(text: str, size: int) -> None:
    whole, cut = answer(text), answer(text, size)
    assert (whole.text, whole.calls, whole.notes) == (cut.text, cut.calls, cut.notes)


def test_an_id_is_shown_only_where_the_name_does_not_tell_the_call() -> None:
    _, model = ask("Noon.", messages=TURN, tools=TOOLS)
    assert "CALL_ID" not in model.asked[0].messages[-1]["content"]
    _, model = ask("Cold.", messages=HISTORY)
    assert "CALL_ID" not in model.asked[0].messages[-1]["content"]
    twice = {**TURN[1], "tool_calls": [CALL, {**CALL, "id": "call_2"}]}
    both = (TURN[0], twice, TURN[2], {**TURN[2], "tool_call_id": "call_2"})
    _, model = ask("Noon.", messages=both, tools=TOOLS)
    assert "CALL_ID: call_1\nCONTENT:\nnoon" in model.asked[0].messages[-1]["content"]
    assert "CALL_ID: call_2\n" in model.asked[0].messages[-1]["content"]
