"""Body → `ChatRequest`: fields in chat's words, items as messages, references joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import NamedTuple

import orjson
from pydantic import ValidationError

from adapters.errors import Truncated
from adapters.protocol import (
    ChatRequest,
    Event,
    Finish,
    Json,
    Opened,
    RequestContext,
    TextDelta,
    value_class,
)
from adapters.receipts import Notes, Receipt
from adapters.shared.fields import refuse_losses
from adapters.shared.history import ARE_CANONICAL, settle
from middleware.doors.body import asked_so, read_object
from middleware.doors.door import KeptRecord, Stamp
from middleware.doors.mistakes import refusal
from middleware.doors.recognition import RecognizedRequest, recognize, settle_items, settled_alone
from middleware.doors.responses.fields import Echo, RequestFields, read_fields
from middleware.doors.responses.frames import Frames, finished
from middleware.doors.responses.ids import item_id, response_id
from middleware.doors.responses.items import ItemReader
from middleware.doors.responses.output import TEXT, Items
from middleware.doors.responses.recognition import RESPONSES_FORM, KnownRest, KnownTools, told
from middleware.doors.responses.response_object import ResponseHeading, how_it_ended
from middleware.doors.responses.shapes import BODY
from middleware.doors.responses.state import Kept, packed
from middleware.doors.responses.tools import ToolSet

_LOCAL = RequestContext()
_TEXT_ALONE = (Opened, TextDelta, Finish)
_NO_TOOLS = KnownTools(ToolSet())


@value_class
class ParsedResponse:
    """A request, and what its answer must look like."""

    request: ChatRequest
    echo: Echo
    stored: bool
    """Its answer is to be kept."""
    tools: ToolSet
    declared: bytes
    """Its tools as answers repeat them."""
    items: Callable[[], Iterable[bytes]]
    """Those that are new, as JSON."""
    before: list[str]
    """Ids of the answers before it."""
    receipt: Receipt = ()
    last: list[tuple[Sequence[Event], bytes]] = field(default_factory=list, compare=False)
    """What was kept last: of a plain answer it is what its client gets."""

    @property
    def ready(self) -> None:
        return None  # every one is a model's to answer

    def stream(self, stamp: Stamp) -> Frames:
        return Frames(self._heading(stamp), self.tools, self.request.call.secret)

    def fold(self, stamp: Stamp, events: Sequence[Event]) -> bytes:
        for known, body in self.last:
            if known == events:
                return body
        return self._folded(self._heading(stamp), events)

    def _folded(self, heading: ResponseHeading, events: Sequence[Event]) -> bytes:
        end = events[-1] if events else None
        if type(end) is not Finish:
            raise Truncated("The upstream's answer has no end.")
        how = how_it_ended(end.reason, refused=False)
        output = _text_alone(heading.id, events, how.word)
        if output is not None:
            return b"".join(heading.finished(how, output, end.usage))
        items = Items(heading.id, self.tools, self.request.call.secret)
        items.add_all(events)
        return b"".join(finished(heading, items, end, {})[1])

    def record(self, stamp: Stamp, events: Sequence[Event]) -> KeptRecord:
        """What is kept of it."""
        heading = self._heading(stamp)
        body = self._folded(heading, events)
        self.last[:] = [(events, body)]
        return KeptRecord(heading.id, packed(body, self.items(), self.before), self.before)

    def _heading(self, stamp: Stamp) -> ResponseHeading:
        identity = response_id(stamp.id)
        return ResponseHeading(identity, stamp.created, self.echo, self.declared, self.stored)


def _text_alone(response: str, events: Sequence[Event], status: str) -> list[Json] | None:
    """The items of an answer that is one text, as most are; None: it is another."""
    if tuple(map(type, events)) != _TEXT_ALONE:
        return None
    said = events[1]
    if type(said) is not TextDelta or not said.text or said.logprobs:
        return None
    part = {"type": TEXT, "text": said.text, "logprobs": [], "annotations": []}
    item: Json = {"id": item_id("message", response, 0), "type": "message", "status": status}
    return [{**item, "role": "assistant", "content": [part]}]


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
    known = kept.known or recognize(body, kept.seen, call.owner, RESPONSES_FORM)
    if known is None:
        said = _whole(body, kept, ItemReader(notes, call.secret, repair))
    else:
        said = _pieces(known, notes, call.secret, repair)
    fields, (tools, offered, text, _) = said.fields, said.tools
    choice, native = None, None
    if tools.hosted or fields.choice is not None:
        choice, native = tools.choice(fields.choice), tools.native(fields.choice, notes)
    notes += fields.receipt
    request = ChatRequest(
        model=fields.model,
        messages=said.messages,
        tools=offered,
        tool_choice=choice,
        params=fields.params if offered else fields.params_without_tools,
        extra=fields.extra,
        call=asked_so(call, fields.streamed, fields.most_calls),
        native=native,
    )
    receipt = notes.receipt()
    if strict:
        refuse_losses(receipt)
    if known is not None:
        known.keep(said.settled, joined=True)
    stored = kept.keeps and fields.stores
    return ParsedResponse(
        request, fields.echo, stored, tools, text, said.items, said.before, receipt
    )


class _Said(NamedTuple):
    """A valid body, read."""

    fields: RequestFields
    messages: tuple[Json, ...]
    tools: KnownTools
    items: Callable[[], Iterable[bytes]]
    before: list[str]
    settled: bool = False
    """Its messages are those of its items, as they are."""


def _whole(body: bytes, kept: Kept, reader: ItemReader) -> _Said:
    notes = reader.notes
    data = read_object(body, notes)
    try:
        BODY.validator.validate_python(data)
    except ValidationError as error:
        raise refusal(error) from None
    items = [*_own_items(data["input"], kept, notes)]
    before = kept.ids_before(data.get("previous_response_id"))
    messages, tools = _messages(data, items, kept, reader)
    settled, changed = settle(messages, reader.repair, ARE_CANONICAL)
    notes.add_all(changed)
    text = orjson.dumps(data.get("tools") or ())
    known = KnownTools(tools, tuple(tools.tools), text)
    own = partial(map, orjson.dumps, [item for _, item in items])
    return _Said(read_fields(data), settled, known, own, before)


def _pieces(known: RecognizedRequest, notes: Notes, secret: bytes, repair: bool) -> _Said:
    """A body of which most was seen; what was made of its items is the same again."""
    rest: KnownRest = known.rest
    tools: KnownTools = known.tools or _NO_TOOLS
    messages = settled_alone(known, repair)
    settled = messages is not None
    if messages is None:
        messages = _read(known, tools, notes, secret, repair)
    else:
        messages = (*rest.system, *messages) if rest.system else messages
        notes += tools.receipt
    return _Said(rest.fields, messages, tools, known.raw_items, [], settled)


def _read(
    known: RecognizedRequest, tools: KnownTools, notes: Notes, secret: bytes, repair: bool
) -> tuple[Json, ...]:
    """The messages of items of which several are one turn, or whose loss is told."""
    begin = partial(ItemReader, Notes(), secret, repair, canonical=True)
    context, before = ("responses", secret, repair), known.rest.system
    messages, receipt, changed = settle_items(known.messages, begin, context, repair, before)
    notes.add_all(receipt + tools.receipt + changed)
    return messages


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
        conversation.messages += told(data["instructions"])
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
