"""What ends an answer: its calls, why it ended, how much it used, how long it took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

from adapters.protocol import Aside, Finish, Json, ToolCallDelta, ToolCallStart
from adapters.receipts import Note, Notes
from adapters.shared.history import canonical, is_json_object
from middleware.doors.x_usetool import warnings_object

_FILTERED = Note("refusal", "done_reason", "a filter ended the answer: Ollama has no word for it")


@dataclass(slots=True)
class Ending:
    """What the last line says beside what was said."""

    notes: Notes = field(default_factory=Notes)
    told: Json = field(default_factory=dict)
    """Members of `x_usetool`."""
    cut: bool = False
    """A call was left out."""

    def lose(self, event: Aside) -> None:
        """Name what has no place in these answers; thoughts were told as text."""
        if event.field == "steps":
            self.told["steps"] = event.value
        elif event.field == "annotations":
            self.notes.add("annotations_dropped", "annotations", "sources have no place here")
        elif event.field not in ("thinking_blocks", "step"):
            self.notes.add("block_not_shown", event.field, "it has no place in these answers")

    def members(self, finish: Finish, first: float, total: float) -> Json:
        """`first` and `total`: seconds to the first word, and to the end."""
        if finish.reason == "content_filter":
            self.notes.add(*_FILTERED)
        reason = "length" if self.cut or finish.reason == "length" else "stop"
        begun = _nanoseconds(first)
        said: Json = {
            "done": True,
            "done_reason": reason,
            "total_duration": _nanoseconds(total),
            "load_duration": begun,
            "prompt_eval_duration": begun,
            "eval_duration": _nanoseconds(total - first),
        }
        if finish.usage is not None:
            said["prompt_eval_count"] = finish.usage.prompt
            said["eval_count"] = finish.usage.completion
        if self.notes or self.told:
            receipt = self.notes.receipt()
            said["x_usetool"] = (warnings_object(receipt) if receipt else {}) | self.told
        return said


def _nanoseconds(seconds: float) -> int:
    """Speeds are made of these by dividing."""
    return max(1, int(seconds * 1e9))


@dataclass(slots=True)
class HeldCalls:
    """Calls are said at the end, on one line: some clients join what comes on lines of its own."""

    _held: list[tuple[ToolCallStart, list[str]]] = field(default_factory=list)

    def begin(self, event: ToolCallStart) -> None:
        self._held.append((event, []))

    def go_on(self, event: ToolCallDelta) -> None:
        self._held[-1][1].append(event.arguments)

    def go_on_with(self, events: Iterable[ToolCallDelta]) -> None:
        self._held[-1][1].extend([event.arguments for event in events])

    def objects(self, ending: Ending, finish: Finish) -> list[Json]:
        """What is said of them; a call without an object of arguments is none."""
        said: list[Json] = []
        last = self._held[-1][0] if self._held else None
        for start, pieces in self._held:
            arguments = canonical("".join(pieces))  # on one line
            # Claude says {} of one whose arguments had not begun.
            cut = finish.reason == "length" and start is last and arguments == "{}"
            if cut or not is_json_object(arguments):
                why = "its arguments broke off, or are no JSON object"
                ending.notes.add("tool_call_withheld", f"tool_calls.{start.name}", why)
                ending.cut = True
                continue
            function = {"index": len(said), "name": start.name}
            said.append(
                {"id": start.id, "function": {**function, "arguments": orjson.Fragment(arguments)}}
            )
        return said
