"""Thoughts that clients carry for us: into the `encrypted_content` of an item, and back."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from adapters.protocol import THOUGHTS_OF, Json
from middleware.doors.seal import seal, unseal

MARK = "utr1."
SIGNED = "thinking_blocks"
KEPT_MEMBERS = frozenset({SIGNED, "reasoning_details"})
"""Members of an assistant message that hold thoughts as their upstream wants them back."""
_LONGEST = 8 << 20


@dataclass(slots=True)
class SealedThought:
    """What one reasoning item says."""

    text: str = ""
    members: Json = field(default_factory=dict)
    upstream: str = ""
    """Whose it is; empty: nobody knows."""
    leads: bool = True
    """Nothing was said or called in its turn before it."""


def sealed(thought: SealedThought, secret: bytes) -> str:
    # What stands beside a name of two is of the second, which recall knows better.
    members = {} if "+" in thought.upstream else thought.members
    content = zlib.compress(orjson.dumps([thought.text, members]), 1)
    return seal(MARK, secret, thought.upstream, content)


def unsealed(text: str, secret: bytes) -> SealedThought | None:
    """Undo `sealed`; None: it is another's, or was changed."""
    found = unseal(MARK, secret, text)
    if found is None:
        return None
    with suppress(zlib.error, orjson.JSONDecodeError, ValueError, AttributeError):
        unpacker = zlib.decompressobj()
        said, members = orjson.loads(unpacker.decompress(found[1], _LONGEST))
        known = {name: members[name] for name in KEPT_MEMBERS & members.keys()}
        return SealedThought(str(said), known, found[0])
    return None


def as_members(thoughts: Sequence[SealedThought]) -> Json:
    """The members of the assistant message that thought so; of two upstreams, the last's."""
    if not thoughts:
        return {}
    owner = thoughts[-1].upstream
    own = [thought for thought in thoughts if thought.upstream == owner]
    members: Json = {"reasoning_content": "".join(thought.text for thought in own)}
    for name, thought in [(name, one) for one in own for name in one.members]:
        # Signed ones stand before all else, or the upstream refuses them: recall has the rest.
        if thought.leads or name != SIGNED:
            members[name] = [*members.get(name, ()), *thought.members[name]]
    members[THOUGHTS_OF] = owner
    return {name: said for name, said in members.items() if said}


def summary_text(item: Any) -> str:
    """What an item says of its thought in clear."""
    parts = item.get("summary") or item.get("content") or ()
    return "\n".join(part["text"] for part in parts)
