"""Thoughts of other upstreams, where several stand for one model: they are left out, and named.

A signature is good at its own upstream alone and refused at every other, and what this one's memory
does not know is not its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from adapters.protocol import THOUGHTS_OF, ChatRequest
from adapters.receipts import Note, Receipt

_SIGNED = frozenset(("thinking_blocks", "reasoning_details"))
_UNSIGNED = "reasoning_content"


@dataclass(frozen=True, slots=True)
class ForeignThoughts:
    """Turns of a request with thoughts that are not this upstream's; whether they are signed."""

    turns: Mapping[int, bool]

    def without(self, request: ChatRequest) -> ChatRequest:
        if not any(self.turns.values()):
            return request
        messages = [*request.messages]
        for at in self.turns:
            kept = messages[at].keys() - _SIGNED
            messages[at] = {name: said for name, said in messages[at].items() if name in kept}
        return replace(request, messages=tuple(messages))

    def receipt(self, of_leaf: Receipt) -> Receipt:
        """What was left out here, and by the leaf."""
        if not self.turns:
            return ()
        fields = [note.field.rpartition(".") for note in of_leaf]
        lost = {turn for turn, _, member in fields if member == _UNSIGNED}
        left = [
            f"messages[{at}]"
            for at, signed in self.turns.items()
            if signed or f"messages[{at}]" in lost
        ]
        text = f"thoughts of another upstream were left out of {', '.join(left)}"
        return (Note("thoughts_left", "", text),) if left else ()


def foreign_thoughts(
    request: ChatRequest, upstream: str = "", own: Collection[int] = ()
) -> ForeignThoughts:
    """`own`: the turns whose thoughts this upstream had itself."""
    found = {}
    for at, message in enumerate(request.messages):
        if message["role"] != "assistant" or at in own:
            continue
        if THOUGHTS_OF in message and message[THOUGHTS_OF] == upstream:
            continue
        signed = any(message.get(name) for name in _SIGNED)
        if signed or message.get(_UNSIGNED):
            found[at] = signed
    return ForeignThoughts(found)
