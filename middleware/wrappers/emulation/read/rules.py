"""What a reader takes for a call, for one request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadRules:
    """What counts as a call."""

    trained: bool = True
    """Are the formats models were trained on read too?"""
    bare: bool = True
    """Is JSON that is the whole answer a call? Not where the client asked for JSON."""
    prose: bool = True
    """Is one exact JSON call amid prose a call? Only for models without native tools."""
    forced: bool = False
    """A call was demanded."""
    withheld: bool = False
    """No call was allowed: only whole blocks are taken out, and not passed on."""
    hold: int = 64
    """Characters at the start of an answer that may turn out to be an unmarked thought."""
    thoughts: bool = True
    """Are thoughts in the text told apart? Not where the upstream does it."""
    prompted: bool = False
    """Was the model told of the form, and shown results in it? It may repeat what it was told."""
    known: tuple[str, ...] = ()
    """Names of withdrawn tools, seen in the conversation."""
