"""`Passage`: one answer of the model on its way to the client, and into its round."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from adapters.protocol import (
    Aside,
    Event,
    Finish,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from adapters.receipts import Receipt
from middleware.wrappers.base import with_notes
from middleware.wrappers.server_tools.client_answer import ClientAnswer
from middleware.wrappers.server_tools.round import OF_ONE_ANSWER, Round

_Batch = tuple[Event, ...]
_PASSING = frozenset({TextDelta, ReasoningDelta, RefusalDelta, ToolCallDelta})
_LOOKED_AT = frozenset({Opened, ToolCallStart, Aside, Finish})


@dataclass(slots=True)
class Passage:
    answer: Round
    client: ClientAnswer
    receipt: Receipt
    """Of what was done before the model was asked."""
    untouched: bool
    """All that came so far is the client's as it is: batches are handed on, and only kept for the
    case that a call of a server tool follows.
    """
    tells_thoughts: bool
    """The client has to hold what of them the upstream wants back."""
    _heard: list[_Batch] = field(default_factory=list)

    def told(self, batch: _Batch) -> _Batch:
        """What of it the client gets now."""
        if self.untouched:
            if len(batch) == 1 and type(batch[0]) in _PASSING:
                self._heard.append(batch)
                return batch
            if self._is_client_s(batch):
                self._heard.append(batch)
                return self._handed_on(batch)
            self._catch_up()
        first = batch[0]
        if self.client.is_plain and len(batch) == 1 and type(first) is TextDelta:
            self.answer.text.append(first.text)
            self.client.text.append(first.text)
            return batch
        return tuple(self.client.tell(self.answer.read(batch)))

    def _is_client_s(self, batch: _Batch) -> bool:
        rest = set(map(type, batch)) - _PASSING
        if not rest <= _LOOKED_AT or (Opened in rest and len(batch) == 1):
            return False
        calls = (event for event in batch if type(event) is ToolCallStart)
        return ToolCallStart not in rest or all(map(self.answer.is_client_s, calls))

    def _handed_on(self, batch: _Batch) -> _Batch:
        """Thoughts for the way back are told when this is known to be the whole answer."""
        asides = [event for event in batch if type(event) is Aside and event.field in OF_ONE_ANSWER]
        told = batch
        if asides:
            self.answer.asides += asides
            told = tuple(event for event in batch if event not in asides)
        if type(batch[-1]) is Finish and self.answer.asides and self.tells_thoughts:
            told = (*told[:-1], *self.answer.asides, batch[-1])
        return with_notes(told, self.receipt) if told else told

    def _catch_up(self) -> None:
        """Read what was handed on: another round may follow."""
        self.untouched = False
        self.answer.asides.clear()
        for batch in self._heard:
            deque(self.client.tell(self.answer.read(batch)), maxlen=0)
        self._heard.clear()
