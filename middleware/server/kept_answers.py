"""Answers that clients name later on: found before a body is read, kept before an answer ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from adapters.errors import TooLarge
from adapters.protocol import (
    Adapter,
    ChatRequest,
    Event,
    Events,
    Finish,
    Noted,
    Planned,
    value_class,
)
from adapters.receipts import Note
from adapters.shared.marks import marks
from middleware.cassettes.selection import Selection
from middleware.doors.body import MAX_VALUES
from middleware.doors.door import (
    KeepingDoor,
    KeptAnswer,
    KeptRecord,
    ParsedRequest,
    References,
    Stamp,
)
from middleware.server.runtime import Runtime
from middleware.server.transport.intake import Caller
from middleware.wrappers.recall import Entry, Limits, Store, StoreFailure, digest

_LONGEST = Limits().max_entry
_MOST_BYTES, _MOST_MARKS = 32 << 20, 4 * MAX_VALUES
"""Of a conversation that is put together; it repeats what its requests had in common."""
_GONE = b""
"""In the place of an answer that was deleted."""


@value_class
class KeptAnswers:
    """Those of one owner."""

    store: Store | None
    """None: nothing is kept."""
    owner: str

    @classmethod
    def of(
        cls, runtime: Runtime, caller: Caller, selection: Selection | None, model: str = ""
    ) -> KeptAnswers:
        """Those of a caller; a replay has its own."""
        store = runtime.answers
        if runtime.studio is not None and runtime.is_played(selection, model):
            store = runtime.studio.answers
        return cls(store, caller.owner)

    async def find(self, door: KeepingDoor, identities: Iterable[str]) -> dict[str, KeptAnswer]:
        """Those that are there."""
        return _read(door, await self._records(identities))

    async def _records(self, identities: Iterable[str]) -> dict[str, bytes]:
        """All are looked for at once."""
        wanted = [*dict.fromkeys(identities)]
        if self.store is None or not wanted:
            return {}
        keys = {identity: self._key(identity) for identity in wanted}
        try:
            near = await self.store.near([*keys.values()])
            found = {identity: near.get(key) for identity, key in keys.items()}
        except StoreFailure:
            return {}
        return {identity: record for identity, record in found.items() if record}

    def knowing_nothing(self, door: KeepingDoor, wanted: References) -> KeepingDoor | None:
        """The door, where there is nothing to look for; else None."""
        if self.store is None:
            return door.knowing(None, wanted)
        return None if wanted.previous or wanted.others else door.knowing({}, wanted)

    async def named(self, door: KeepingDoor, wanted: References) -> KeepingDoor:
        """The door, knowing what a body names."""
        first = (wanted.previous,) if wanted.previous else ()
        records = await self._records((*first, *wanted.others))
        answers = _read(door, records)
        if wanted.previous in answers:
            records |= await self._records(answers[wanted.previous].before)
            _require_modest(records)
            answers = _read(door, records)
        return door.knowing(answers, wanted)

    async def keep(self, record: KeptRecord) -> Note | None:
        """Keep an answer; return why it is not."""
        if self.store is None:  # known late: a cassette may leave its model to be asked live
            return _not_kept("recall is off")
        if len(record.value) > _LONGEST:
            return _not_kept(f"it has {len(record.value)} bytes, and at most {_LONGEST} are kept")
        try:
            entry = Entry(self._key(record.id), record.value)
            await self.store.keep([entry], [self._key(one) for one in record.before])
        except StoreFailure as failure:
            return _not_kept(str(failure))
        return None

    async def drop(self, identity: str) -> None:
        if self.store is not None:
            await self.store.keep([Entry(self._key(identity), _GONE)], ())

    def _key(self, identity: str) -> bytes:
        return digest("answer", self.owner, identity)


def _read(door: KeepingDoor, records: Mapping[str, bytes]) -> dict[str, KeptAnswer]:
    read = {identity: door.unpacked(record) for identity, record in records.items()}
    return {identity: answer for identity, answer in read.items() if answer is not None}


def _require_modest(records: Mapping[str, bytes]) -> None:
    """What was sent in many requests may be no more than what one may send."""
    size = sum(map(len, records.values()))
    if size > _MOST_BYTES or sum(len(marks(record)) for record in records.values()) > _MOST_MARKS:
        raise TooLarge(
            "The answers before 'previous_response_id' are too much for one request. Begin a new "
            "conversation with what of it is needed."
        )


def _not_kept(why: str) -> Note:
    return Note("recall_not_kept", "", f"{why}; later requests cannot name this answer")


@value_class
class Keeping(Adapter):
    """Keeps what is answered before the client hears that it is over. No `Wrapper`, as those are
    frozen: one is made for each answer.
    """

    inner: Adapter
    answers: KeptAnswers
    door: KeepingDoor
    parsed: ParsedRequest
    stamp: Stamp

    async def stream(self, request: ChatRequest) -> Events:
        events: list[Event] = []
        batches = self.inner.stream(request)
        try:  # as `aclosing` does, which costs more than this
            async for batch in batches:
                events += batch
                yield await self._kept(batch, events) if type(batch[-1]) is Finish else batch
        finally:
            await batches.aclose()

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        return self.inner.plan(request)

    async def _kept(self, batch: tuple[Event, ...], events: Sequence[Event]) -> tuple[Event, ...]:
        record = self.door.record(self.parsed, self.stamp, events)
        failure = await self.answers.keep(record)
        return batch if failure is None else (*batch[:-1], Noted((failure,)), batch[-1])
