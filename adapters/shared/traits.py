"""What is known of a model before it is asked: limits and abilities."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Traits:
    """None is not known."""

    context_length: int | None = None
    max_output: int | None = None
    tools: bool | None = None
    parallel: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    json_schema: bool | None = None
    family: str | None = None

    def over(self, other: Traits) -> Traits:
        """These, and the other's where nothing is known here."""
        return Traits(*[
            mine if (mine := getattr(self, one.name)) is not None else getattr(other, one.name)
            for one in fields(self)
        ])  # fmt: skip
