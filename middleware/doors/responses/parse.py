"""Body → `ChatRequest`: fields in chat's words, items as messages, references joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
from pydantic import ValidationError

from adapters.errors import BadRequest, Truncated
from adapters.protocol import ChatRequest, Event, Finish, Json, RequestContext, value_class
from adapters.receipts import Notes, Receipt
from adapters.shared.fields import refuse_losses, unsupported
from adapters.shared.history import settle
from middleware.doors.body import asked_so, read_object
from middleware.doors.chat.grammars import check_grammars
from middleware.doors.door import KeptRecord, Stamp
from middleware.doors.mistakes import refusal
from middleware.doors.responses.echo import echo
from middleware.doors.responses.frames import Frames, finished
from middleware.doors.responses.ids import response_id
from middleware.doors.responses.items import ItemReader
from middleware.doors.responses.output import Items, Nobody
from middleware.doors.responses.response_object import ResponseHeading
from middleware.doors.responses.shapes import BODY, OWN_FIELDS
from middleware.doors.responses.state import Kept, packed, with_ids
from middleware.doors.responses.tools import ToolSet

_LOCAL = RequestContext()
_SAME: Mapping[str, str] = {
    **{
        name: name
        for name in (
            *("temperature", "top_p", "metadata", "user", "safety_identifier", "prompt_cache_key"),
            *("prompt_cache_options", "prompt_cache_retention", "service_tier", "moderation"),
        )
    },
    "max_output_tokens": "max_completion_tokens",
}
"""Fields that chat has too, and their names there."""
_OF_TOOLS: Mapping[str, str] = {"parallel_tool_calls": "parallel_tool_calls"}
_REFUSED: Mapping[str, str] = {
    "background": "Answers in the background are not made here. Ask with 'stream': true.",
    "conversation": "Conversations are not kept here. Send 'previous_response_id', or the items.",
    "prompt": "Prompts are not kept here. Send their text in 'instructions' or 'input'.",
}
_LEFT: Mapping[str, str] = {
    "max_tool_calls": "this gateway's config bounds the calls of its own tools",
    "context_management": "this gateway does not compact conversations",
}
_LOGPROBS = "message.output_text.logprobs"
_SERVED = frozenset({_LOGPROBS, "reasoning.encrypted_content"})


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

    @property
    def ready(self) -> None:
        return None  # every one is a model's to answer

    def stream(self, stamp: Stamp) -> Frames:
        return Frames(self._heading(stamp), self.tools, self.request.call.secret)

    def fold(self, stamp: Stamp, events: Iterable[Event]) -> bytes:
        heading = self._heading(stamp)
        items = Items(heading.id, self.tools, self.request.call.secret, Nobody())
        end: Finish | None = None
        for event in events:
            items.add(event)
            end = event if type(event) is Finish else end
        if end is None:
            raise Truncated("The upstream's answer has no end.")
        # Notes of events stand in the headers.
        return orjson.dumps(finished(heading, items, end, {}))

    def record(self, stamp: Stamp, events: Iterable[Event]) -> KeptRecord:
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
    """Read a request or raise a `BadRequest` that says what to send instead."""
    notes, kept = Notes(), kept or Kept()
    data = read_object(body, notes)
    try:
        BODY.validator.validate_python(data)
    except ValidationError as error:
        raise refusal(error) from None
    call = asked_so(call or _LOCAL, data.get("stream") is True)
    items = [*_own_items(data["input"], kept, notes)]
    before = kept.ids_before(data.get("previous_response_id"))
    messages, tools = _messages(data, items, kept, ItemReader(notes, call.secret, repair))
    settled, changed = settle(messages, repair)
    notes.add_all(changed)
    choice = tools.choice(data.get("tool_choice"))
    native = tools.native(notes)
    request = ChatRequest(
        model=data["model"],
        messages=settled,
        tools=tuple(tools.tools),
        tool_choice=choice,
        params=dict(_params(data, bool(tools.tools), notes)),
        extra={name: value for name, value in data.items() if name not in OWN_FIELDS},
        call=call,
        native=native,
    )
    check_grammars({**request.params, **request.extra})
    receipt = notes.receipt()
    if strict:
        refuse_losses(receipt)
    own = [item for _, item in items]
    return ParsedResponse(request, echo(data, kept.keeps), tools, own, before, receipt)


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
        conversation.messages.append({"role": "system", "content": data["instructions"]})
    previous = data.get("previous_response_id")
    joined = [*kept.before(previous), *items] if previous else items
    messages = conversation.read(joined)
    tools = ToolSet()
    for where, declared in (("tools", data.get("tools") or ()), *conversation.tools):
        tools.declare(declared, where, conversation.notes)
    tools.require_distinct()
    return messages, tools


def _params(data: Json, has_tools: bool, notes: Notes) -> Iterator[tuple[str, Any]]:
    for name, text in _REFUSED.items():
        if data.get(name):
            raise unsupported(name, text)
    same = (*_SAME.items(), *(_OF_TOOLS.items() if has_tools else ()))
    yield from ((chats, data[name]) for name, chats in same if data.get(name) is not None)
    yield from _thinking(data.get("reasoning") or {}, notes)
    yield from _form(data.get("text") or {})
    yield from _logprobs(data, notes)
    for name, why in _LEFT.items():
        if data.get(name):
            notes.add("parameter_dropped", name, why)
    if data.get("truncation") == "auto":
        notes.add("parameter_dropped", "truncation", "no item is left out to make room")


def _thinking(reasoning: Json, notes: Notes) -> Iterator[tuple[str, Any]]:
    if reasoning.get("effort"):
        yield "reasoning_effort", reasoning["effort"]
    for name, value in reasoning.items():
        if value is not None and name not in ("effort", "summary", "generate_summary"):
            notes.add("parameter_dropped", f"reasoning.{name}", "chat has nothing like it")


def _form(text: Json) -> Iterator[tuple[str, Any]]:
    if text.get("verbosity"):
        yield "verbosity", text["verbosity"]
    form = text.get("format") or {}
    if form.get("type") == "json_object":
        yield "response_format", {"type": "json_object"}
    elif form.get("type") == "json_schema":
        if not form.get("name"):
            raise BadRequest("Missing required parameter: 'text.format.name'.", param="text.format")
        known = ("name", "description", "schema", "strict")
        schema = {key: form[key] for key in known if form.get(key) is not None}
        yield "response_format", {"type": "json_schema", "json_schema": schema}


def _logprobs(data: Json, notes: Notes) -> Iterator[tuple[str, Any]]:
    included = data.get("include") or ()
    if _LOGPROBS in included or data.get("top_logprobs"):
        yield "logprobs", True
        if data.get("top_logprobs"):
            yield "top_logprobs", data["top_logprobs"]
    for name in included:
        if name not in _SERVED:
            notes.add("parameter_dropped", f"include.{name[:60]}", "answers here have none")
