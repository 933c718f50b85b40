"""One conversation: which of its turns are remembered, and what it is with those put back.

Forward each turn gets its two keys, backward they lead to memories: the package's docstring says
how and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import is_
from typing import Any

import orjson

from adapters.protocol import TURN, ChatRequest, Json
from adapters.receipts import Note, Receipt
from adapters.shared.beginnings import writer_of
from adapters.shared.cache import fitted
from middleware.wrappers.recall.fingerprint import calls_of, collapsed, identity_of, plain_text
from middleware.wrappers.recall.memory import Memory, loaded
from middleware.wrappers.recall.reading import ReadTurns, Turn, ids_of, results_of
from middleware.wrappers.recall.store import Entry, Store, StoreFailure

Line = dict[int, tuple[Memory, bytes]]
"""Number of a turn → its memory and the memory's identity."""
_NO_THOUGHT: Mapping[str, str] = {"thought": ""}
"""The turn of a pipeline that did not think."""
_LOOKED_AT = 64
"""How many of the last turns are looked for: one of them is remembered, or none is."""
_PLACES = 8
"""How many turns a receipt names."""


class RememberedHistory:
    """Reads a request once: `request()` is what goes up, `entries` and `before` what is kept."""

    def __init__(
        self, request: ChatRequest, store: Store, chain: bytes, by_ids: bool = False
    ) -> None:
        self._request = request
        self._store = store
        self._by_ids = by_ids
        """Finds only what ids tell apart from every other conversation."""
        begin = partial(ReadTurns, chain.hex())
        self._read = writer_of(request.messages, begin, ("recall", chain))
        self._read.end_round()
        self._turns = self._read.turns
        self._failure = ""
        self._line = self._chosen()
        self._restored = {
            self._turns[number].position: self._turns[number].restored(memory, identity)
            for number, (memory, identity) in self._line.items()
            # Any other only says which conversation it is.
            if memory.reasoning or memory.turn
        }

    @property
    def has_ids(self) -> bool:
        """Tools were called, by ids no other conversation has."""
        return bool(self._read.ids)

    def entries(self, memory: Memory) -> list[Entry]:
        """What is kept of the turn that follows here."""
        calls, value = calls_of(memory.message()), fitted(orjson.dumps(memory))
        keys = self._read.keys(plain_text(memory.text), calls, memory.ids())
        identity = identity_of(value)
        return [Entry(identity, value), *(Entry(key, identity) for key in keys)]

    # Backward: which memories belong to it -----------------------------------------------------

    def keys(self) -> list[bytes]:
        """All that it looks at, but for what lies there."""
        return [key for turn in self._turns[-_LOOKED_AT:] for key in self._keys_of(turn)]

    def _keys_of(self, turn: Turn) -> list[bytes]:
        keys = [turn.id_key] if turn.has_ids or not self._by_ids else []
        return keys if self._by_ids else [*keys, turn.content_key]

    def _chosen(self) -> Line:
        for number in reversed(range(len(self._turns))[-_LOOKED_AT:]):
            turn = self._turns[number]
            for key in self._keys_of(turn):
                if line := self._line_of(number, self._get(key)):
                    return line
        return {}

    def _line_of(self, number: int, identity: bytes | None) -> Line | None:
        """The memories from this one back to the first; None if it is of another conversation."""
        line: Line = {}
        memory = None if identity is None else self._loaded(identity)
        while identity is not None and memory is not None:
            if not self._turns[number].fits(memory):
                return None
            line[number] = memory, identity
            if memory.previous is None:
                break
            earlier, named = memory.previous
            if earlier >= number:
                return None
            number = earlier
            memory, identity = self._own(self._turns[number], bytes.fromhex(named))
        return line if self._results_fit(line) else None

    def _own(self, turn: Turn, named: bytes) -> tuple[Memory | None, bytes]:
        """The memory that a later one names, unless the client's ids say that it is another."""
        memory = self._loaded(named)
        if memory is not None and memory.ids() == ids_of(turn.message):
            return memory, named
        own = self._get(turn.id_key)
        return (memory, named) if own in (None, named) else (self._loaded(own), own)

    def _loaded(self, identity: bytes) -> Memory | None:
        value = self._get(identity)
        return None if value is None else loaded(value)

    def _results_fit(self, line: Line) -> bool:
        for number in range(max(line, default=0)):
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
        sent = results_of(turn, turn.results)
        kept = tuple(zip((name for name, _ in sent), map(plain_text, own), strict=False))
        allowed = (
            kept if memory is None or memory.ids() == ids_of(turn.message) else collapsed(kept)
        )
        return all(one in pair for one, *pair in zip(sent, kept, allowed, strict=False))

    def _get(self, key: bytes) -> bytes | None:
        try:
            return self._store.get(key)
        except StoreFailure as failure:
            self._failure = str(failure)
            return None

    # What comes of it --------------------------------------------------------------------------

    def request(self) -> ChatRequest:
        messages = [_without_turn(message) for message in self._request.messages]
        if not self._restored and all(map(is_, messages, self._request.messages)):
            return self._request
        for number, (memory, _) in self._line.items():
            turn = self._turns[number]
            if turn.position not in self._restored:
                continue
            messages[turn.position] = self._restored[turn.position]
            contents = _results_behind(number, self._line) if turn.repeats else None
            sent = ids_of(self._request.messages[turn.position])
            ids = dict(zip(sent, memory.ids(), strict=False))
            for at, message in enumerate(_pointed(turn, ids, contents), 1):
                messages[turn.position + at] = message
        return replace(self._request, messages=tuple(messages))

    def restored(self) -> frozenset[int]:
        """Positions of the turns whose thoughts are known here."""
        return frozenset(self._restored)

    def receipt(self) -> Receipt:
        notes: list[Note] = []
        if self._failure:
            text = f"{self._failure}; the conversation goes up as the client sent it"
            notes.append(Note("recall_unavailable", "", text))
        if at := sorted(position for position in self._restored if self._gained(position)):
            places = ", ".join(f"messages[{position}]" for position in at[:_PLACES])
            more = f" and {len(at) - _PLACES} more" if len(at) > _PLACES else ""
            text = f"thoughts the client does not send were put back into {places}{more}"
            notes.append(Note("thoughts_restored", "", text))
        return tuple(notes)

    def _gained(self, position: int) -> bool:
        """Does the turn hold more than the client sent?"""
        turn, sent = self._restored[position], self._request.messages[position]
        spoken = "reasoning_content" in turn.keys() - sent.keys()
        return spoken or turn.get(TURN, _NO_THOUGHT) != _NO_THOUGHT

    def used(self) -> list[bytes]:
        """Keys of what was put back."""
        turns = [self._turns[number] for number in self._line]
        pointers = [key for turn in turns for key in (turn.id_key, turn.content_key)]
        return [*(identity for _, identity in self._line.values()), *pointers]

    def before(self) -> Mapping[str, Any]:
        """What a memory of the answer says of the conversation before it."""
        last = max(self._line, default=None)
        previous = None if last is None else (last, self._line[last][1].hex())
        ended = self._turns[-1] if self._turns else None
        results = None
        if ended is not None and ended.results and ended.repeats:
            results = tuple(message["content"] for message in ended.results)
        return {"images": self._read.images, "previous": previous, "results": results}


def _results_behind(number: int, line: Line) -> tuple[Any, ...] | None:
    """The results of a turn's round as the answer to them remembers them."""
    return line[number + 1][0].results if number + 1 in line else None


def _pointed(
    turn: Turn, ids: Mapping[str, str], contents: tuple[Any, ...] | None
) -> Iterator[Json]:
    """Results that follow the upstream's own ids, in whatever order they were sent."""
    for at, message in enumerate(turn.results):
        identity = ids.get(message["tool_call_id"], message["tool_call_id"])
        content = message.get("content") if contents is None else contents[at]
        if identity == message["tool_call_id"] and _same_text(content, message.get("content")):
            yield message
        else:
            own = {} if contents is None else {"content": content}
            said = {**message, "tool_call_id": identity, **own}
            yield turn.again(message, orjson.dumps((identity, content)), said)


def _same_text(one: Any, other: Any) -> bool:
    return one is other or (type(one) is str and one == other)


def _without_turn(message: Json) -> Json:
    """A client cannot put words into the upstream's mouth."""
    if TURN not in message:
        return message
    return {name: value for name, value in message.items() if name != TURN}
