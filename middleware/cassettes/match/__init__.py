"""Which recorded turn answers an ask, and why none does."""

from middleware.cassettes.match.canonical import canonical, canonical_embeddings
from middleware.cassettes.match.carry import carry_into
from middleware.cassettes.match.differences import NOTHING, unequal
from middleware.cassettes.match.explanation import (
    Explanation,
    explain,
    explain_exhausted,
    explain_left,
)
from middleware.cassettes.match.keys import AskKey, key_of, set_aside, substitutions
from middleware.cassettes.match.likeness import CandidateTurn
from middleware.cassettes.match.paths import Step, path_text
from middleware.cassettes.match.rules import Mask, MatchRules, combined, read_rules
from middleware.cassettes.match.values import Form

__all__ = (
    "NOTHING",
    "AskKey",
    "CandidateTurn",
    "Explanation",
    "Form",
    "Mask",
    "MatchRules",
    "Step",
    "canonical",
    "canonical_embeddings",
    "carry_into",
    "combined",
    "explain",
    "explain_exhausted",
    "explain_left",
    "key_of",
    "path_text",
    "read_rules",
    "set_aside",
    "substitutions",
    "unequal",
)
