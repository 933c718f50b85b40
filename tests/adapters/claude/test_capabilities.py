"""A model's name decides what it is asked for; the config outranks the name."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.claude.capabilities import FOREIGN, MODELS, NEWEST, capability


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-opus-5", "claude-opus-5"),
        ("claude-opus-5-5", "claude-opus-5-5"),
        ("claude-opus-5-20260901", "claude-opus-5"),
        ("anthropic/claude-opus-4.8", "claude-opus-4-8"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("claude-opus-4-6@20260205", "claude-opus-4-6"),
        ("anthropic/claude-sonnet-4.5:beta", "claude-sonnet-4-5"),
        ("Claude-Mythos-5-1", "claude-mythos-5-1"),
    ],
)
def test_name_finds_its_row_whoever_sells_it(name: str, row: str) -> None:
    assert capability(name, {}) is MODELS[row]


@pytest.mark.parametrize("name", ["claude-opus-6", "claude-opus-5-7", "claude-saga-1", "claude-"])
def test_claude_nobody_has_heard_of_is_taken_for_the_newest(name: str) -> None:
    assert capability(name, {}) is NEWEST


@pytest.mark.parametrize("name", ["kimi-k2", "glm-4.7", "bench", ""])
def test_other_names_get_what_every_server_of_this_language_has(name: str) -> None:
    assert capability(name, {}) is FOREIGN
    assert not FOREIGN.display


@pytest.mark.parametrize(
    ("field", "value", "names"),
    [
        ("sampling", False, "opus-4-7 opus-4-8 opus-5 opus-5-5 sonnet-5 sonnet-5-5 haiku-5-5 "
         "fable-5 fable-5-1 fable-5-2 mythos-preview mythos-5 mythos-5-1 mythos-5-2"),
        ("forced_tool", False, "opus-5-5 sonnet-5-5 fable-5-1 fable-5-2 mythos-5-1 mythos-5-2"),
        ("thinking", "always", "opus-5-5 sonnet-5-5 fable-5 fable-5-1 fable-5-2 mythos-preview "
         "mythos-5 mythos-5-1 mythos-5-2"),
        ("thinking", "adaptive",
         "opus-4-6 sonnet-4-6 opus-4-7 opus-4-8 opus-5 sonnet-5 haiku-5-5"),
        ("thinking", "off", "3-haiku 3-sonnet 3-opus 3-5-haiku 3-5-sonnet"),
        ("mid_system", True, "opus-4-8 opus-5 opus-5-5 sonnet-5 sonnet-5-5 haiku-5-5 fable-5 "
         "fable-5-1 fable-5-2 mythos-5 mythos-5-1 mythos-5-2"),
        ("bound", True, "opus-5-5 sonnet-5-5 haiku-5-5 fable-5-1 fable-5-2 mythos-5-1 mythos-5-2"),
        ("between_tools", True, "sonnet-5-5"),
        ("budgets", True, "opus-4-6 sonnet-4-6"),
        ("prefill", True, "3-haiku 3-sonnet 3-opus 3-5-haiku 3-5-sonnet 3-7-sonnet sonnet-4 "
         "sonnet-4-0 opus-4 opus-4-0 opus-4-1 haiku-4-5 sonnet-4-5 opus-4-5"),
    ],
)  # fmt: skip
def test_exactly_these_models(field: str, value: Any, names: str) -> None:
    found = {name for name, row in MODELS.items() if getattr(row, field) == value}
    assert found == {f"claude-{name}" for name in names.split()}


def test_models_without_xhigh_effort_say_so() -> None:
    assert "xhigh" not in MODELS["claude-opus-4-6"].efforts
    assert "xhigh" in MODELS["claude-opus-4-7"].efforts


def test_config_outranks_the_table_and_what_it_says_of_others_is_left_alone() -> None:
    found = capability("claude-opus-5-5", {"prefill": True, "context_length": 8})
    assert found.prefill
    assert not found.sampling
    assert not MODELS["claude-opus-5-5"].prefill
