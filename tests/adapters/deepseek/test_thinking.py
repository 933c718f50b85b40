"""DeepSeek's own rules of thinking: effort, pass-back and forced calls."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.deepseek import Habits, connect
from adapters.protocol import Json
from tests.adapters.deepseek.asking import (
    HELLO,
    NAMED,
    PLAIN,
    ROUND,
    THINKER,
    request,
    settings,
    tool,
    written,
)
from tests.support.dialogue import assistant, user

ON, OFF = {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}


def about_thinking(body: Json) -> Json:
    return {name: body[name] for name in ("thinking", "reasoning_effort") if name in body}


@pytest.mark.parametrize(
    ("effort", "sent", "notes"),
    [
        (None, {}, []),
        ("none", OFF, []),
        ("minimal", {**ON, "reasoning_effort": "low"}, ["effort_approximated"]),
        ("low", {**ON, "reasoning_effort": "low"}, []),
        ("medium", {**ON, "reasoning_effort": "high"}, ["effort_approximated"]),
        ("high", {**ON, "reasoning_effort": "high"}, []),
        ("xhigh", {**ON, "reasoning_effort": "high"}, ["effort_approximated"]),
        ("max", {**ON, "reasoning_effort": "max"}, []),
    ],
)
@pytest.mark.parametrize("model", [THINKER, PLAIN])
def test_effort_is_said_in_its_three_words(
    model: str, effort: str | None, sent: Json, notes: list[str]
) -> None:
    body, said = written(model=model, params={"reasoning_effort": effort})
    assert about_thinking(body) == sent
    assert [code for code, _ in said] == notes


@pytest.mark.parametrize(
    ("asked", "effort", "sent", "notes"),
    [
        ({"type": "enabled", "budget_tokens": 9}, None, ON, ["thinking_budget_dropped"]),
        ({"type": "disabled"}, None, OFF, []),
        (True, None, ON, []),
        (False, None, OFF, []),
        ({"type": "disabled"}, "high", OFF, ["effort_dropped"]),
        ({"type": "enabled"}, "none", ON, ["effort_dropped"]),
        ({"type": "enabled"}, "max", {**ON, "reasoning_effort": "max"}, []),
        ("enabled", None, {}, ["parameter_dropped"]),
        ("enabled", "none", OFF, ["parameter_dropped"]),
    ],
)
def test_the_vendors_own_thinking_outranks_the_effort(
    asked: Any, effort: str | None, sent: Json, notes: list[str]
) -> None:
    body, said = written(extra={"thinking": asked}, params={"reasoning_effort": effort})
    assert about_thinking(body) == sent
    assert [code for code, _ in said] == notes


@pytest.mark.parametrize(
    ("model", "effort", "sent", "notes"),
    [
        (THINKER, None, OFF, []),
        (THINKER, "none", OFF, []),
        (THINKER, "high", OFF, ["thinking_dropped", "effort_dropped"]),
        (PLAIN, None, {}, []),
    ],
)
def test_a_model_that_must_not_think_does_not(
    model: str, effort: str | None, sent: Json, notes: list[str]
) -> None:
    body, said = written(Habits(may_think=False), model=model, params={"reasoning_effort": effort})
    assert about_thinking(body) == sent
    assert [code for code, _ in said] == notes


def test_what_is_named_as_lost_is_what_was_sent() -> None:
    told = [
        written(Habits(may_think=False), **asked)[1][0]
        for asked in ({"extra": {"thinking": True}}, {"params": {"reasoning_effort": "low"}})
    ]
    assert told == [("thinking_dropped", "thinking"), ("thinking_dropped", "reasoning_effort")]


@pytest.mark.parametrize("choice", ["required", NAMED])
@pytest.mark.parametrize("effort", [None, "high"])
def test_a_forced_call_switches_thinking_off_for_the_call(
    choice: str | Json, effort: str | None
) -> None:
    asked = {"reasoning_effort": effort}
    body, notes = written(tools=(tool(),), tool_choice=choice, params=asked)
    assert (about_thinking(body), body["tool_choice"]) == (OFF, choice)
    assert notes[0] == ("thinking_disabled", "tool_choice")
    body, notes = written(model=PLAIN, tools=(tool(),), tool_choice=choice)
    assert (about_thinking(body), body["tool_choice"], notes) == ({}, choice, [])


@pytest.mark.parametrize(
    ("model", "choice", "sent"),
    [
        (THINKER, None, None),
        (THINKER, "auto", None),
        (THINKER, "none", "none"),
        (PLAIN, None, None),
        (PLAIN, "auto", "auto"),
        (PLAIN, "none", "none"),
    ],
)
def test_auto_is_left_out_while_it_thinks(model: str, choice: str | None, sent: str | None) -> None:
    assert written(model=model, tools=(tool(),), tool_choice=choice)[0].get("tool_choice") == sent


@pytest.mark.parametrize(
    ("given", "filler"),
    [
        ({}, ""),
        ({"model": PLAIN}, None),
        ({"params": {"reasoning_effort": "none"}}, None),
        ({"model": PLAIN, "params": {"reasoning_effort": "high"}}, ""),
        ({"tools": (tool(),), "tool_choice": "required"}, None),
    ],
)
def test_every_assistant_turn_has_thoughts_while_it_thinks(given: Json, filler: str | None) -> None:
    messages = (*HELLO, *ROUND, assistant("so"), user("and?"))
    body, _ = written(messages=messages, **given)
    turns = [message for message in body["messages"] if message["role"] == "assistant"]
    assert [turn.get("reasoning_content") for turn in turns] == [filler, filler]
    assert [turn["content"] for turn in turns] == ["", "so"]


def test_the_filler_is_what_the_config_says() -> None:
    leaf = connect(settings("http://up", options={"reasoning_filler": " "}))
    [planned] = leaf.plan(request(messages=(*HELLO, *ROUND)))
    assert planned.body["messages"][1]["reasoning_content"] == " "


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("model", [THINKER, PLAIN])
def test_thoughts_a_client_echoes_go_back(name: str, model: str) -> None:
    turn = {**ROUND[0], name: "hm", "thinking_blocks": [{}]}
    body, notes = written(model=model, messages=(*HELLO, turn, ROUND[1]))
    assert body["messages"][1]["reasoning_content"] == "hm"
    assert body["messages"][1].keys() <= {"role", "content", "tool_calls", "reasoning_content"}
    assert notes == [("part_dropped", "messages[1].thinking_blocks")]
