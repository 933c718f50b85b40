"""JSON Schema for languages that speak only a part of it: inlining, subsets, and what was lost."""

from adapters.schema.merging import object_root
from adapters.schema.mismatch import mismatch
from adapters.schema.references import inline, inline_all
from adapters.schema.subsets import subset

__all__ = ("inline", "inline_all", "mismatch", "object_root", "subset")
