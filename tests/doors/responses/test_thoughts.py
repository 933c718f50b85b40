"""Thoughts that clients carry: sealed here, opened here, and nobody else's."""

from __future__ import annotations

import pytest

from adapters.protocol import THOUGHTS_OF, Aside, Finish, Json, ReasoningDelta
from tests.doors.responses.written import call, codes, item, output, read, whole

USER = item("user", "hi")
BLOCK = {"type": "thinking", "thinking": "hm", "signature": "s"}
SIGNED = Aside("thinking_blocks", [BLOCK])
STOP = Finish("tool_calls")


def thought(*events: ReasoningDelta | Aside) -> Json:
    """The item a client gets for them."""
    return next(one for one in whole(*events, STOP)["output"] if one["type"] == "reasoning")


def turn(*items: Json) -> Json:
    """The assistant's message of a history with these items."""
    _, said, *_ = read([USER, *items, call(), output()]).request.messages
    return said


def test_thoughts_come_back_as_their_upstream_wants_them() -> None:
    said = turn(thought(ReasoningDelta("hm"), SIGNED))
    assert said["thinking_blocks"] == [BLOCK]
    assert (said["reasoning_content"], said[THOUGHTS_OF]) == ("hm", "up")


def test_plain_thoughts_come_back_as_text() -> None:
    said = turn(thought(ReasoningDelta("h"), ReasoningDelta("m")))
    assert said["reasoning_content"] == "hm"
    assert "thinking_blocks" not in said


def test_signed_thoughts_behind_a_text_are_left_to_recall() -> None:
    said = turn(item("assistant", "well"), thought(SIGNED))
    assert "thinking_blocks" not in said
    said = turn(item("assistant", ""), thought(SIGNED))
    assert said["thinking_blocks"] == [BLOCK]


SPOILED = ("gAAAAABforeign", "utr1.", "utr1.AAAA", "utr1.!", "utm1.x")


@pytest.mark.parametrize("carried", SPOILED)
def test_what_is_not_ours_is_left_out_and_named(carried: str) -> None:
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": carried}
    parsed = read([USER, reasoning, call(), output()])
    assert codes(parsed) == [("thoughts_left", "")]
    assert carried not in str(parsed.request.messages)


def test_one_changed_letter_spoils_a_seal() -> None:
    reasoning = thought(ReasoningDelta("hm"))
    sealed = reasoning["encrypted_content"]
    at = len(sealed) // 2
    other = "A" if sealed[at] != "A" else "B"
    spoiled = {**reasoning, "encrypted_content": sealed[:at] + other + sealed[at + 1 :]}
    assert "reasoning_content" not in turn(spoiled)
