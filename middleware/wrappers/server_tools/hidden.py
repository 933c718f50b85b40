"""Rounds that clients never see: remembered with the answer they led to, put back before it.

A client gets one assistant turn where the model and its tools had several. Each is remembered as
the messages it stands for, under two keys made of what the client knows of the conversation: with
the ids of its calls, and without, as some clients mint their own (`recall` says more of both). What
the system is told is in neither: some clients write the time there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import orjson

from adapters.protocol import TURN, ChatRequest, Json
from adapters.receipts import Note, Receipt
from middleware.wrappers.recall.fingerprint import (
    Call,
    calls_of,
    collapsed,
    digest,
    identity_of,
    image_digests,
    plain_text,
)
from middleware.wrappers.recall.store import Entry, Limits, Store, StoreFailure

_LOOKED_AT = 64
_MOST = Limits().max_entry
_SYSTEM = frozenset({"system", "developer"})
_THOUGHTS = frozenset({"reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"})
_NOT_KEPT = "the next turn goes up without what tools brought in this one"


@dataclass(slots=True)
class _Turn:
    """An assistant turn as the client has it."""

    position: int
    message: Json
    text: str
    calls: tuple[Call, ...]
    keys: tuple[bytes, ...]
    results: list[Json] = field(default_factory=list)


class HiddenRounds:
    """Reads a request once, if at all: `request()` is what goes on, `keep` is for the answer."""

    def __init__(self, request: ChatRequest, store: Store | None, model: str) -> None:
        self._request = request
        self._store = store
        self._mark = digest("server tools", request.call.owner, model)
        """Key of whether this client has any hidden rounds: most conversations need no more."""
        self._chain = self._mark.hex()
        self._is_read = False
        self._ids = ""
        self._turns: list[_Turn] = []
        self._open: _Turn | None = None
        """The one whose results are being read."""
        self._used: list[bytes] = []
        self._failure = ""

    @property
    def is_far(self) -> bool:
        return self._store is not None and self._store.distant and self._has_turns

    @property
    def _has_turns(self) -> bool:
        return any(message["role"] == "assistant" for message in self._request.messages)

    async def bring_near(self) -> None:
        if self._store is not None:
            self._read_all()
            keys = [key for turn in self._turns[-_LOOKED_AT:] for key in turn.keys]
            self._store = await self._store.near([self._mark, *keys])

    # Forward: what was said ----------------------------------------------------------------------

    def _read_all(self) -> None:
        if not self._is_read:
            self._is_read = True
            for position, message in enumerate(self._request.messages):
                self._read(position, message)
            self._end_results()

    def _read(self, position: int, message: Json) -> None:
        role = message["role"]
        if role == "tool" and self._turns:
            self._open = self._turns[-1]
            self._open.results.append(message)
        elif role not in _SYSTEM:
            self._end_results()
            text, calls = plain_text(message.get("content")), calls_of(message)
            if role == "assistant":
                keys = self._keys(text, calls, _ids(message))
                self._turns.append(_Turn(position, message, text, calls, keys))
                self._ids = digest(self._ids, _ids(message)).hex() if calls else self._ids
            self._add(role, collapsed(calls) or text, image_digests(message))

    def _end_results(self) -> None:
        turn, self._open = self._open, None
        if turn is not None:
            contents = {one["tool_call_id"]: plain_text(one["content"]) for one in turn.results}
            said = tuple(contents.get(identity, "") for identity in _ids(turn.message))
            names = (name for name, _ in turn.calls)
            self._add("tool", collapsed(tuple(zip(names, said, strict=True))))

    def _add(self, *said: object) -> None:
        self._chain = digest(self._chain, said).hex()

    def _keys(self, text: str, calls: tuple[Call, ...], ids: Sequence[str]) -> tuple[bytes, ...]:
        by_content = digest(self._chain, collapsed(calls) or text)
        known = ids or self._ids
        return (digest(by_content.hex(), known), by_content) if known else (by_content,)

    # What comes of it ----------------------------------------------------------------------------

    def request(self, steps_as_thoughts: bool = False) -> ChatRequest:
        """The request with all rounds that are known."""
        if self._has_turns and self._get(self._mark) is not None:
            self._read_all()
        found = {turn.position: hidden for turn in self._turns[-_LOOKED_AT:]
                 if (hidden := self._found(turn))}  # fmt: skip
        if not (found or steps_as_thoughts):
            return self._request
        return replace(self._request, messages=tuple(self._messages(found, steps_as_thoughts)))

    def _messages(self, found: dict[int, list[Json]], steps_as_thoughts: bool) -> Iterator[Json]:
        results: list[Json] = []
        for position, message in enumerate(self._request.messages):
            if message["role"] == "tool" and results:
                continue  # they stand behind their turn already
            results = []
            if hidden := found.get(position):
                turn = next(turn for turn in self._turns if turn.position == position)
                results = turn.results
                yield from _restored(turn, hidden)
            elif steps_as_thoughts and message["role"] == "assistant":
                yield _without_thoughts(message)
            else:
                yield message

    def _found(self, turn: _Turn) -> list[Json] | None:
        """The messages that a turn stands for."""
        for key in turn.keys:
            identity = self._get(key)
            value = None if identity is None else self._get(identity)
            if identity is None or value is None:
                continue
            text, messages = orjson.loads(value)
            if turn.text == text or (turn.calls and not turn.text):
                self._used += [identity, *turn.keys]
                return list(messages)
        return None

    def _get(self, key: bytes) -> bytes | None:
        if self._store is None:
            return None
        try:
            return self._store.get(key)
        except StoreFailure as failure:
            self._failure = str(failure)
            return None

    def receipt(self) -> Receipt:
        if not self._failure:
            return ()
        text = f"{self._failure}; the conversation goes up without the rounds of its tools"
        return (Note("recall_unavailable", "", text),)

    async def keep(self, told: str, messages: Sequence[Json], of_client: Sequence[Json]) -> Receipt:
        """Remember what the turn that the client gets stands for."""
        self._read_all()
        text = plain_text(told)
        calls = calls_of({"tool_calls": of_client})
        value = orjson.dumps([text, messages])
        identity = identity_of(value)
        keys = self._keys(text, calls, [call["id"] for call in of_client])
        entries = [Entry(identity, value), *(Entry(key, identity) for key in keys)]
        entries.append(Entry(self._mark, b"1"))
        if self._store is None:
            return (Note("recall_not_kept", "", f"recall is off; {_NOT_KEPT}"),)
        if len(value) > _MOST:
            text = f"it has {len(value)} bytes, at most {_MOST} are kept; {_NOT_KEPT}"
            return (Note("recall_not_kept", "", text),)
        try:
            await self._store.keep(entries, self._used)
        except StoreFailure as failure:
            return (Note("recall_not_kept", "", f"{failure}; {_NOT_KEPT}"),)
        return ()


def _ids(message: Json) -> list[str]:
    return [call["id"] for call in message.get("tool_calls") or ()]


def _restored(turn: _Turn, hidden: list[Json]) -> Iterator[Json]:
    """The turn's rounds; of the last, the client's results stand among those of the tools."""
    last = max(at for at, message in enumerate(hidden) if message["role"] == "assistant")
    yield from hidden[:last]
    own = {message["tool_call_id"]: message for message in hidden[last + 1 :]}
    yield {**_without_thoughts(turn.message), **hidden[last]}
    theirs = {message["tool_call_id"]: message for message in turn.results}
    sent = iter(_ids(turn.message))
    for identity in _ids(hidden[last]):
        if identity in own:
            yield own[identity]
        else:
            yield {**theirs[next(sent)], "tool_call_id": identity}


def _without_thoughts(message: Json) -> Json:
    """What is put back has its own; others would be of several rounds, or steps."""
    if not (_THOUGHTS | {TURN}) & message.keys():
        return message
    return {name: said for name, said in message.items() if name not in _THOUGHTS | {TURN}}
