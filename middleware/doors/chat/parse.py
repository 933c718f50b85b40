"""Body → `ChatRequest`: the one place where a request is validated."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from adapters.protocol import ChatRequest, Event, Json, RequestContext, value_class
from adapters.receipts import Notes, Receipt
from adapters.shared.fields import refuse_losses
from adapters.shared.history import settle
from middleware.doors.body import asked_so, read_object
from middleware.doors.chat import legacy
from middleware.doors.chat.checks import check_fields
from middleware.doors.chat.chunks import Chunks
from middleware.doors.chat.fold import Fold
from middleware.doors.chat.grammars import check_grammars
from middleware.doors.chat.recognition import CHAT_FORM
from middleware.doors.chat.shapes import FIELDS, REQUEST
from middleware.doors.chat.words import Heading
from middleware.doors.door import Stamp
from middleware.doors.mistakes import refusal
from middleware.doors.recognition import RecognizedRequest, recognize
from middleware.doors.seen import Seen

# What the door itself takes care of; everything else of OpenAI's goes on in `params`.
_PARAMS = FIELDS.difference(
    ("model", "messages", "tools", "tool_choice", "stream", "stream_options"),
    ("functions", "function_call", "n"),
)


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

    def fold(self, stamp: Stamp, events: Iterable[Event]) -> bytes:
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
    notes, call = Notes(), call or _LOCAL
    known = recognize(body, seen, call.owner, CHAT_FORM)
    if known is None:
        data, functions = _read_whole(body, repair, notes)
        messages, changed = settle(data["messages"], repair)
    else:
        data, functions = _data_of(known), False
        check_fields(data, notes, checked="tools")
        messages, changed = settle(data["messages"], repair, known.settled)
    notes.add_all(changed)
    receipt = notes.receipt()
    if strict:
        refuse_losses(receipt)
    request = _request(data, messages, call)
    options = data.get("stream_options") or {}
    usage_chunk = request.call.streamed and options.get("include_usage") is True
    if known is not None:
        known.keep(settled=not changed)
    return ParsedChat(request, receipt, usage_chunk, functions)


def _read_whole(body: bytes, repair: bool, notes: Notes) -> tuple[Json, bool]:
    """A valid request in today's words, and whether it was said in the old ones."""
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
    return data, functions


def _data_of(known: RecognizedRequest) -> Json:
    data: Json = {**known.rest, "messages": known.messages}
    return data if known.tools is None else {**data, "tools": known.tools}


def _request(data: Json, messages: tuple[Json, ...], call: RequestContext) -> ChatRequest:
    tools = tuple(data.get("tools") or ())
    choice = data.get("tool_choice")
    return ChatRequest(
        model=data["model"],
        messages=messages,
        tools=tools,
        # Without tools of its own a client may still want none of the gateway's to be called.
        tool_choice=choice if tools or choice == "none" else None,
        params={k: v for k, v in data.items() if k in _PARAMS and v is not None},
        extra={k: v for k, v in data.items() if k not in FIELDS},
        call=asked_so(call, data.get("stream") is True),
    )
