"""A conversation read forward: the turns of the assistant, each with the keys it is found by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.protocol import Json
from middleware.wrappers.recall.fingerprint import (
    Call,
    calls_of,
    collapsed,
    digest,
    image_digests,
    plain_text,
)
from middleware.wrappers.recall.memory import Memory

_MOST_MADE = 256


@dataclass(slots=True)
class Turn:
    """An assistant turn of a request."""

    position: int
    message: Json
    text: str
    calls: tuple[Call, ...]
    content_key: bytes
    """Key of what was said."""
    id_key: bytes
    """Key of what was said, with the ids of its calls, or of those before it."""
    images: str
    """Digest of the images before it."""
    has_ids: bool = False
    """There are ids, so that no other conversation has its key."""
    results: list[Json] = field(default_factory=list)
    made: dict[tuple[int, bytes], tuple[Json, Json]] = field(default_factory=dict)
    """What was made of messages of this round, beside them: leaves know objects again."""

    def restored(self, memory: Memory, identity: bytes) -> Json:
        """With what the memory has; `identity` is the memory's."""
        if found := self.made.get((id(self.message), identity)):
            return found[1]
        return self.again(self.message, identity, memory.restored(self.message))

    def again(self, message: Json, key: bytes, made: Json) -> Json:
        """What was made of a message before, if it was: of the same key it is the same."""
        if len(self.made) > _MOST_MADE:
            self.made.clear()
        return self.made.setdefault((id(message), key), (message, made))[1]

    @property
    def repeats(self) -> bool:
        """One tool was called twice, which not every client can say again."""
        return len(dict(self.calls)) < len(self.calls)

    def fits(self, memory: Memory) -> bool:
        """Is this what the memory says, or what a client may have made of it?"""
        own = calls_of(memory.message())
        allowed = own if memory.ids() == ids_of(self.message) else collapsed(own)
        if not all(call in pair for call, *pair in zip(self.calls, own, allowed, strict=True)):
            return False
        # Dify replaces images by a word from the second round of tools on.
        seen = {images for images in (memory.images, self.images) if images}
        # With calls the text may be left out, as Dify does; other text is another turn.
        texts = {plain_text(memory.text), ""} if own else {plain_text(memory.text)}
        return len(seen) < 2 and self.text in texts


@dataclass(slots=True)
class ReadTurns:
    """All of a request that decides where its turns are found; it goes on with the next one's."""

    chain: str
    """Digest of what was said so far."""
    ids: str = ""
    """Digest of the ids of all calls, if there are any."""
    images: str = ""
    turns: list[Turn] = field(default_factory=list)
    position: int = 0

    def copy(self) -> ReadTurns:
        turns = [*self.turns]
        if turns:  # the one that gets the results which follow
            turns[-1] = replace(turns[-1], results=[*turns[-1].results])
        return ReadTurns(self.chain, self.ids, self.images, turns, self.position)

    def add(self, message: Json) -> None:
        position, role, content = self.position, message["role"], message.get("content")
        self.position += 1
        if role == "tool" and self.turns:
            self.turns[-1].results.append(message)
            return
        self.end_round()
        text = plain_text(content)
        if role == "assistant":
            form: tuple[Any, ...] = (self._add_turn(position, message, text),)
        else:
            role = "system" if role == "developer" else role
            form = (text, message.get("name"))
            for image in image_digests(message):
                self.images = digest(self.images, image).hex()
        self.chain = digest(self.chain, role, form).hex()

    def _add_turn(self, position: int, message: Json, text: str) -> Any:
        calls, ids = calls_of(message), ids_of(message)
        content_key, id_key = self.keys(text, calls, ids)
        turn = Turn(position, message, text, calls, content_key, id_key, self.images)
        self.turns.append(turn)
        turn.has_ids = bool(self.ids or ids)
        self.ids = digest(self.ids, ids).hex() if ids else self.ids
        return collapsed(calls) or text

    def end_round(self) -> None:
        if self.turns and self.turns[-1].results:
            turn = self.turns[-1]
            last_results = collapsed(results_of(turn, turn.results))
            self.chain = digest(self.chain, last_results).hex()

    def keys(self, text: str, calls: tuple[Call, ...], ids: Sequence[str]) -> tuple[bytes, bytes]:
        """Those of a turn that follows here."""
        content_key = digest(self.chain, collapsed(calls) or text)
        # A turn without calls is told apart by the calls before it.
        return content_key, digest(content_key.hex(), ids or self.ids)


def ids_of(message: Json) -> list[str]:
    return [call["id"] for call in message.get("tool_calls") or ()]


def results_of(turn: Turn, results: Sequence[Json]) -> tuple[Call, ...]:
    """The results of a round, by the names of their tools."""
    contents = (plain_text(message["content"]) for message in results)
    return tuple(zip((name for name, _ in turn.calls), contents, strict=False))
