"""DeepClaude as an ordinary model: one adapter thinks, another answers and calls the tools."""

from middleware.wrappers.pipeline.adapter import ReasonThenAnswer
from middleware.wrappers.pipeline.request import Pipeline

__all__ = ("Pipeline", "ReasonThenAnswer")
