"""What a config may say of tools by prompt, apart from what reads and writes them: that is loaded
where a model needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from adapters.kind import Kind
from adapters.options import choice, option, whole

Way = Literal["response_format", "structured_outputs", "json_schema", "lark", "off"]


@dataclass(frozen=True, slots=True)
class Emulation:
    """How tools are emulated for a model."""

    reask: int = option("How often a faulty call is asked for again", whole(0, 1), 1)
    constraint: Way = option(
        "How its server is held to the form of a demanded call",
        choice(*get_args(Way)),
        "response_format",
    )
    hold: int = option(
        "Characters at the start that may turn out to be an unmarked thought", whole(0), 64
    )
    result_length: int | None = option("Longest tool result in characters", whole(1))
    decide: bool = False
    """A question is first decided on, then answered; for pipelines, which thought about it."""


class ToolSettings(NamedTuple):
    """What the config says of a model's tools."""

    mode: str
    kind: Kind
    """Of its upstream."""
    abilities: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    decide: bool = False
    """A question is first decided on, then answered; for pipelines, which thought about it."""
