"""Body → `ChatRequest`: fields in chat's words, items as messages, references joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import orjson
from pydantic import TypeAdapter, ValidationError

from adapters.errors import BadRequest, Truncated
from adapters.protocol import (
    ChatRequest,
    Event,
    Finish,
    Json,
    RequestContext,
    value_class,
)
from adapters.receipts import Notes, Receipt
from adapters.shared.beginnings import writer_of
from adapters.shared.cache import fitted
from adapters.shared.fields import refuse_losses
from adapters.shared.history import settle_kept
from middleware.doors.body import asked_so, read_object
from middleware.doors.chat.grammars import check_grammars
from middleware.doors.door import KeptRecord, Stamp
from middleware.doors.mistakes import refusal
from middleware.doors.recognition import Form, RecognizedRequest, recognize
from middleware.doors.responses.fields import echo, params_of
from middleware.doors.responses.frames import Frames, finished
from middleware.doors.responses.ids import response_id
from middleware.doors.responses.items import ItemReader
from middleware.doors.responses.output import Items, Nobody
from middleware.doors.responses.response_object import ResponseHeading
from middleware.doors.responses.shapes import BODY, OWN_FIELDS, Item, Tools, kind_of
from middleware.doors.responses.state import Kept, packed, with_ids
from middleware.doors.responses.tools import ToolSet
from middleware.doors.seen import Piece

_LOCAL = RequestContext()


@value_class
class ParsedResponse:
    """A request, and what its answer must look like."""

    request: ChatRequest
    base: Json
    """What of the request its answer repeats."""
    tools: ToolSet
    items: list[Json]
    """Those that are new."""
    before: list[str]
    """Ids of the answers before it."""
    receipt: Receipt = ()
    last: list[tuple[Sequence[Event], bytes]] = field(default_factory=list, compare=False)
    """What was folded last: what is kept of a plain answer is what its client gets."""

    @property
    def ready(self) -> None:
        return None  # every one is a model's to answer

    def stream(self, stamp: Stamp) -> Frames:
        return Frames(self._heading(stamp), self.tools, self.request.call.secret)

    def fold(self, stamp: Stamp, events: Sequence[Event]) -> bytes:
        for known, body in self.last:
            if [*map(id, known)] == [*map(id, events)]:
                return body
        body = orjson.dumps(self._folded(stamp, events))
        self.last[:] = [(events, body)]
        return body

    def _folded(self, stamp: Stamp, events: Sequence[Event]) -> Json:
        heading = self._heading(stamp)
        items = Items(heading.id, self.tools, self.request.call.secret, Nobody())
        end = events[-1] if events else None
        if type(end) is not Finish:
            raise Truncated("The upstream's answer has no end.")
        items.add_all(events)
        return finished(heading, items, end, {})

    def record(self, stamp: Stamp, events: Sequence[Event]) -> KeptRecord:
        """What is kept of it."""
        identity = response_id(stamp.id)
        value = packed(self.fold(stamp, events), with_ids(self.items, identity), self.before)
        return KeptRecord(identity, value, self.before)

    def _heading(self, stamp: Stamp) -> ResponseHeading:
        return ResponseHeading(response_id(stamp.id), stamp.created, self.base)


def parse(
    body: bytes,
    *,
    repair: bool = False,
    strict: bool = False,
    call: RequestContext | None = None,
    kept: Kept | None = None,
) -> ParsedResponse:
    """Read a request or raise a `BadRequest` that says what to send instead.

    What was seen before changes nothing but the time it takes.
    """
    notes, kept, call = Notes(), kept or Kept(), call or _LOCAL
    known = recognize(body, kept.seen, call.owner, RESPONSES_FORM)
    reader = ItemReader(notes, call.secret, repair)
    said = _whole(body, kept, reader) if known is None else _pieces(known, reader)
    data, tools = said.data, said.tools
    call = asked_so(call, data.get("stream") is True)
    messages, changed = settle_kept(said.messages, repair)
    notes.add_all(changed)
    choice = tools.choice(data.get("tool_choice"))
    native = tools.native(notes)
    request = ChatRequest(
        model=data["model"],
        messages=messages,
        tools=said.offered,
        tool_choice=choice,
        params=params_of(data, bool(said.offered), notes),
        extra={name: value for name, value in data.items() if name not in OWN_FIELDS},
        call=call,
        native=native,
    )
    if request.extra or "response_format" in request.params:
        check_grammars({**request.params, **request.extra})
    receipt = notes.receipt()
    if strict:
        refuse_losses(receipt)
    if known is not None:
        known.keep(settled=True)
    base = echo(data, kept.keeps)
    if known is not None and known.tools is not None:
        base["tools"] = known.tools.text
    return ParsedResponse(request, base, tools, said.items, said.before, receipt)


class _Said(NamedTuple):
    """A valid body, read."""

    data: Json
    items: list[Json]
    messages: list[Json]
    tools: ToolSet
    offered: tuple[Json, ...]
    before: list[str]


def _whole(body: bytes, kept: Kept, reader: ItemReader) -> _Said:
    data = read_object(body, reader.notes)
    try:
        BODY.validator.validate_python(data)
    except ValidationError as error:
        raise refusal(error) from None
    items = [*_own_items(data["input"], kept, reader.notes)]
    before = kept.ids_before(data.get("previous_response_id"))
    messages, tools = _messages(data, items, kept, reader)
    own = [item for _, item in items]
    return _Said(data, own, messages, tools, tuple(tools.tools), before)


def _pieces(known: RecognizedRequest, begun: ItemReader) -> _Said:
    """A body of which most was seen; what was made of its items is the same again."""
    items, notes = known.messages, begun.notes
    context = "responses", begun.secret, begun.repair
    reader = writer_of(items, begun.copy, context)
    messages = reader.finish()
    notes.add_all(reader.notes.receipt())
    data: Json = known.rest
    tools, offered = ToolSet(), ()
    if (declared := known.tools) is not None:
        data = {**data, "tools": declared.declared}
        tools, offered = replace(declared.tools), declared.offered
        notes.add_all(declared.receipt)
    if instructions := data.get("instructions"):
        messages = [known.text(instructions, _told), *messages]
    return _Said(data, items, messages, tools, offered, [])


def _told(instructions: str) -> Json:
    return {"role": "system", "content": instructions}


def _own_items(given: str | list[Json], kept: Kept, notes: Notes) -> Iterator[tuple[str, Json]]:
    if isinstance(given, str):
        part = {"type": "input_text", "text": given}
        yield "input", {"type": "message", "role": "user", "content": [part]}
        return
    for position, item in enumerate(given):
        where = f"input[{position}]"
        found = kept.resolved(item, where, notes)
        if found is not None:
            yield where, found


def _messages(
    data: Json, items: list[tuple[str, Json]], kept: Kept, conversation: ItemReader
) -> tuple[list[Json], ToolSet]:
    if data.get("instructions"):
        conversation.messages.append(_told(data["instructions"]))
    previous = data.get("previous_response_id")
    joined = [*kept.before(previous), *items] if previous else items
    messages = conversation.read(joined)
    tools = ToolSet()
    for where, declared in (("tools", data.get("tools") or ()), *conversation.tools):
        tools.declare(declared, where, conversation.notes)
    tools.require_distinct()
    for where, found in conversation.found:
        tools.declare(found, where, conversation.notes, tools.names())
    return messages, tools


# The pieces of a request, each checked alone

_ITEM: TypeAdapter[Any] = TypeAdapter(Item)
_TOOLS: TypeAdapter[Any] = TypeAdapter(Tools)
_ANY = "?"
_REGULAR = frozenset(
    {
        *("message", "reasoning", "function_call", "function_call_output"),
        *("custom_tool_call", "custom_tool_call_output"),
    }
)
"""Kinds of items that stand for themselves."""


class KnownTools(NamedTuple):
    declared: list[Json]
    """As the client said it."""
    text: orjson.Fragment
    """The same, for answers."""
    offered: tuple[Json, ...]
    """As chat declares them."""
    tools: ToolSet
    receipt: Receipt


def _is_item(piece: Piece) -> bool:
    item = piece.value
    try:
        _ITEM.validator.validate_python(item)
    except ValidationError:
        return False
    piece.arguments = len(item.get("arguments") or "")
    piece.value = [item]
    return kind_of(item) in _REGULAR


def _are_tools(piece: Piece) -> bool:
    declared, tools, notes = piece.value, ToolSet(), Notes()
    try:
        _TOOLS.validator.validate_python(declared)
        tools.declare(declared, "tools", notes)
        tools.require_distinct()
    except (ValidationError, BadRequest):
        return False
    text = orjson.Fragment(fitted(orjson.dumps(declared)))
    piece.value = KnownTools(declared, text, tuple(tools.tools), tools, notes.receipt())
    return True


def _rest(rest: Json, _: Json) -> Json | None:
    # What stands before is found by its id, and read with it.
    return None if rest.get("previous_response_id") else rest


RESPONSES_FORM = Form("responses", "input", _is_item, _are_tools, BODY, _ANY, _rest)
