"""What a pipeline knows of one answer: the thought, the receipts, what each part used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from adapters.errors import GatewayError
from adapters.protocol import (
    Aside,
    Event,
    Finish,
    Json,
    Noted,
    Opened,
    Planned,
    ReasoningDelta,
    Upstream,
    Usage,
)
from adapters.receipts import Code, Note, Receipt
from adapters.shared.history import text_of
from adapters.shared.search import Finding, as_annotations
from adapters.shared.usage import total
from middleware.wrappers.pipeline.reader import Thought

_BYTES_A_TOKEN = 4
"""Of text in most languages and tokenizers, about."""


@dataclass(slots=True)
class PipelineAnswer:
    planned: Planned | None = None
    """The answerer's call, if it was planned."""
    thought: Thought = field(default_factory=Thought)
    findings: tuple[Finding, ...] = ()
    opened: bool = False
    prompt: Sequence[Json] = ()
    """What the reasoner was asked."""
    upstream: Upstream | None = None
    """Who thought."""
    receipt: Receipt = ()
    """What is still to be told."""

    def note(self, code: Code, text: str) -> None:
        self.receipt += (Note(code, "", text),)

    def read_reasoner(self, batch: Sequence[Event]) -> tuple[Event, ...]:
        """Read a reasoner's batch; what of it the client sees."""
        for event in batch:
            if isinstance(event, Opened | Noted):
                self.receipt += _of_reasoner(event.receipt)
            if isinstance(event, Opened):
                self.upstream = event.upstream
        return self.show(self.thought.read(batch))

    def may_start_over(self, error: GatewayError) -> bool:
        """May the reasoner be asked once more? Not if it was heard: that would be two thoughts."""
        return error.again == "same" and not self.thought.pieces

    def show(self, text: str) -> tuple[Event, ...]:
        if not text:
            return ()
        if self.opened:
            return (ReasoningDelta(text),)
        return (self._open(self._joint_upstream()), ReasoningDelta(text))

    def _open(self, upstream: Upstream) -> Opened:
        self.opened = True
        receipt, self.receipt = self.receipt, ()
        return Opened(receipt, upstream)

    def _joint_upstream(self) -> Upstream:
        """Reasoner and answerer, as one; the answerer is only planned when this is said."""
        reasoner = self.upstream or Upstream("search")
        if self.planned is None:
            return reasoner
        model = self.planned.body.get("model", "")
        return replace(
            reasoner,
            name=f"{reasoner.name}+{self.planned.upstream}",
            model="+".join(name for name in (reasoner.model, model) if name),
        )

    def read_answerer(self, batch: tuple[Event, ...]) -> tuple[Event, ...]:
        """Make the answerer's batch a part of the whole answer."""
        first, last = batch[0], batch[-1]
        if type(first) is Opened:
            batch = (*self._begin_answer(first), *batch[1:])
        if type(last) is Finish:
            batch = (*batch[:-1], *self._end_answer(last))
        return batch

    def _begin_answer(self, answerer: Opened) -> tuple[Event, ...]:
        self.receipt += answerer.receipt
        if not self.opened:
            return (self._open(answerer.upstream),)
        receipt, self.receipt = self.receipt, ()
        return (Noted(receipt),) if receipt else ()

    def _end_answer(self, answerer: Finish) -> tuple[Event, ...]:
        events: list[Event] = []
        if self.findings:
            events.append(Aside("annotations", as_annotations(self.findings)))
        used = self._used_by_reasoner()
        if self.receipt:
            events.append(Noted(self.receipt))
        # A pipeline's own turn is the thought: recall, around it, brings it back.
        turn = {"thought": self.thought.text()}
        usage = answerer.usage if used is None else _both(used, answerer.usage)
        return (*events, replace(answerer, usage=usage, turn=turn))

    def _used_by_reasoner(self) -> Usage | None:
        """What it reported, else an estimate: who left it early heard no figures; None: unasked."""
        if self.upstream is None:
            return None
        if self.thought.finish is not None and self.thought.finish.usage is not None:
            return self.thought.finish.usage
        prompt = _tokens(text_of(message.get("content")) for message in self.prompt)
        completion = _tokens(self.thought.pieces)
        estimate = f"{prompt} and {completion} tokens are estimates"
        text = f"the reasoner was left before it counted: {estimate}"
        self.receipt += (Note("usage_estimated", "usage", text),)
        return Usage(prompt, completion, reasoning=completion)


def _tokens(texts: Iterable[str]) -> int:
    return -(-sum(len(text.encode(errors="replace")) for text in texts) // _BYTES_A_TOKEN)


def _of_reasoner(receipt: Receipt) -> Receipt:
    return tuple(
        note._replace(field=f"reasoner.{note.field}") if note.field else note for note in receipt
    )


def _both(reasoner: Usage, answerer: Usage | None) -> Usage:
    """What they used together; the parts stay legible."""
    return replace(
        total(reasoner, answerer),
        extra=answerer.extra if answerer else {},
        parts=(("reasoner", reasoner), ("answerer", answerer)),
    )
