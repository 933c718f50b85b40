"""Body → `ChatRequest`: validated once, with all that only Claude reads beside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from adapters.errors import BadRequest
from adapters.protocol import ChatRequest, Event, Json, RequestContext, value_class
from adapters.receipts import Notes, Receipt
from adapters.shared.fields import refuse_losses
from adapters.shared.history import ARE_CANONICAL, settle
from middleware.doors.body import read_object
from middleware.doors.door import Stamp
from middleware.doors.messages.answer import Answering
from middleware.doors.messages.conversation import Exact, ReadConversation, have_calls_in_a_row
from middleware.doors.messages.events import MessageEvents
from middleware.doors.messages.fold import MessageFold
from middleware.doors.messages.recognition import form_of
from middleware.doors.messages.rest import RestOfRequest, read_rest
from middleware.doors.messages.shapes import COUNTED, REQUEST
from middleware.doors.messages.tools import NO_TOOLS, read_tools
from middleware.doors.messages.words import THREADS
from middleware.doors.mistakes import refusal
from middleware.doors.recognition import RecognizedRequest, recognize
from middleware.doors.seen import Seen

_LOCAL = RequestContext()


@value_class
class ParsedMessages:
    """A request, and what its answer must look like."""

    request: ChatRequest
    receipt: Receipt = ()
    weight: int | None = None
    """Of the messages, if it is known."""

    @property
    def ready(self) -> None:
        return None  # every one is a model's to answer

    def stream(self, stamp: Stamp) -> MessageEvents:
        return MessageEvents(self._answering(stamp))

    def fold(self, stamp: Stamp, events: Iterable[Event]) -> bytes:
        fold = MessageFold(self._answering(stamp))
        fold.add(events)
        return fold.body()

    def _answering(self, stamp: Stamp) -> Answering:
        request, native = self.request, self.request.native
        thinking = native.value.get("thinking") if native is not None else None
        silent = thinking is not None and thinking.get("display") == "omitted"
        identity = "msg_" + stamp.id.removeprefix("req_")
        return Answering(request, identity, silent, weight=self.weight)


def parse(
    body: bytes,
    *,
    repair: bool = False,
    strict: bool = False,
    call: RequestContext | None = None,
    seen: Seen | None = None,
) -> ParsedMessages:
    """Read a request or raise a `BadRequest` that says what to send instead.

    What was seen before changes nothing but the time it takes.
    """
    call = call or _LOCAL
    owner = f"{call.owner} {call.secret.hex()}"  # it says whose thoughts are whose
    known = recognize(body, seen, owner, form_of(call.secret))
    if known is None or (said := _settled_again(known, repair)) is None:
        return _read(body, repair, strict, call, REQUEST)
    messages, changed = said
    if strict:
        refuse_losses(changed)
    rest: RestOfRequest = known.rest
    request = rest.request(messages, known.tools or NO_TOOLS, call)
    known.keep(settled=not changed)
    weight = None if changed else rest.weight + known.weight()
    return ParsedMessages(request, changed, weight)


def _settled_again(
    known: RecognizedRequest, repair: bool
) -> tuple[tuple[Json, ...], Receipt] | None:
    """None where turns are to be read together: calls in a row, which nobody settles in silence."""
    system: list[Json] = known.rest.system
    before, settled = len(system), known.settled
    try:
        messages, changed = _settled(
            [*system, *known.messages],
            repair,
            range(settled.start + before, settled.stop + before),
        )
    except BadRequest:
        if have_calls_in_a_row(known.messages):
            return None
        raise
    if changed and have_calls_in_a_row(known.messages):
        return None
    return messages, changed


def parse_counted(body: bytes, call: RequestContext) -> ParsedMessages:
    """Read what is only to be counted."""
    return _read(body, True, False, call, COUNTED)


def _read(
    body: bytes, repair: bool, strict: bool, call: RequestContext, shape: TypeAdapter[Any]
) -> ParsedMessages:
    notes = Notes()
    data = read_object(body, notes)
    if data.get("thread") is not None:
        raise BadRequest(
            "thread: threads are not kept here. Send the whole conversation in 'messages'.",
            code=THREADS,
            param="thread",
        )
    try:
        shape.validator.validate_python(data)
    except ValidationError as error:
        raise _refusal(error) from None
    rest = read_rest(data)
    talk = ReadConversation(call.secret, Exact(body, data["messages"]), notes)
    for position, turn in enumerate(data["messages"]):
        talk.add(turn, position)
    messages, changed = _settled([*rest.system, *talk.messages], repair, ARE_CANONICAL)
    notes.add_all(changed)
    receipt = notes.receipt()
    if strict:
        refuse_losses(receipt)
    tools = read_tools(data.get("tools") or ())
    return ParsedMessages(rest.request(messages, tools, call), receipt)


def _refusal(error: ValidationError) -> BadRequest:
    """In Anthropic's words where clients look for those."""
    found = refusal(error)
    if found.code == "missing_required_parameter":
        found.message = f"{found.param}: Field required"
    return found


def _settled(messages: list[Json], repair: bool, known: range) -> tuple[tuple[Json, ...], Receipt]:
    try:
        return settle(messages, repair, known)
    except BadRequest as error:
        if error.code == "invalid_tool_history":
            error.message = (
                "`tool_use` ids must be followed by `tool_result` blocks with the same ids in the "
                f"next message, and no others: {error.message}"
            )
        raise
