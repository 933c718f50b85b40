"""DeepClaude as an ordinary model: one adapter thinks, another answers and calls the tools."""

from middleware.pipeline.adapter import ReasonThenAnswer
from middleware.pipeline.asked import Pipeline
from middleware.pipeline.show import Show

__all__ = ("Pipeline", "ReasonThenAnswer", "Show")
