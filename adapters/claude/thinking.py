"""Whether and how hard Claude thinks about one request, without ever earning a 400 for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from adapters.claude.capabilities import Capability
from adapters.claude.conversation import Conversation
from adapters.errors import BadRequest
from adapters.protocol import Json, value_class
from adapters.receipts import Code
from adapters.shared.fields import Fields

LEAST_BUDGET = 1024
BUDGETS: Mapping[str, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 4096,
    "high": 8192,
    "xhigh": 16_384,
    "max": 32_000,
}
# Effort asked for → what is tried in its place, best first, where the model lacks it.
_EFFORTS: Mapping[str, tuple[str, ...]] = {
    "minimal": ("low",),
    "xhigh": ("xhigh", "max", "high"),
    "max": ("max", "high"),
}


@value_class
class Situation:
    """What of a request decides whether and how long Claude may think."""

    limit: int | None
    """The client's max_tokens."""
    room: int
    """Room for the answer, where there is no such limit."""
    forced: bool
    """A call is forced."""
    said: Conversation


class _Effort(NamedTuple):
    """How hard to think, and the field of the request that says so."""

    level: str
    field: str = "reasoning_effort"


@value_class
class ThinkingFields:
    thinking: Json | None = None
    effort: str | None = None
    """For `output_config`."""
    on: bool = False
    max_tokens: int = 0
    field: str = "reasoning_effort"
    """Which of the request says so."""


_UNASKED = ThinkingFields()


def is_on(thinking: Json | None, capability: Capability) -> bool:
    if thinking is None:
        return capability.unasked or capability.thinking == "always"
    return bool(thinking["type"] != "disabled")


def thought_of(fields: Fields, capability: Capability, seen: Situation) -> ThinkingFields:
    """Read `reasoning_effort` and Claude's own `thinking` (which outranks it)."""
    effort, vendor = fields.take("reasoning_effort"), fields.take("thinking")
    thought = _UNASKED
    if isinstance(vendor, dict):
        thought = _told(vendor, effort, fields, capability)
    elif effort is not None:
        thought = _asked(_Effort(effort), fields, capability)
    if vendor is not None and not isinstance(vendor, dict):
        fields.note("parameter_dropped", "thinking", "'thinking' is an object with a 'type'")
    if thought.thinking and thought.thinking.get("type") == "enabled":
        thought = _allowed(thought, fields, capability, seen)
    on = is_on(thought.thinking, capability)
    if on and seen.said.thoughtless:
        text = "earlier calls of this round are sent without Claude's thoughts: they were not kept"
        fields.note("thinking_missing_history", "messages", text)
    most = _max_tokens(thought, on, capability, seen)
    return ThinkingFields(thought.thinking, thought.effort, on, most)


def _max_tokens(thought: ThinkingFields, on: bool, capability: Capability, seen: Situation) -> int:
    """What the client says, else room for the answer and for the thought before it."""
    if seen.limit is not None:
        return seen.limit
    budget = (thought.thinking or {}).get("budget_tokens") or BUDGETS[thought.effort or "high"]
    return min(seen.room + (budget if on else 0), capability.max_output)


def _asked(effort: _Effort, fields: Fields, capability: Capability) -> ThinkingFields:
    if effort.level == "none":
        return _without(effort.field, fields, capability)
    if capability.thinking == "off":
        fields.note("parameter_dropped", effort.field, "this model does not think")
        return ThinkingFields()
    if capability.thinking == "manual":
        thinking = {"type": "enabled", "budget_tokens": BUDGETS[effort.level]}
        return ThinkingFields(_shown(thinking, capability), field=effort.field)
    return ThinkingFields(
        _shown({"type": "adaptive"}, capability), _level(effort, fields, capability)
    )


def _without(field: str, fields: Fields, capability: Capability) -> ThinkingFields:
    """No thought, or as little as there is where it cannot be switched off."""
    if capability.thinking == "adaptive":
        # Left out would mean on, for the newest.
        return ThinkingFields({"type": "disabled"})
    if capability.thinking != "always":
        return ThinkingFields()
    text = "this model always thinks: it was asked for as little as possible"
    fields.note("thinking_not_disabled", field, text)
    if capability.between_tools:
        return ThinkingFields(_shown({"type": "between_tools"}, capability))
    return ThinkingFields(_shown({"type": "adaptive"}, capability), "low")


def _level(effort: _Effort, fields: Fields, capability: Capability) -> str | None:
    asked = effort.level
    tried = _EFFORTS.get(asked, (asked,))
    level = next((one for one in tried if one in capability.efforts), None)
    if asked not in (level, "minimal"):
        fields.note("effort_adjusted", effort.field, f"sent as {level}: there is no {asked}")
    return level


def _shown(thinking: Json, capability: Capability) -> Json:
    """Newest models hide their thoughts unless asked."""
    if not capability.display or thinking["type"] == "between_tools":
        return thinking
    return {"display": "summarized", **thinking}


def _told(vendor: Json, effort: Any, fields: Fields, capability: Capability) -> ThinkingFields:
    """Claude's own `thinking`: as it is where the model takes it, else the nearest it takes."""
    kind = vendor.get("type")
    if kind not in _accepted(capability):
        fields.note("thinking_adapted", "thinking", f"this model has no thinking of type '{kind}'")
        said = _Effort(effort) if effort else _Effort(_effort_of(vendor), "thinking")
        return _asked(said, fields, capability)
    if kind == "adaptive" and effort not in (None, "none"):
        level = _level(_Effort(effort), fields, capability)
        return ThinkingFields(_shown(vendor, capability), level)
    if effort is not None:
        fields.note("parameter_dropped", "reasoning_effort", "'thinking' says more and outranks it")
    if kind == "disabled":
        return _without("thinking", fields, capability)
    defaults = {"budget_tokens": BUDGETS["medium"]} if kind == "enabled" else {}
    return ThinkingFields(_shown(defaults | vendor, capability), field="thinking")


def _effort_of(vendor: Json) -> str:
    if vendor.get("type") == "disabled":
        return "none"
    budget = vendor.get("budget_tokens")
    if not isinstance(budget, int):
        return "medium"
    return next((effort for effort, tokens in BUDGETS.items() if tokens >= budget), "max")


def _accepted(capability: Capability) -> tuple[str, ...]:
    between = ("between_tools",) if capability.between_tools else ()
    match capability.thinking:
        case "off":
            return ("disabled",)
        case "manual":
            return ("enabled", "disabled")
        case "always":
            return ("adaptive", *between)
    return ("adaptive", "disabled", *between, *(("enabled",) if capability.budgets else ()))


def _allowed(
    thought: ThinkingFields, fields: Fields, capability: Capability, seen: Situation
) -> ThinkingFields:
    """A budget has conditions; where one is not met, this request goes without a thought."""
    why = _obstacle(seen)
    if why:
        fields.note(*why)
        return ThinkingFields()
    most = capability.max_output - seen.room if seen.limit is None else seen.limit - 1
    thinking = thought.thinking or {}
    asked = thinking["budget_tokens"]
    if type(asked) is not int:
        text = "'thinking.budget_tokens' must be a whole number of tokens."
        raise BadRequest(text, param="thinking.budget_tokens")
    budget = min(asked, most)
    if budget < LEAST_BUDGET:
        text = f"a thought needs {LEAST_BUDGET} tokens or more, and less than max_tokens"
        fields.note("thinking_dropped", thought.field, text)
        return ThinkingFields()
    if budget < asked:
        text = f"the budget was lowered to {budget}, which is what max_tokens leaves"
        fields.note("thinking_budget_lowered", thought.field, text)
    return replace(thought, thinking={**thinking, "budget_tokens": budget})


def _obstacle(seen: Situation) -> tuple[Code, str, str] | None:
    if seen.forced:
        text = "Claude does not think when a call is forced"
        return "thinking_disabled_tool_choice", "tool_choice", text
    if seen.said.thoughtless:
        text = "calls of this round came back without the thought that led to them"
        return "thinking_disabled_history", "messages", text
    if seen.said.prefilled:
        text = "Claude does not think when it goes on with words of its own"
        return "thinking_disabled_prefill", "messages", text
    return None
