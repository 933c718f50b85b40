"""Body → `ChatRequest`: validated once, with all that only Claude reads beside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from adapters.errors import BadRequest
from adapters.protocol import Carried, ChatRequest, Event, Json, RequestContext, value_class
from adapters.receipts import Notes, Receipt
from adapters.shared.fields import refuse_losses
from adapters.shared.history import settle
from middleware.doors.body import asked_so, read_object
from middleware.doors.door import Stamp
from middleware.doors.messages.answer import Answering
from middleware.doors.messages.conversation import ReadConversation
from middleware.doors.messages.events import MessageEvents
from middleware.doors.messages.exact import Exact
from middleware.doors.messages.fields import losses_of, params_of, refused_of
from middleware.doors.messages.fold import MessageFold
from middleware.doors.messages.shapes import COUNTED, REQUEST
from middleware.doors.messages.tools import ReadTools, read_choice, read_tools
from middleware.doors.messages.words import LANGUAGE, THREADS
from middleware.doors.mistakes import refusal

_LOCAL = RequestContext()
_NOT_NATIVE = ("model", "messages", "stream", "betas")


@value_class
class ParsedMessages:
    """A request, and what its answer must look like."""

    request: ChatRequest
    receipt: Receipt = ()

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
        return Answering.to(self.request, "msg_" + stamp.id.removeprefix("req_"))


def parse(
    body: bytes, *, repair: bool = False, strict: bool = False, call: RequestContext | None = None
) -> ParsedMessages:
    """Read a request or raise a `BadRequest` that says what to send instead."""
    return _read(body, repair, strict, call or _LOCAL, REQUEST)


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
    talk = ReadConversation(call.secret, Exact(body, data["messages"]), notes)
    told = talk.add_system(data.get("system"))
    for position, turn in enumerate(data["messages"]):
        talk.add(turn, position)
    messages, changed = _settled(talk.messages, repair)
    notes.add_all(changed)
    receipt = notes.receipt()
    if strict:
        refuse_losses(receipt)
    return ParsedMessages(_request(data, messages, call, told), receipt)


def _refusal(error: ValidationError) -> BadRequest:
    """In Anthropic's words where clients look for those."""
    found = refusal(error)
    if found.code == "missing_required_parameter":
        found.message = f"{found.param}: Field required"
    return found


def _settled(messages: list[Json], repair: bool) -> tuple[tuple[Json, ...], Receipt]:
    try:
        return settle(messages, repair)
    except BadRequest as error:
        if error.code == "invalid_tool_history":
            error.message = (
                "`tool_use` ids must be followed by `tool_result` blocks with the same ids in the "
                f"next message, and no others: {error.message}"
            )
        raise


def _request(
    data: Json, messages: tuple[Json, ...], call: RequestContext, told: bool
) -> ChatRequest:
    tools = read_tools(data.get("tools") or ())
    choice, parallel = read_choice(data.get("tool_choice"), tools)
    params = params_of(data)
    if tools.functions and not parallel:
        params["parallel_tool_calls"] = False
    extra = {} if data.get("top_k") is None else {"top_k": data["top_k"]}
    beside = {**params, **extra, "tools": tools.functions, "tool_choice": choice}
    own = {name: value for name, value in data.items() if name not in _NOT_NATIVE}
    if told:
        del own["system"]  # its message carries it
    lost = tools.lost + losses_of(data)
    native = Carried(LANGUAGE, own, lost, _refused(data, tools), beside, search=tools.search)
    return ChatRequest(
        model=data["model"],
        messages=messages,
        tools=tools.functions,
        tool_choice=choice,
        params=params,
        extra=extra,
        call=asked_so(call, data.get("stream") is True),
        native=native,
    )


def _refused(data: Json, tools: ReadTools) -> BadRequest | None:
    if name := refused_of(data):
        text = f"{name}: only Claude can take '{name}' as it was sent. Leave it out."
        return BadRequest(text, param=name, code="unsupported_parameter")
    return tools.refusal(data.get("tool_choice"))
