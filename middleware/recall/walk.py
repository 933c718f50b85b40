"""One conversation: which of its turns are remembered, and what it is with those put back.

Each turn has a key of what was said: client, model, every message before it, its own calls or text,
all in the form that no client's rewriting changes. Several memories may lie under one key, since
conversations begin alike; each memory names the one before it. So the last turn decides: its memory
leads back along its own conversation, and no turn of another one gets in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.protocol import TURN, ChatRequest, Json, Note, Receipt
from middleware.recall import said
from middleware.recall.memory import Memory, loaded
from middleware.recall.store import Store, StoreFailure


@dataclass(slots=True)
class Turn:
    """An assistant turn of a request."""

    position: int
    message: Json
    text: str
    calls: tuple[said.Call, ...]
    key: bytes
    images: str
    """Digest of the images before it."""
    results: list[Json] = field(default_factory=list)

    @property
    def repeats(self) -> bool:
        """One tool was called twice, which not every client can say again."""
        return len(dict(self.calls)) < len(self.calls)

    def ids(self) -> list[str]:
        return [call["id"] for call in self.message.get("tool_calls") or ()]

    def fits(self, memory: Memory) -> bool:
        """Is this what the memory says, or what a client may have made of it?"""
        own = said.calls(memory.message())
        allowed = own if memory.ids() == self.ids() else said.collapsed(own)
        if not all(call in pair for call, *pair in zip(self.calls, own, allowed, strict=True)):
            return False
        # Dify replaces images by a word from the second round of tools on.
        seen = {images for images in (memory.images, self.images) if images}
        # With calls the text may be left out, as Dify does; other text is another turn.
        texts = {said.words(memory.text), ""} if own else {said.words(memory.text)}
        return len(seen) < 2 and self.text in texts


Line = dict[int, tuple[Memory, bytes]]
"""Number of a turn → its memory and the memory's identity."""


class Walk:
    """Reads a request once: `request()` is what goes up, `key` and `before` place what is kept."""

    def __init__(self, asked: ChatRequest, store: Store, scope: str) -> None:
        self._asked = asked
        self._store = store
        self._chain = said.digest(scope, asked.call.client, asked.model).hex()
        self._turns: list[Turn] = []
        self._failure = ""
        self.images = ""
        for position, message in enumerate(asked.messages):
            self._read(position, message)
        self._end_round()
        self._line = self._chosen()

    # Forward: what was said --------------------------------------------------------------------

    def _read(self, position: int, message: Json) -> None:
        role, content = message["role"], message.get("content")
        if role == "tool" and self._turns:
            self._turns[-1].results.append(message)
            return
        self._end_round()
        text = said.words(content)
        if role == "assistant":
            calls = said.calls(message)
            key = self._key(text, calls)
            self._turns.append(Turn(position, message, text, calls, key, self.images))
            form: tuple[Any, ...] = (said.collapsed(calls) or text,)
        else:
            role = "system" if role == "developer" else role
            form = (text, message.get("name"))
            for image in said.images(message):
                self.images = said.digest(self.images, image).hex()
        self._chain = said.digest(self._chain, role, form).hex()

    def _end_round(self) -> None:
        if self._turns and self._turns[-1].results:
            turn = self._turns[-1]
            said_last = said.collapsed(_results(turn, turn.results))
            self._chain = said.digest(self._chain, said_last).hex()

    def key(self, message: Json) -> bytes:
        """Where a turn that follows here is kept."""
        return self._key(said.words(message.get("content")), said.calls(message))

    def _key(self, text: str, calls: tuple[said.Call, ...]) -> bytes:
        return said.digest(self._chain, said.collapsed(calls) or text)

    # Backward: which memories belong to it -----------------------------------------------------

    def _chosen(self) -> Line:
        for number in reversed(range(len(self._turns))):
            for memory, identity in self._candidates(self._turns[number]):
                line = self._line_of(number, memory, identity)
                if line is not None:
                    return line
        return {}

    def _candidates(self, turn: Turn) -> list[tuple[Memory, bytes]]:
        """Memories that fit a turn: with the client's own ids before all others, newest first."""
        found = [(loaded(value), said.identity(value)) for value in self._find(turn.key)]
        fitting = [entry for entry in found if turn.fits(entry[0])]
        return sorted(fitting, key=lambda entry: entry[0].ids() != turn.ids())

    def _line_of(self, number: int, memory: Memory, identity: bytes) -> Line | None:
        """The memories from this one back to the first; None if it is of another conversation."""
        line: Line = {number: (memory, identity)}
        while memory.previous is not None:
            earlier, wanted = memory.previous
            if earlier >= number:
                return None
            identity = bytes.fromhex(wanted)
            found = self._pick(self._turns[earlier].key, identity)
            if found is None:
                break  # forgotten: that turn goes up as the client sent it
            number, memory = earlier, loaded(found)
            if not self._turns[number].fits(memory):
                return None
            line[number] = (memory, identity)
        return line if self._results_fit(line) else None

    def _results_fit(self, line: Line) -> bool:
        for number in range(max(line)):
            turn = self._turns[number]
            if turn.repeats and turn.results and not self._round_fits(turn, number, line):
                return False
        return True

    def _round_fits(self, turn: Turn, number: int, line: Line) -> bool:
        """Of a round that calls one tool twice, the key holds only the last result of each."""
        own = _results_behind(number, line)
        if own is None:
            return False
        memory = line[number][0] if number in line else None
        sent = _results(turn, turn.results)
        kept = tuple(zip((name for name, _ in sent), map(said.words, own), strict=False))
        allowed = kept if memory is None or memory.ids() == turn.ids() else said.collapsed(kept)
        return all(one in pair for one, *pair in zip(sent, kept, allowed, strict=False))

    def _find(self, key: bytes) -> Sequence[bytes]:
        try:
            return self._store.find(key)
        except StoreFailure as failure:
            self._failure = str(failure)
            return ()

    def _pick(self, key: bytes, identity: bytes) -> bytes | None:
        try:
            return self._store.pick(key, identity)
        except StoreFailure as failure:
            self._failure = str(failure)
            return None

    # What comes of it --------------------------------------------------------------------------

    def request(self) -> ChatRequest:
        messages = [_without_turn(message) for message in self._asked.messages]
        for number, (memory, _) in self._line.items():
            turn = self._turns[number]
            messages[turn.position] = memory.restored(turn.message)
            contents = _results_behind(number, self._line) if turn.repeats else None
            for at, message in enumerate(_pointed(turn.results, memory, contents), 1):
                messages[turn.position + at] = message
        return replace(self._asked, messages=tuple(messages))

    def receipt(self) -> Receipt:
        if not self._failure:
            return ()
        text = f"{self._failure}; the conversation goes up as the client sent it"
        return (Note("recall_unavailable", "", text),)

    def used(self) -> list[bytes]:
        """Keys of what was put back."""
        return [self._turns[number].key for number in self._line]

    def before(self) -> Mapping[str, Any]:
        """What a memory of the answer says of the conversation before it."""
        last = max(self._line, default=None)
        previous = None if last is None else (last, self._line[last][1].hex())
        ended = self._turns[-1] if self._turns else None
        results = None
        if ended is not None and ended.results and ended.repeats:
            results = tuple(message["content"] for message in ended.results)
        return {"images": self.images, "previous": previous, "results": results}


def _results(turn: Turn, results: Sequence[Json]) -> tuple[said.Call, ...]:
    """The results of a round, by the names of their tools."""
    contents = (said.words(message["content"]) for message in results)
    return tuple(zip((name for name, _ in turn.calls), contents, strict=False))


def _results_behind(number: int, line: Line) -> tuple[Any, ...] | None:
    """The results of a turn's round as the answer to them remembers them."""
    return line[number + 1][0].results if number + 1 in line else None


def _pointed(
    results: Sequence[Json], memory: Memory, contents: tuple[Any, ...] | None
) -> Iterator[Json]:
    """Results that follow the upstream's own ids."""
    for at, (message, identity) in enumerate(zip(results, memory.ids(), strict=False)):
        own = {} if contents is None else {"content": contents[at]}
        yield {**message, "tool_call_id": identity, **own}


def _without_turn(message: Json) -> Json:
    """A client cannot put words into the upstream's mouth."""
    if TURN not in message:
        return message
    return {name: value for name, value in message.items() if name != TURN}
