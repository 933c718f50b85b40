"""Events → the items of an answer, one open at a time.

A message, a thought or a call is closed before the next is opened; whoever writes a stream hears of
each step, whoever folds an answer does not listen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Protocol, assert_never

import orjson

from adapters.protocol import (
    Aside,
    Event,
    Finish,
    Json,
    Noted,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from adapters.receipts import Note, Receipt
from adapters.shared.history import is_json_object
from middleware.doors.responses.ids import item_id
from middleware.doors.responses.response_object import how_it_ended
from middleware.doors.responses.thoughts import KEPT_MEMBERS, SealedThought, sealed
from middleware.doors.responses.tools import QUIET, ToolSet, shown

TEXT, REFUSAL, THOUGHT = "output_text", "refusal", "reasoning"
CALLS = frozenset({"function_call", "custom_tool_call"})
_NO_PARTS = CALLS | QUIET | {""}
_HOLDING = QUIET | {"function_call"}
_ONLY_THOUGHTS, _type = frozenset({THOUGHT}), itemgetter("type")
_OF_ALL = frozenset({ToolCallDelta, ToolCallStart, Finish, Noted, Opened})
"""Events that wait for no call."""
_CALL_KEYS: Mapping[str, str] = {"function_call": "arguments", "custom_tool_call": "input"}
DELTAS: Mapping[str, str] = {
    TEXT: "response.output_text",
    REFUSAL: "response.refusal",
    THOUGHT: "response.reasoning_summary_text",
    "function_call": "response.function_call_arguments",
    "custom_tool_call": "response.custom_tool_call_input",
}
_EMPTY: Mapping[str, Json] = {
    TEXT: {"part": {"type": TEXT, "text": "", "annotations": [], "logprobs": []}},
    REFUSAL: {"part": {"type": REFUSAL, "refusal": ""}},
    THOUGHT: {"part": {"type": "summary_text", "text": ""}},
}
"""Parts as they begin."""


def _part_of(kind: str) -> str:
    return f"response.{'reasoning_summary_part' if kind == THOUGHT else 'content_part'}"


class OutputListener(Protocol):
    def event(self, kind: str, place: bytes, said: Json) -> None:
        """Something happened to an item; `place`: the members that say where, between commas."""

    def begin(self, kind: str, place: bytes) -> None:
        """Pieces follow, of this kind."""

    def delta(self, piece: str, logprobs: tuple[Json, ...]) -> None:
        """A piece of what is open."""


@dataclass(slots=True)
class Items:
    response: str
    """Id of the answer."""
    tools: ToolSet
    secret: bytes
    listener: OutputListener | None = None
    """None: nobody listens."""
    output: list[Json] = field(default_factory=list)
    open: str = ""
    """What its next piece belongs to: text, refusal, thought or a kind of call."""
    pieces: list[str] = field(default_factory=list)
    late: Receipt = ()
    """What was learned and is still to be told."""
    steps: list[Json] = field(default_factory=list)
    refused: bool = False
    _upstream: str = ""
    _item: Json | None = None
    """The one that is open: the last of `output`."""
    _index: bytes = b""
    _place: bytes = b""
    """Where it and what is open of it stand, for who listens."""
    _thought: SealedThought = field(init=False)
    _logprobs: list[Json] = field(init=False)
    _annotations: list[Json] = field(init=False)
    """Of the part that is open."""
    _held: list[Event] = field(default_factory=list)
    """What came in the middle of a call."""

    def add_all(self, events: Iterable[Event]) -> None:
        opened, append = self.open, self.pieces.append
        for event in events:
            # What makes up almost all of an answer that was streamed comes first.
            if type(event) is TextDelta and opened == TEXT and not event.logprobs:
                append(event.text)
            elif type(event) is ToolCallDelta and opened in CALLS:
                append(event.arguments)
            else:
                self.add(event)
                opened, append = self.open, self.pieces.append

    def add(self, event: Event) -> None:
        if self.open in _HOLDING and type(event) not in _OF_ALL and self._is_in_call():
            self._held.append(event)
            return
        match event:  # what is in every answer first
            case Opened():
                self._upstream = event.upstream.name
            case Finish():
                self._finish(event)
            case TextDelta(text, logprobs):
                self._say(TEXT, text, logprobs)
            case ToolCallStart():
                self._call(event)
            case ReasoningDelta(text):
                self._say(THOUGHT, text)
            case ToolCallDelta(_, arguments):
                self._argue(arguments)
            case _:
                self._add_rarer(event)

    def _add_rarer(self, event: RefusalDelta | Aside | Noted) -> None:
        match event:
            case RefusalDelta(text):
                self.refused = True
                self._say(REFUSAL, text)
            case Aside():
                self._aside(event)
            case Noted(receipt):
                self.late += receipt
            case _:
                assert_never(event)

    def _is_in_call(self) -> bool:
        """An upstream may speak in the middle of a call, an item's pieces stand together."""
        return bool(self._held) or not is_json_object("".join(self.pieces))

    # Pieces --------------------------------------------------------------------------------------

    def _say(self, kind: str, text: str, logprobs: tuple[Json, ...] = ()) -> None:
        if not text:
            return
        if self.open != kind:
            self._open_part(kind)
        self._logprobs += logprobs
        self._piece(text, logprobs)

    def _piece(self, piece: str, logprobs: tuple[Json, ...] = ()) -> None:
        self.pieces.append(piece)
        if self.listener is not None:
            self.listener.delta(piece, logprobs)

    def _argue(self, piece: str) -> None:
        if self.open in CALLS:
            self._piece(piece)
        elif self.open in QUIET:
            self.pieces.append(piece)
        elif piece.strip():
            text = "a piece of a call's arguments came when the call was over"
            self._note(Note("arguments_late", "tool_calls", text))

    def _open_part(self, kind: str) -> None:
        holder = THOUGHT if kind == THOUGHT else "message"
        if self._item is not None and self._item["type"] == holder:
            self._close_part()
        elif kind == THOUGHT:
            self._open_thought()
        else:
            self._open_item(holder, {"role": "assistant", "content": []})
        self.open, self.pieces, self._logprobs, self._annotations = kind, [], [], []
        if self.listener is not None:
            self._begin_part(self.listener, kind)

    def _begin_part(self, listener: OutputListener, kind: str) -> None:
        item = self._item
        assert item is not None
        if kind == THOUGHT:
            self._place = b'%b"summary_index":0,' % self._where(item)
        else:
            self._place = b'%b"content_index":%d,' % (self._where(item), len(item["content"]))
        listener.event(f"{_part_of(kind)}.added", self._place, _EMPTY[kind])
        listener.begin(kind, self._place)

    def _where(self, item: Json) -> bytes:
        return b',"item_id":"%b"%b' % (item["id"].encode(), self._index)

    def _close_part(self) -> None:
        item, kind = self._item, self.open
        if item is None or kind in _NO_PARTS:
            return
        said = "".join(self.pieces)
        part: Json
        done: Json
        if kind == THOUGHT:
            part, done, parts = {"type": "summary_text", "text": said}, {"text": said}, "summary"
            self._thought.text = said
        elif kind == TEXT:
            done, parts = {"text": said, "logprobs": self._logprobs}, "content"
            part = {"type": TEXT, **done, "annotations": self._annotations}
        else:
            part, done, parts = {"type": kind, kind: said}, {kind: said}, "content"
        if self.listener is not None:
            self.listener.event(f"{DELTAS[kind]}.done", self._place, done)
            self.listener.event(f"{_part_of(kind)}.done", self._place, {"part": part})
        self.open = ""
        item[parts].append(part)

    # Items ---------------------------------------------------------------------------------------

    def _open_item(self, kind: str, more: Json) -> Json:
        while self._item is not None:  # what a call held back may open another
            self.close()
        identity = item_id(kind, self.response, len(self.output))
        item: Json = {"id": identity, "type": kind, "status": "in_progress", **more}
        self._item = item
        if self.listener is not None:
            self._index = b',"output_index":%d,' % len(self.output)
            self.listener.event("response.output_item.added", self._index, {"item": item})
        self.output.append(item)
        return item

    def _open_thought(self) -> None:
        self._open_item(THOUGHT, {"summary": []})
        self._thought = SealedThought(upstream=self._upstream)

    def _call(self, start: ToolCallStart) -> None:
        kind = self.tools.item_kind(start.name, start.kind)
        if kind in QUIET:
            self._open_item(kind, {"call_id": start.id, **shown(kind, {})})
        else:
            named = self.tools.own_name(start.name)
            item = self._open_item(kind, {"call_id": start.id, **named, _CALL_KEYS[kind]: ""})
            if self.listener is not None:
                self._place = self._where(item)
                self.listener.begin(kind, self._place)
        self.open, self.pieces = kind, []

    def close(self, status: str = "completed") -> None:
        """Close what is open; `status` of what the end of the answer has cut."""
        item = self._item
        if item is None:
            return
        if self.open in CALLS:
            self._close_call(item, status)
        elif self.open in QUIET:
            self._close_quiet_call(item, status)
        else:
            self._close_part()
            item["status"] = status
            if item["type"] == THOUGHT and (self._thought.text or self._thought.members):
                item["encrypted_content"] = sealed(self._thought, self.secret)
            self._tell_done(item)
        self._item, self.open = None, ""
        if self._held:
            held, self._held = self._held, []
            for event in held:
                self.add(event)

    def _close_call(self, item: Json, status: str) -> None:
        key = _CALL_KEYS[item["type"]]
        said = item[key] = "".join(self.pieces)
        item["status"] = status
        if status != "completed":
            return  # some clients make every call that is done
        if self.listener is not None:
            done = {"name": item["name"], key: said} if key == "arguments" else {key: said}
            self.listener.event(f"{DELTAS[item['type']]}.done", self._place, done)
        self._tell_done(item)

    def _close_quiet_call(self, item: Json, status: str) -> None:
        said = "".join(self.pieces)
        item["status"] = status
        if status == "completed":
            item |= shown(item["type"], orjson.loads(said) if is_json_object(said) else {})
            self._tell_done(item)

    def _tell_done(self, item: Json) -> None:
        if self.listener is not None:
            self.listener.event("response.output_item.done", self._index, {"item": item})

    # The rest ------------------------------------------------------------------------------------

    def _aside(self, event: Aside) -> None:
        match event.field:
            case "reasoning":
                self._say(THOUGHT, str(event.value))
            case "annotations":
                self._annotate(event.value)
            case "steps":
                self.steps = event.value
            case "step":
                pass  # `steps` has them all
            case name if name in KEPT_MEMBERS:
                self._keep(name, event.value)
            case name:
                text = f"the answer has '{name[:40]}', for which there is no item"
                self._note(Note("block_not_shown", "output", text))

    def _keep(self, name: str, value: Any) -> None:
        if self._item is None or self._item["type"] != THOUGHT:
            self._open_thought()
        known = self._thought.members.get(name, ())
        self._thought.members[name] = [*known, *(value if isinstance(value, list) else [value])]

    def _annotate(self, found: Any) -> None:
        if self.open != TEXT:
            text = "sources were named behind the text, where there is no place for them"
            self._note(Note("citations_dropped", "annotations", text))
            return
        for one in found:
            said = {"type": one["type"], **one.get(one["type"], {})}
            told = {"annotation_index": len(self._annotations), "annotation": said}
            self._annotations.append(said)
            if self.listener is not None:
                kind = "response.output_text.annotation.added"
                self.listener.event(kind, self._place, told)

    def _note(self, note: Note) -> None:
        if note not in self.late:
            self.late += (note,)

    def _finish(self, finish: Finish) -> None:
        status = how_it_ended(finish.reason, self.refused).word
        if self._held:
            self.close()
        self.close(status)
        if status == "completed" and _ONLY_THOUGHTS.issuperset(map(_type, self.output)):
            self._open_part(TEXT)  # clients look for a last message
            self.close()
