"""One way through a conversation, from its first message to its last, putting turns back.

A turn is found by what was said: the client, the model, the whole conversation before it as it went
upstream, and its own calls or text. The chain of digests over the conversation holds, for a turn
that was put back, the identity of its memory: a branch, an edited turn or another client's
conversation has another chain and finds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from adapters.protocol import TURN, ChatRequest, Json, Note, Receipt
from middleware.recall import said
from middleware.recall.memory import Memory, loaded
from middleware.recall.store import Entry, Store, StoreFailure


@dataclass(slots=True)
class Walk:
    """One way through a conversation, from its first message to its last."""

    asked: ChatRequest
    store: Store
    scope: str
    messages: list[Json] = field(default_factory=list)
    chain: bytes = b""
    images: str = ""
    used: list[bytes] = field(default_factory=list)
    """Keys that found something."""
    results: list[Entry] = field(default_factory=list)
    """Results of rounds that some clients cannot repeat, to be remembered with the answer."""
    notes: list[Note] = field(default_factory=list)
    _ids: dict[str, str] = field(default_factory=dict)
    """The client's ids of the last round → the upstream's."""
    _round: _Round | None = None

    def run(self) -> None:
        call = self.asked.call
        self.chain = said.digest(self.scope, call.client, self.asked.model)
        for message in self.asked.messages:
            if message["role"] == "tool":
                self._result(message)
            else:
                self._end_round()
                self._message(message)
        self._end_round()

    def request(self) -> ChatRequest:
        return replace(self.asked, messages=tuple(self.messages))

    def receipt(self) -> Receipt:
        return tuple(self.notes)

    def key(self, message: Json) -> bytes:
        """Where a turn that follows here is remembered."""
        calls = said.collapsed(said.calls(message))
        return said.digest(self.chain, calls or said.words(message.get("content")))

    def _message(self, message: Json) -> None:
        if message["role"] == "assistant":
            self._turn(message)
            return
        role = "system" if message["role"] == "developer" else message["role"]
        self._add(message, role, said.words(message.get("content")), message.get("name"))
        for image in said.images(message):
            self.images = said.digest(self.images, image).hex()

    def _add(self, message: Json, *form: Any) -> None:
        self.messages.append(message)
        self.chain = said.digest(self.chain, form)

    def _turn(self, message: Json) -> None:
        calls = said.calls(message)
        key = self.key(message)
        found = self._found(key, message, calls)
        if found is None:
            own = {name: value for name, value in message.items() if name != TURN}
            self._add(own, "assistant", said.words(message.get("content")), calls)
            identity = self.chain
        else:
            memory, identity = found
            self.used.append(key)
            self._add(memory.restored(message), "turn", identity)
        self._open_round(message, identity)

    def _found(
        self, key: bytes, message: Json, calls: Sequence[said.Call]
    ) -> tuple[Memory, bytes] | None:
        """The newest memory that can be meant, one with the client's own ids before all others."""
        ids = [call["id"] for call in message.get("tool_calls") or ()]
        chosen = None
        for value in self._kept(key):
            memory = loaded(value)
            same_ids = memory.ids() == ids
            if not self._fits(memory, message, calls, exactly=bool(ids) and same_ids):
                continue
            if same_ids:
                return memory, said.digest(value)
            chosen = chosen or (memory, said.digest(value))
        return chosen

    def _fits(
        self, memory: Memory, message: Json, calls: Sequence[said.Call], *, exactly: bool
    ) -> bool:
        # Dify replaces images by a word from the second round of tools on.
        if memory.images != self.images and memory.images and self.images:
            return False
        own = said.calls(memory.message())
        allowed = own if exactly else said.collapsed(own)
        fits = all(call in pair for call, *pair in zip(calls, own, allowed, strict=True))
        text = said.words(message.get("content"))
        # With calls the text may be left out, as Dify does; other text is another turn.
        return fits and (text == said.words(memory.text) or bool(own and not text))

    def _kept(self, key: bytes) -> Sequence[bytes]:
        try:
            return self.store.find(key)
        except StoreFailure as failure:
            if not self.notes:
                text = f"{failure}; the conversation goes up as the client sent it"
                self.notes.append(Note("recall_unavailable", "messages", text))
            return ()

    def _open_round(self, message: Json, identity: bytes) -> None:
        sent = [call["id"] for call in message.get("tool_calls") or ()]
        own = [call["id"] for call in self.messages[-1].get("tool_calls") or ()]
        self._ids = dict(zip(sent, own, strict=True))
        names = [name for name, _ in said.calls(message)]
        if len(set(names)) < len(names):
            self._round = _Round(identity, names, own == sent)

    def _result(self, message: Json) -> None:
        identity = self._ids.get(message["tool_call_id"], message["tool_call_id"])
        if identity != message["tool_call_id"]:
            message = {**message, "tool_call_id": identity}
        if self._round is None:
            self._add(message, "tool", said.words(message["content"]))
        else:
            self._round.results.append(message)

    def _end_round(self) -> None:
        """A round in which one tool was called twice: its results may have been collapsed too."""
        ended, self._round = self._round, None
        if ended is None:
            return
        results = ended.results
        key = ended.key()
        if ended.original:
            contents = orjson.dumps([message["content"] for message in results])
            self.results.append(Entry(key, contents))
        else:
            for value in self._kept(key):
                results = ended.restored(orjson.loads(value))
                break
        for message in results:
            self._add(message, "tool", said.words(message["content"]))


@dataclass(slots=True)
class _Round:
    """Calls of one turn of which several have the same name, and their results."""

    turn: bytes
    names: list[str]
    original: bool
    """The client sent the ids back, so it did not rebuild the round."""
    results: list[Json] = field(default_factory=list)

    def key(self) -> bytes:
        texts = (said.words(message["content"]).encode() for message in self.results)
        pairs = tuple(zip(self.names, texts, strict=True))
        return said.digest("results", self.turn, said.collapsed(pairs))

    def restored(self, contents: list[Any]) -> list[Json]:
        return [
            {**message, "content": content}
            for message, content in zip(self.results, contents, strict=True)
        ]
