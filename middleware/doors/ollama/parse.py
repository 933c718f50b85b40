"""Body → `ChatRequest`, for `/api/chat` and `/api/generate`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from adapters.errors import BadRequest
from adapters.protocol import ChatRequest, Event, Json, RequestContext, value_class
from adapters.receipts import Notes, Receipt
from adapters.shared.fields import refuse_losses
from adapters.shared.history import ARE_CANONICAL, settle
from middleware.doors.body import asked_so, read_object
from middleware.doors.chat.checks import require_distinct_names
from middleware.doors.door import Stamp
from middleware.doors.mistakes import refusal
from middleware.doors.ollama.forms import CHAT_LINES, GENERATE_LINES, LineForm, bare, loaded
from middleware.doors.ollama.history import OllamaConversation, with_images
from middleware.doors.ollama.lines import Lines
from middleware.doors.ollama.members import OllamaFields, read_fields
from middleware.doors.ollama.recognition import CHAT_FORM, as_function
from middleware.doors.ollama.shapes import CHAT, GENERATE
from middleware.doors.ollama.whole import whole
from middleware.doors.recognition import recognize, settle_items
from middleware.doors.seen import Seen

_LOCAL = RequestContext()
_WITHOUT_MODEL = ("template", "raw", "context")
"""What is about the text a model is given, of which the gateway knows nothing."""


@value_class
class ParsedOllama:
    """A request, and what its answer must look like."""

    request: ChatRequest
    form: LineForm
    name: str
    """The model's name as the client said it."""
    receipt: Receipt = ()
    asks: bool = True
    """There is something to ask a model; else only that it is loaded, or not any more."""
    unloads: bool = False

    @property
    def ready(self) -> Callable[[Stamp], bytes] | None:
        return None if self.asks else self._loaded

    def _loaded(self, stamp: Stamp) -> bytes:
        return loaded(self.form, self.name, self.unloads, stamp.now())

    def stream(self, stamp: Stamp) -> Lines:
        return Lines(self.form, self.name, stamp)

    def fold(self, stamp: Stamp, events: Iterable[Event]) -> bytes:
        return whole(self.form, self.name, stamp, events)


def parse_chat(
    body: bytes,
    *,
    strict: bool = False,
    call: RequestContext | None = None,
    seen: Seen | None = None,
) -> ParsedOllama:
    """Read a request to `/api/chat`. Its history is always mended: clients that send neither ids
    nor all results cannot do better.

    What was seen before changes nothing but the time it takes.
    """
    notes, call = Notes(), call or _LOCAL
    known = recognize(body, seen, call.owner, CHAT_FORM)
    if known is None:
        return _whole_chat(body, notes, strict, call)
    begin = partial(OllamaConversation, Notes())
    messages, receipt, changed = settle_items(known.messages, begin, "ollama", True)
    notes.add_all(receipt + changed)
    parsed = _parsed(known.rest, messages, known.tools or (), _How(CHAT_LINES, notes, strict, call))
    known.keep(settled=False, joined=True)
    return parsed


def _whole_chat(body: bytes, notes: Notes, strict: bool, call: RequestContext) -> ParsedOllama:
    data = _read(body, CHAT, notes)
    if data.get("_debug_render_only"):
        raise BadRequest("_debug_render_only is not supported: the prompt is the upstream's own.")
    conversation = OllamaConversation(notes)
    for message in data.get("messages") or ():
        conversation.add(message)
    tools = [as_function(tool) for tool in data.get("tools") or ()]
    require_distinct_names(tools)
    messages = conversation.finish()
    how = _How(CHAT_LINES, notes, strict, call, bool(messages))
    return _parsed(read_fields(data), _settled(messages, notes), tuple(tools), how)


def parse_generate(
    body: bytes, *, strict: bool = False, call: RequestContext | None = None
) -> ParsedOllama:
    """Read a request to `/api/generate`: one message of a user."""
    notes, call = Notes(), call or _LOCAL
    data = _read(body, GENERATE, notes)
    if data.get("suffix"):
        raise BadRequest(f'"{data["model"]}" does not support insert', param="suffix")
    for name in _WITHOUT_MODEL:
        if data.get(name):
            notes.add("parameter_dropped", name, "the prompt is sent as a user's message")
    content = with_images(data.get("prompt") or "", data.get("images"), "")
    messages = [{"role": "user", "content": content}] if content else []
    if messages and (system := data.get("system")):
        messages.insert(0, {"role": "system", "content": system})
    how = _How(GENERATE_LINES, notes, strict, call, bool(messages))
    return _parsed(read_fields(data), _settled(messages, notes), (), how)


def _read(body: bytes, shape: TypeAdapter[Any], notes: Notes) -> Json:
    if not body.strip():
        raise BadRequest("missing request body")
    data = read_object(body, notes)
    if not data.get("model"):
        raise BadRequest("model is required", param="model")
    try:
        shape.validator.validate_python(data)
    except ValidationError as error:
        raise refusal(error) from None
    return data


def _settled(messages: list[Json], notes: Notes) -> tuple[Json, ...]:
    settled, changed = settle(messages, True, ARE_CANONICAL)
    notes.add_all(changed)
    return settled


class _How(NamedTuple):
    form: LineForm
    notes: Notes
    strict: bool
    call: RequestContext
    asks: bool = True


def _parsed(
    fields: OllamaFields, messages: tuple[Json, ...], tools: tuple[Json, ...], how: _How
) -> ParsedOllama:
    receipt = how.notes.receipt()
    if how.strict:
        refuse_losses(receipt)
    request = ChatRequest(
        model=bare(fields.name),
        messages=messages,
        tools=tools,
        params=fields.params,
        call=asked_so(how.call, fields.streamed),
        native=fields.native,
    )
    return ParsedOllama(request, how.form, fields.name, receipt, how.asks, fields.unloads)
