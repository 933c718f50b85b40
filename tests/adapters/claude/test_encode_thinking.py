"""How much Claude thinks: effort, budgets, and what they stand beside."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.claude.capabilities import capability
from adapters.claude.encode import LONGEST_PLAIN, must_stream
from adapters.errors import BadRequest
from adapters.protocol import Json
from tests.adapters.claude.conversations import KIMI, ROUND, named
from tests.support.dialogue import assistant, user
from tests.support.upstreams.claude_wire import (
    ADAPTIVE,
    ALWAYS,
    BETWEEN,
    HELLO,
    MANUAL,
    PLAIN,
    UNASKED,
    WEATHER,
    request,
    sent,
    sent_with_notes,
)

SHOWN = {"display": "summarized"}
OFF: Json = {"type": "disabled"}
ON: Json = {"type": "adaptive", **SHOWN}


def budget(tokens: int) -> Json:
    return {"type": "enabled", "budget_tokens": tokens, **SHOWN}


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "level", "notes"),
    [
        (MANUAL, None, None, None, []),
        (MANUAL, "none", None, None, []),
        (MANUAL, "minimal", budget(1024), None, []),
        (MANUAL, "low", budget(2048), None, []),
        (MANUAL, "medium", budget(4096), None, []),
        (MANUAL, "high", budget(8192), None, []),
        (MANUAL, "xhigh", budget(16384), None, []),
        (MANUAL, "max", budget(32000), None, []),
        (ADAPTIVE, None, None, None, []),
        (ADAPTIVE, "none", OFF, None, []),
        (ADAPTIVE, "minimal", ON, "low", []),
        (ADAPTIVE, "medium", ON, "medium", []),
        (ADAPTIVE, "xhigh", ON, "max", ["effort_adjusted"]),
        (ADAPTIVE, "max", ON, "max", []),
        (UNASKED, None, None, None, []),
        (UNASKED, "none", OFF, None, []),
        (UNASKED, "xhigh", ON, "xhigh", []),
        (ALWAYS, None, None, None, []),
        (ALWAYS, "none", ON, "low", ["thinking_not_disabled"]),
        (ALWAYS, "high", ON, "high", []),
        (BETWEEN, "none", {"type": "between_tools"}, None, ["thinking_not_disabled"]),
        (BETWEEN, "low", ON, "low", []),
        (PLAIN, "none", None, None, []),
        (PLAIN, "high", None, None, ["parameter_dropped"]),
        (KIMI, "low", {"type": "enabled", "budget_tokens": 2048}, None, []),
    ],
)
def test_effort(model: str, effort: Any, thinking: Any, level: Any, notes: list[str]) -> None:
    body, found = sent(request(model=model, reasoning_effort=effort))
    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == level
    assert found == notes


@pytest.mark.parametrize(
    ("model", "asked", "thinking", "notes"),
    [
        (MANUAL, {"type": "enabled", "budget_tokens": 3000}, budget(3000), []),
        (MANUAL, {"type": "enabled"}, budget(4096), []),
        (MANUAL, {"type": "enabled", "budget_tokens": 500}, None, ["thinking_dropped"]),
        (MANUAL, OFF, None, []),
        (MANUAL, {"type": "adaptive"}, budget(4096), ["thinking_adapted"]),
        (ADAPTIVE, {"type": "enabled", "budget_tokens": 3000}, budget(3000), []),
        (ADAPTIVE, {"type": "adaptive", "display": "omitted"},
         {"type": "adaptive", "display": "omitted"}, []),
        (ADAPTIVE, OFF, OFF, []),
        (UNASKED, {"type": "enabled", "budget_tokens": 3000}, ON, ["thinking_adapted"]),
        (ALWAYS, OFF, ON, ["thinking_adapted", "thinking_not_disabled"]),
        (ALWAYS, {"type": "between_tools"}, ON, ["thinking_adapted"]),
        (BETWEEN, {"type": "between_tools"}, {"type": "between_tools"}, []),
        (PLAIN, OFF, None, []),
        (PLAIN, {"type": "enabled"}, None, ["thinking_adapted", "parameter_dropped"]),
        (MANUAL, {"type": "sideways"}, budget(4096), ["thinking_adapted"]),
        (MANUAL, True, None, ["parameter_dropped"]),
    ],
)  # fmt: skip
def test_claudes_own_thinking_field(
    model: str, asked: Any, thinking: Any, notes: list[str]
) -> None:
    body, found = sent(request(model=model, extra={"thinking": asked}))
    assert (body.get("thinking"), found) == (thinking, notes)


@pytest.mark.parametrize("tokens", ["3000", 3000.5, None, [3000], True])
def test_budget_is_a_whole_number(tokens: Any) -> None:
    asked = {"type": "enabled", "budget_tokens": tokens}
    with pytest.raises(BadRequest) as caught:
        sent(request(model=MANUAL, extra={"thinking": asked}))
    assert caught.value.param == "thinking.budget_tokens"


def test_budget_becomes_the_effort_it_is_worth() -> None:
    asked = {"type": "enabled", "budget_tokens": 10_000}
    body, _ = sent(request(model=UNASKED, extra={"thinking": asked}))
    assert body["output_config"] == {"effort": "xhigh"}


def test_own_field_outranks_the_effort_by_name() -> None:
    body, notes = sent(request(reasoning_effort="high", extra={"thinking": OFF}))
    assert ("thinking" in body, notes) == (False, ["parameter_dropped"])


def test_adaptive_thinking_outranks_the_wish_for_none() -> None:
    asked = request(
        model=UNASKED, reasoning_effort="none", extra={"thinking": {"type": "adaptive"}}
    )
    body, notes = sent_with_notes(asked)
    assert body["thinking"] == ON
    assert [(note.code, note.field) for note in notes] == [
        ("parameter_dropped", "reasoning_effort")
    ]


def test_adaptive_thinking_and_effort_go_together() -> None:
    asked = request(model=UNASKED, reasoning_effort="low", extra={"thinking": {"type": "adaptive"}})
    body, notes = sent(asked)
    assert (body["thinking"], body["output_config"]) == (ON, {"effort": "low"})
    assert notes == []


@pytest.mark.parametrize(
    ("limit", "effort", "thinking", "notes"),
    [
        (5, "high", None, ["thinking_dropped"]),
        (1024, "high", None, ["thinking_dropped"]),
        (1025, "high", budget(1024), ["thinking_budget_lowered"]),
        (5000, "high", budget(4999), ["thinking_budget_lowered"]),
        (8193, "high", budget(8192), []),
    ],
)
def test_budget_stays_below_max_tokens(
    limit: int, effort: str, thinking: Any, notes: list[str]
) -> None:
    body, found = sent(request(max_tokens=limit, reasoning_effort=effort))
    assert (body["max_tokens"], body.get("thinking"), found) == (limit, thinking, notes)


ENABLED: Json = {"type": "enabled", "budget_tokens": 30_000}


@pytest.mark.parametrize(
    ("model", "asked", "code"),
    [
        (MANUAL, {"max_tokens": 5, "extra": {"thinking": ENABLED}}, "thinking_dropped"),
        (MANUAL, {"max_tokens": 5000, "extra": {"thinking": ENABLED}}, "thinking_budget_lowered"),
        (
            MANUAL,
            {"max_tokens": 5, "extra": {"thinking": {"type": "adaptive"}}},
            "thinking_dropped",
        ),
        (MANUAL, {"max_tokens": 5, "reasoning_effort": "high"}, "thinking_dropped"),
        (ALWAYS, {"extra": {"thinking": OFF}}, "thinking_not_disabled"),
        (ALWAYS, {"reasoning_effort": "none"}, "thinking_not_disabled"),
        (PLAIN, {"extra": {"thinking": ENABLED}}, "parameter_dropped"),
        (ADAPTIVE, {"extra": {"thinking": {"type": "between_tools"}}}, "thinking_adapted"),
        (ADAPTIVE, {"reasoning_effort": "xhigh"}, "effort_adjusted"),
    ],
)
def test_what_is_named_is_what_was_sent(model: str, asked: Json, code: str) -> None:
    _, notes = sent_with_notes(request(model=model, **asked))
    (field,) = {"thinking", "reasoning_effort"} & {*asked, *asked.get("extra", ())}
    assert (code, field) in [(note.code, note.field) for note in notes]
    assert {note.field for note in notes} == {field}


SIGNED = {"type": "thinking", "thinking": "hm", "signature": "s"}


@pytest.mark.parametrize(
    ("asked", "note"),
    [
        ({"choice": "required"}, "thinking_disabled_tool_choice"),
        ({"choice": named("get_weather")}, "thinking_disabled_tool_choice"),
        ({"messages": ROUND}, "thinking_disabled_history"),
        ({"messages": (user("x"), assistant("{"))}, "thinking_disabled_prefill"),
    ],
)
def test_budget_gives_way_to_what_it_cannot_stand_beside(asked: Json, note: str) -> None:
    messages = asked.pop("messages", (HELLO,))
    body, notes = sent(request(*messages, tools=[WEATHER], reasoning_effort="low", **asked))
    assert ("thinking" in body, notes) == (False, [note])


@pytest.mark.parametrize(
    "messages",
    [
        (*ROUND, user("and now?")),
        (*ROUND, assistant("5 °C"), user("and now?")),
        (ROUND[0], {**ROUND[1], "thinking_blocks": [SIGNED]}, ROUND[2]),
    ],
)
def test_rounds_that_are_over_or_bring_their_thought_do_not_stop_thinking(
    messages: tuple[Json, ...],
) -> None:
    # A user's words beside the results still belong to the round.
    open_round = messages[-1] == user("and now?") and len(messages) == 4
    body, notes = sent(request(*messages, tools=[WEATHER], reasoning_effort="low"))
    assert ("thinking" in body) is not open_round
    assert bool(notes) is open_round


@pytest.mark.parametrize("model", [ADAPTIVE, ALWAYS])
def test_adaptive_models_go_on_without_the_lost_thought(model: str) -> None:
    body, notes = sent(request(*ROUND, model=model, tools=[WEATHER], reasoning_effort="low"))
    assert body["thinking"] == ON
    assert notes == ["thinking_missing_history"]


def test_adaptive_models_think_beside_a_forced_call() -> None:
    asked = request(model=ADAPTIVE, tools=[WEATHER], choice="required", reasoning_effort="low")
    body, notes = sent(asked)
    assert (body["thinking"], body["tool_choice"], notes) == (ON, {"type": "any"}, [])


@pytest.mark.parametrize(
    ("model", "asked", "streamed"),
    [
        (MANUAL, {}, False),
        (MANUAL, {"max_tokens": LONGEST_PLAIN}, False),
        (MANUAL, {"max_tokens": LONGEST_PLAIN + 1}, True),
        (MANUAL, {"reasoning_effort": "low"}, True),
        (ADAPTIVE, {}, False),
        (ADAPTIVE, {"reasoning_effort": "none"}, False),
        (UNASKED, {"max_tokens": 10}, True),
        (UNASKED, {"max_tokens": 10, "reasoning_effort": "none"}, False),
        (ALWAYS, {"max_tokens": 10}, True),
    ],
)
def test_long_and_thoughtful_answers_are_streamed(model: str, asked: Json, streamed: bool) -> None:
    body, _ = sent(request(model=model, **asked))
    assert must_stream(body, capability(model, {})) is streamed
    assert (body.get("stream") is True) is streamed
