"""`ClientAnswer`: the rounds of a request as the one answer that its client gets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from adapters.protocol import (
    Event,
    Finish,
    FinishReason,
    Noted,
    Opened,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from adapters.receipts import Receipt
from adapters.shared.usage import total

_BLANK_LINE = "\n\n"


class ClientAnswer:
    """Each note once, one `Opened` with the first that is visible, the usage of all rounds."""

    def __init__(self, receipt: Receipt, beside_json: bool) -> None:
        self._receipt = receipt
        """Of what was done before anybody was asked."""
        self._told: set[tuple[str, str]] = set()
        self._opening: Opened | None = None
        """As long as nothing else has left, a later round may still fail with its own status."""
        self._opened = False
        self._parted = False
        self._thought = self._thought_before = False
        self._usage: Usage | None = None
        self._parts: list[tuple[str, Usage | None]] = []
        self.beside_json = beside_json
        """Only the last round's text is told, once it is known to be that."""
        self._held: list[TextDelta] = []
        self.text: list[str] = []
        """All that was told of it."""

    @property
    def is_plain(self) -> bool:
        """Whether text leaves as it is."""
        return self._opened and not (self._parted or self.beside_json)

    def tell(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            kind = type(event)
            if kind is TextDelta and isinstance(event, TextDelta):
                yield from self._tell_text(event)
            elif isinstance(event, Opened):
                yield from self._note(self._open(event))
            elif isinstance(event, Noted):
                yield from self._note(event.receipt)
            elif isinstance(event, ReasoningDelta):
                yield from self._think(event)
            else:
                yield from self._show(event)

    def note(self, receipt: Receipt) -> Iterator[Event]:
        yield from self._note(receipt)

    def next_round(self) -> None:
        """What comes is of another answer."""
        self._parted = bool(self.text) and not self.text[-1][-1:].isspace()
        self._thought_before, self._thought = self._thought_before or self._thought, False
        self._held.clear()

    def use(self, number: int, usage: Usage | None) -> None:
        """Add what a round used."""
        self._usage = usage if self._usage is None else total(self._usage, usage)
        parts = usage.parts if usage else ()
        if number > 1 or not parts:
            self._parts.append((f"round_{number}", usage))
        ahead = f"round_{number}." if number > 1 else ""
        self._parts += [(f"{ahead}{name}", used) for name, used in parts]

    def end(self, last: Finish, rounds: int, reason: FinishReason) -> Iterator[Event]:
        """The answer is over."""
        usage = self._usage
        if rounds == 1 or usage is None:
            yield from self._show(Finish(reason, last.usage, last.native, last.turn, last.stop))
            return
        summed = Usage(
            *(usage.prompt, usage.completion, usage.cached, usage.cache_write, usage.reasoning),
            extra=usage.extra,
            parts=tuple(self._parts),
        )
        yield from self._show(Finish(reason, summed, last.native, last.turn, last.stop))

    def release(self) -> Iterator[Event]:
        """Tell the text that was held back: it is the last round's."""
        held, self._held, self.beside_json = self._held, [], False
        for event in held:
            yield from self._tell_text(event)

    def _tell_text(self, event: TextDelta) -> Iterator[Event]:
        if self.beside_json:
            self._held.append(event)
            return
        if self._parted and event.text:
            self._parted = False
            if not event.text[0].isspace():
                self.text.append(_BLANK_LINE)
                yield from self._show(TextDelta(_BLANK_LINE))
        self.text.append(event.text)
        yield from self._show(event)

    def _think(self, event: ReasoningDelta) -> Iterator[Event]:
        if self._thought_before and not self._thought:
            yield from self._show(ReasoningDelta(_BLANK_LINE))
        self._thought = True
        yield from self._show(event)

    def _open(self, event: Opened) -> Receipt:
        """Note who answers; return what it brings to be told."""
        receipt, self._receipt = self._receipt + event.receipt, ()
        if not self._opened:
            before = self._opening.receipt if self._opening is not None else ()
            self._opening = Opened(before, event.upstream)
        return receipt

    def _note(self, receipt: Receipt) -> Iterator[Event]:
        new = tuple(note for note in receipt if (note.code, note.field) not in self._told)
        self._told.update((note.code, note.field) for note in new)
        if not new:
            return
        if self._opening is not None:
            self._opening = Opened(self._opening.receipt + new, self._opening.upstream)
        else:
            yield Noted(new)

    def _show(self, event: Event) -> Iterator[Event]:
        if self._opening is not None:
            yield self._opening
            self._opening, self._opened = None, True
        yield event
