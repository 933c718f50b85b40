"""Body → `ChatRequest`: the one place where a request is validated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pydantic import ValidationError

from adapters.errors import BadRequest
from adapters.protocol import ChatRequest, Event, Json, RequestContext, value_class
from adapters.receipts import Notes, Receipt
from adapters.shared.fields import refuse_losses
from adapters.shared.history import settle
from middleware.doors.body import asked_so, read_object
from middleware.doors.chat import legacy
from middleware.doors.chat.chunks import Chunks
from middleware.doors.chat.fold import Fold
from middleware.doors.chat.grammars import check_grammars
from middleware.doors.chat.shapes import FIELDS, REQUEST
from middleware.doors.chat.words import Heading
from middleware.doors.door import Stamp
from middleware.doors.mistakes import refusal

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
    body: bytes, *, repair: bool = False, strict: bool = False, call: RequestContext | None = None
) -> ParsedChat:
    """Read a chat request or raise a `BadRequest` that says what to send instead."""
    notes = Notes()
    data = read_object(body, notes)
    try:
        REQUEST.validator.validate_python(data)
    except ValidationError as error:
        raise refusal(error) from None
    functions = data.get("functions") is not None
    if legacy.is_used(data):
        data = legacy.modern(data, repair, notes)
    _check(data, notes)
    check_grammars(data)
    messages, changed = settle(data["messages"], repair)
    notes.add_all(changed)
    receipt = notes.receipt()
    if strict:
        refuse_losses(receipt)
    request = _request(data, messages, call or _LOCAL)
    options = data.get("stream_options") or {}
    usage_chunk = request.call.streamed and options.get("include_usage") is True
    return ParsedChat(request, receipt, usage_chunk, functions)


def _request(data: Json, messages: tuple[Json, ...], call: RequestContext) -> ChatRequest:
    tools = tuple(data.get("tools") or ())
    return ChatRequest(
        model=data["model"],
        messages=messages,
        tools=tools,
        tool_choice=data.get("tool_choice") if tools else None,
        params={k: v for k, v in data.items() if k in _PARAMS and v is not None},
        extra={k: v for k, v in data.items() if k not in FIELDS},
        call=asked_so(call, data.get("stream") is True),
    )


def _check(data: Json, notes: Notes) -> None:
    for field, check in _CHECKS.items():
        if data.get(field) is not None:
            check(data, notes)


def _check_single_choice(data: Json, _: Notes) -> None:
    if data["n"] > 1:
        raise BadRequest(
            "'n' greater than 1 is not supported: send the request n times instead.",
            code="unsupported_parameter",
            param="n",
        )


def _check_stream_options(data: Json, notes: Notes) -> None:
    if data.get("stream") is not True:
        raise BadRequest(
            "'stream_options' is only allowed with 'stream': true. Leave it out of plain requests.",
            param="stream_options",
        )
    for name, wanted in data["stream_options"].items():
        if name != "include_usage" and wanted not in (None, False):
            text = "the gateway's chunks have nothing like it"
            notes.add("parameter_dropped", f"stream_options.{name}", text)


def _check_logprobs(data: Json, _: Notes) -> None:
    if data["top_logprobs"] and data.get("logprobs") is not True:
        raise BadRequest("'top_logprobs' needs 'logprobs': true.", param="top_logprobs")


def _check_logit_bias(data: Json, _: Notes) -> None:
    for token, bias in data["logit_bias"].items():
        if type(bias) not in (int, float) or not -100 <= bias <= 100:
            where = f"logit_bias.{token[:20]}"
            raise BadRequest(
                f"Invalid value for '{where}': expected a number from -100 to 100.", param=where
            )


def _check_tools(data: Json, _: Notes) -> None:
    require_distinct_names(data["tools"])


def require_distinct_names(tools: Iterable[Json]) -> None:
    names = set()
    for position, tool in enumerate(tools):
        kind = tool["type"]
        name = tool[kind]["name"]
        if name in names:
            where = f"tools[{position}].{kind}.name"
            raise BadRequest(
                f"Two tools have the name '{name}' (the second is '{where}'). Tool names must be "
                "unique.",
                param=where,
            )
        names.add(name)


def _check_choice(data: Json, notes: Notes) -> None:
    choice, tools = data["tool_choice"], data.get("tools")
    if tools:
        if not isinstance(choice, str):
            _require_known(choice, tools)
    elif choice in ("none", "auto"):
        notes.add("tool_choice_ignored", "tool_choice", "the request has no tools")
    else:
        raise BadRequest(
            "'tool_choice' asks for a tool call, but the request has no 'tools'. Send the tools, "
            "or leave 'tool_choice' out.",
            param="tool_choice",
        )


def _check_parallel(data: Json, notes: Notes) -> None:
    if not data.get("tools"):
        notes.add("parameter_dropped", "parallel_tool_calls", "the request has no tools")


def _require_known(choice: Json, tools: list[Json]) -> None:
    allowed = choice["type"] == "allowed_tools"
    known = {(tool["type"], tool[tool["type"]]["name"]) for tool in tools}
    for one in choice["allowed_tools"]["tools"] if allowed else (choice,):
        kind = one["type"]
        name = one[kind]["name"]
        if (kind, name) not in known:
            raise BadRequest(
                f"'tool_choice' names the {kind} tool {name!r}, which is not in 'tools'.",
                param="tool_choice",
            )


_CHECKS: Mapping[str, Callable[[Json, Notes], None]] = {
    "n": _check_single_choice,
    "stream_options": _check_stream_options,
    "top_logprobs": _check_logprobs,
    "logit_bias": _check_logit_bias,
    "tools": _check_tools,
    "tool_choice": _check_choice,
    "parallel_tool_calls": _check_parallel,
}
"""What pydantic cannot say, by the field it is about."""
