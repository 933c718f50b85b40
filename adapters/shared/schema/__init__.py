"""JSON Schema for languages that speak only a part of it: inlining, subsets, and what was lost."""

from adapters.shared.schema.merging import object_root
from adapters.shared.schema.mismatch import mismatch, mismatches
from adapters.shared.schema.references import inline, inline_all
from adapters.shared.schema.subsets import subset

__all__ = ("inline", "inline_all", "mismatch", "mismatches", "object_root", "subset")
