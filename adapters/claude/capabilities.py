"""What each Claude model can do, as data: the API says most of it only by refusing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal

from adapters.options import FLAG, TEXTS, THINKING, option, overridden, whole
from adapters.shared.traits import Traits

Thinking = Literal["off", "manual", "adaptive", "always"]
EFFORTS = ("low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Capability:
    """One model's abilities; each field can be overridden in the config, by its name."""

    sampling: bool = option("It takes temperature, top_p and top_k", FLAG, True)
    forced_tool: bool = option(
        "It obeys a tool_choice that forces a call; else that is a 400", FLAG, True
    )
    thinking: Thinking = option(
        "manual: a budget; adaptive: an effort; always: an effort, and it cannot be switched off",
        THINKING,
        "manual",
    )
    budgets: bool = option("It thinks adaptively, but takes a budget too", FLAG, False)
    unasked: bool = option("It thinks when the request does not mention thinking", FLAG, False)
    between_tools: bool = option("It thinks between tool calls at its lowest setting", FLAG, False)
    bound: bool = option(
        "Its thoughts are valid only behind the unchanged conversation they were made in",
        FLAG,
        False,
    )
    display: bool = option("It knows `thinking.display`", FLAG, True)
    efforts: tuple[str, ...] = option("The efforts it takes", TEXTS, EFFORTS)
    prefill: bool = option("It continues a last assistant message", FLAG, True)
    mid_system: bool = option(
        "It takes system messages in the middle of a conversation", FLAG, False
    )
    # So recorded on 4.5, 4.6 and 4.8.
    assistant_first: bool = option("It takes a conversation that the assistant begins", FLAG, True)
    json_schema: bool = option("It has `output_config.format` and strict tools", FLAG, False)
    vision: bool = option("It reads images", FLAG, True)
    tools: bool = option("It calls tools", FLAG, True)
    max_tokens: int = 8192
    """Room for the answer where the client gives no limit."""
    max_output: int = option("The most that answer and thought may have together", whole(1), 64_000)


_CLAUDE_3 = Capability(thinking="off", max_tokens=4096, max_output=4096)
_CLAUDE_3_5 = Capability(thinking="off", max_output=8192)
_SONNET_4 = Capability()
_OPUS_4 = Capability(max_output=32_000)
_CLAUDE_4_5 = Capability(json_schema=True)
_CLAUDE_4_6 = Capability(
    thinking="adaptive",
    budgets=True,
    efforts=("low", "medium", "high", "max"),
    prefill=False,
    json_schema=True,
    max_output=128_000,
)
_OPUS_4_7 = replace(_CLAUDE_4_6, sampling=False, budgets=False, efforts=EFFORTS)
_OPUS_4_8 = replace(_OPUS_4_7, mid_system=True)
_CLAUDE_5 = replace(_OPUS_4_8, unasked=True)
_HAIKU_5_5 = replace(_CLAUDE_5, bound=True)
_FABLE_5 = replace(_CLAUDE_5, thinking="always")
_OPUS_5_5 = replace(_FABLE_5, forced_tool=False, bound=True)

# A Claude nobody has heard of yet is taken for one of the newest; anything else is some server
# that speaks Messages, and is asked for what they all have.
NEWEST = _OPUS_5_5
FOREIGN = Capability(display=False, assistant_first=False)

MODELS: Mapping[str, Capability] = {
    **dict.fromkeys(("claude-3-haiku", "claude-3-sonnet", "claude-3-opus"), _CLAUDE_3),
    **dict.fromkeys(("claude-3-5-haiku", "claude-3-5-sonnet"), _CLAUDE_3_5),
    **dict.fromkeys(("claude-3-7-sonnet", "claude-sonnet-4", "claude-sonnet-4-0"), _SONNET_4),
    **dict.fromkeys(("claude-opus-4", "claude-opus-4-0"), _OPUS_4),
    "claude-opus-4-1": replace(_OPUS_4, json_schema=True),
    **dict.fromkeys(("claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5"), _CLAUDE_4_5),
    **dict.fromkeys(("claude-sonnet-4-6", "claude-opus-4-6"), _CLAUDE_4_6),
    "claude-opus-4-7": _OPUS_4_7,
    "claude-opus-4-8": _OPUS_4_8,
    **dict.fromkeys(("claude-opus-5", "claude-sonnet-5"), _CLAUDE_5),
    "claude-haiku-5-5": _HAIKU_5_5,
    "claude-opus-5-5": _OPUS_5_5,
    "claude-sonnet-5-5": replace(_OPUS_5_5, between_tools=True),
    **dict.fromkeys(("claude-fable-5", "claude-mythos-5"), _FABLE_5),
    "claude-mythos-preview": replace(_FABLE_5, mid_system=False),
    **dict.fromkeys(("claude-fable-5-1", "claude-fable-5-2"), _OPUS_5_5),
    **dict.fromkeys(("claude-mythos-5-1", "claude-mythos-5-2"), _OPUS_5_5),
}
# What other sellers of Claude put behind the name: a date, a revision, a variant.
_SUFFIX = re.compile(r"-\d{8}.*|-latest$|-v\d.*|[@:].*")


def capability(model: str, abilities: Mapping[str, Any]) -> Capability:
    """Find a model's row by its name; what the config says outranks it."""
    return overridden(_row(model), abilities) if abilities else _row(model)


def capabilities(abilities: Mapping[str, Any]) -> Callable[[str], Capability]:
    """`capability` with what one config says, found once for each model."""
    if not abilities:
        return _row
    return lru_cache(maxsize=256)(partial(capability, abilities=abilities))


def traits_of(model: str, abilities: Mapping[str, Any]) -> Traits:
    """What there is to say of a model to those who choose one."""
    return _traits(capability(model, abilities)) if abilities else _traits_by_name(model)


@lru_cache(maxsize=256)
def _traits_by_name(model: str) -> Traits:
    return _traits(_row(model))


def _traits(able: Capability) -> Traits:
    return Traits(
        max_output=able.max_output,
        tools=able.tools,
        parallel=able.tools,
        vision=able.vision,
        reasoning=able.thinking != "off",
        json_schema=able.json_schema,
    )


@lru_cache(maxsize=256)
def _row(model: str) -> Capability:
    _, start, rest = model.lower().partition("claude-")
    if not start:
        return FOREIGN
    return MODELS.get(_SUFFIX.sub("", start + rest.replace(".", "-")), NEWEST)
