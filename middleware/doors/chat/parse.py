"""Body → `ChatRequest`: the one place where a request is validated."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from adapters.protocol import ChatRequest, Event, Json, RequestContext, value_class
from adapters.receipts import Notes, Receipt
from adapters.shared.fields import refuse_losses
from adapters.shared.history import settle
from middleware.doors.body import asked_so, read_object
from middleware.doors.chat import legacy
from middleware.doors.chat.checks import check_fields, require_known
from middleware.doors.chat.chunks import Chunks
from middleware.doors.chat.fields import ChatFields, read_fields
from middleware.doors.chat.fold import Fold
from middleware.doors.chat.grammars import check_grammars
from middleware.doors.chat.recognition import CHAT_FORM
from middleware.doors.chat.shapes import REQUEST
from middleware.doors.chat.words import Heading
from middleware.doors.door import Stamp
from middleware.doors.mistakes import refusal
from middleware.doors.recognition import recognize
from middleware.doors.seen import Seen


@value_class
class ParsedChat:
    """A request, and what its answer must look like."""

    request: ChatRequest
    receipt: Receipt = ()
    """What the door itself changed or lost."""
    usage_chunk: bool = False
    legacy: bool = False
    """The client has `functions` instead of tools, and is answered in the same words."""

    @property
    def ready(self) -> None:
        return None  # every chat is a model's to answer

    def stream(self, stamp: Stamp) -> Chunks:
        return Chunks(self._heading(stamp))

    def fold(self, stamp: Stamp, events: Sequence[Event]) -> bytes:
        fold = Fold(self._heading(stamp))
        fold.add(events)
        return fold.body()

    def _heading(self, stamp: Stamp) -> Heading:
        identity = "chatcmpl-" + stamp.id.removeprefix("req_")
        return Heading(identity, stamp.created, self.request.model, self.legacy, self.usage_chunk)


_LOCAL = RequestContext()


def parse(
    body: bytes,
    *,
    repair: bool = False,
    strict: bool = False,
    call: RequestContext | None = None,
    seen: Seen | None = None,
) -> ParsedChat:
    """Read a chat request or raise a `BadRequest` that says what to send instead.

    What was seen before changes nothing but the time it takes.
    """
    call = call or _LOCAL
    known = recognize(body, seen, call.owner, CHAT_FORM)
    if known is None:
        return _read_whole(body, repair, strict, call)
    fields: ChatFields = known.rest
    tools: tuple[Json, ...] = known.tools or ()
    if type(fields.choice) is dict:
        require_known(fields.choice, tools)
    messages, changed = settle(known.messages, repair, known.settled)
    receipt = fields.receipt + changed
    if strict:
        refuse_losses(receipt)
    known.keep(settled=not changed)
    request = _request(fields, messages, tools, call)
    return ParsedChat(request, receipt, fields.usage_chunk)


def _read_whole(body: bytes, repair: bool, strict: bool, call: RequestContext) -> ParsedChat:
    notes = Notes()
    data = read_object(body, notes)
    try:
        REQUEST.validator.validate_python(data)
    except ValidationError as error:
        raise refusal(error) from None
    functions = data.get("functions") is not None
    if legacy.is_used(data):
        data = legacy.modern(data, repair, notes)
    check_fields(data, notes)
    check_grammars(data)
    messages, changed = settle(data["messages"], repair)
    notes.add_all(changed)
    receipt = notes.receipt()
    if strict:
        refuse_losses(receipt)
    fields = read_fields(data)
    request = _request(fields, messages, tuple(data.get("tools") or ()), call)
    return ParsedChat(request, receipt, fields.usage_chunk, functions)


def _request(
    fields: ChatFields,
    messages: tuple[Json, ...],
    tools: tuple[Json, ...],
    call: RequestContext,
) -> ChatRequest:
    return ChatRequest(
        fields.model,
        messages,
        tools,
        fields.choice,
        fields.params,
        fields.extra,
        call=asked_so(call, fields.streamed),
    )
