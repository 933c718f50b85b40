"""Nothing is dropped silently: fields are taken one by one, and what is left is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from adapters.errors import BadRequest
from adapters.receipts import Code, Notes, Receipt


class Fields:
    """The parameters of one request while a leaf carries them over.

    A leaf `take`s what it can say, `lose`s (by name) what it cannot, `refuse`s what would change
    the meaning; `receipt` then names everything nobody took. `notes` are those of the whole
    request: whatever else is encoded writes into them too.
    """

    def __init__(self, params: Mapping[str, Any], notes: Notes | None = None) -> None:
        left = dict(params)
        if None in left.values():
            left = {name: value for name, value in left.items() if value is not None}
        self.left = left
        """What nobody took so far."""
        self.notes = Notes() if notes is None else notes
        self.note = self.notes.add

    def take(self, name: str) -> Any:
        """Return the field and count it as carried; None where the client did not send it."""
        return self.left.pop(name, None)

    def take_all(self, names: Iterable[str]) -> dict[str, Any]:
        """Take those of these fields that the client sent."""
        left = self.left
        return {name: left.pop(name) for name in names if name in left} if left else {}

    def lose(self, name: str, why: str, code: Code = "parameter_dropped") -> None:
        if self.left.pop(name, None) is not None:
            self.note(code, name, why)

    def refuse(self, name: str, message: str) -> None:
        """Raise if the client sent it."""
        if name in self.left:
            raise unsupported(name, message)

    def name_rest(self, who: str) -> None:
        """Note the fields nobody took."""
        for name in list(self.left):
            self.lose(name, f"{who} has nothing like it")

    def receipt(self, who: str) -> Receipt:
        """Everything that was not the identity, with the fields nobody took."""
        if self.left:
            self.name_rest(who)
        return self.notes.receipt()


def take_thinking(fields: Fields) -> bool | None:
    """A vendor's `thinking` where it says on or off alone: an object with a `type`, or a flag."""
    asked = fields.take("thinking")
    if isinstance(asked, dict):
        if asked.keys() - {"type"}:
            fields.note("thinking_budget_dropped", "thinking", "it thinks as long as it likes")
        return bool(asked.get("type") != "disabled")
    if asked is None or isinstance(asked, bool):
        return asked
    fields.note("parameter_dropped", "thinking", "it is an object with a 'type', or true or false")
    return None


def unsupported(param: str, message: str) -> BadRequest:
    return BadRequest(message, code="unsupported_parameter", param=param)


def refuse_losses(receipt: Receipt) -> None:
    """What `strict = true` in the config means: a lost field is a refusal, not a note."""
    lost = [note for note in receipt if note.field]
    if lost:
        what = "; ".join(f"'{note.field}' ({note.text})" for note in lost)
        raise BadRequest(
            f"Not everything can be taken as it was sent, and this gateway is strict: {what}. "
            "Leave these out, or set strict = false in the gateway's config.",
            code="unsupported_parameter",
            param=lost[0].field,
        )
