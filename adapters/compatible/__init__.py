"""Any endpoint that speaks OpenAI's chat completions; `completions` reads what it answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import orjson

from adapters.compatible.completions import close, decode, decode_answer
from adapters.compatible.dialect import Dialect, Options, dialect
from adapters.compatible.messages import renamed, written_messages
from adapters.compatible.services import SERVICES
from adapters.compatible.state import State
from adapters.compatible.vectors import read_vectors
from adapters.kind import Kind, Settings
from adapters.leaf import Leaf
from adapters.protocol import ChatRequest, Events, Json, Planned, RequestContext
from adapters.receipts import Notes, Receipt
from adapters.shared.cache import bounded, fitted
from adapters.shared.embeddings import EmbeddingRequest
from adapters.shared.fields import Fields, unsupported
from adapters.shared.model_list import Listed, models_at
from adapters.shared.toolbox import (
    REMEMBERED,
    Tool,
    Toolbox,
    alias,
    declared_tools,
    said_in,
    toolbox,
)
from adapters.wire.exchange import Exchange, converse
from adapters.wire.framing import Sse
from adapters.wire.http import Link

PATH = "/chat/completions"
# What is the gateway's own to decide, above all where another gateway stands as the upstream.
DENIED = frozenset(
    {
        *("api_base", "api_key", "api_type", "api_version", "base_url", "client", "organization"),
        *("custom_llm_provider", "deployment_id", "model_list", "fallbacks", "mock_response"),
        *("extra_body", "extra_headers", "extra_query", "headers", "proxy", "timeout"),
        "user_config",
    }
)
_DENIED_FAMILIES = ("aws_", "azure_", "litellm_", "vertex_")


class EncodedRequest(NamedTuple):
    """An encoded request, and the toolbox that undoes in the answer what was done to the tools."""

    body: Json
    receipt: Receipt
    box: Toolbox


def encode(
    request: ChatRequest, spoken: Dialect, notes: Notes | None = None, kept: bool = False
) -> EncodedRequest:
    """Encode behind what `notes` already say.

    With `kept` a part of the body may be text that stands there already, as a `Fragment`.
    """
    fields = Fields({**request.extra, **request.params}, notes)
    one_choice(fields)
    tools, box = _tools(request, spoken, kept)
    fields.notes.add_all(box.receipt)
    for name in request.extra:
        if name in DENIED or name.startswith(_DENIED_FAMILIES):
            fields.lose(name, "the gateway decides this itself")
        elif not spoken.extra_fields:
            fields.lose(name, "OpenAI has no such field")
    if not tools:  # OpenAI refuses the field then; the door has named it
        fields.take("parallel_tool_calls")
    messages = written_messages(request.messages, spoken, kept)
    fields.notes.add_all(messages.images.notes.receipt() + messages.notes.receipt())
    body: Json = {
        "model": request.model,
        "messages": messages.written.array(),
        **tools,
        **limit(fields, spoken.limit_field, spoken.longest),
        **_streaming(fields, request.call.streamed, spoken),
    }
    body |= fields.take_all((*request.params, *request.extra))
    return EncodedRequest(body, fields.receipt("this upstream"), box)


def one_choice(fields: Fields) -> None:
    if (fields.take("n") or 1) > 1:
        raise unsupported("n", "Only one choice is given. Leave 'n' out, or ask several times.")


def limit(fields: Fields, name: str, longest: int | None) -> Json:
    """The longest answer, under the one name the server has, or the name the client chose."""
    given, tokens = "max_completion_tokens", fields.take("max_completion_tokens")
    if tokens is not None:
        fields.lose("max_tokens", "max_completion_tokens is the one that counts")
    else:
        given, tokens = "max_tokens", fields.take("max_tokens") or longest
    return {} if tokens is None else {name or given: tokens}


def _streaming(fields: Fields, streamed: bool, spoken: Dialect) -> Json:
    options = fields.take("stream_options")
    if not streamed:
        return {}
    if not spoken.stream_options:
        return {"stream": True}
    # Usage is collected whether or not the client asks: it is logged and priced.
    return {"stream": True, "stream_options": {**(options or {}), "include_usage": True}}


def _tools(request: ChatRequest, spoken: Dialect, kept: bool) -> tuple[Json, Toolbox]:
    """The tool members of the body. An empty list, or a choice among none, is a 400 at OpenAI."""
    if not request.tools:
        return {}, Toolbox()
    if _is_understood(request, spoken):
        return _as_given(request)
    box = toolbox(request)
    members: Json = {}
    if kept and box.key:
        members["tools"] = _kept_functions(box.key)
    else:
        members["tools"] = _functions(box.tools, request.tools)
    if request.tool_choice is not None:
        members["tool_choice"] = chosen(box)
    return members, box


def chosen(box: Toolbox) -> str | Json:
    """A tool_choice among functions."""
    if box.mode == "named":
        return {"type": "function", "function": {"name": box.named}}
    return box.mode


def _is_understood(request: ChatRequest, spoken: Dialect) -> bool:
    """Whether it uses what only OpenAI itself has, and the server has that too."""
    used = {tool.get("type", "function") for tool in request.tools}
    if isinstance(request.tool_choice, dict):
        used.add(request.tool_choice["type"])
    known = {"custom": spoken.custom_tools, "allowed_tools": spoken.allowed_tools}
    rare = used - {"function"}
    return bool(rare) and all(known[name] for name in rare)


def _as_given(request: ChatRequest) -> tuple[Json, Toolbox]:
    members: Json = {"tools": [renamed(tool) for tool in request.tools]}
    if request.tool_choice is not None:
        members["tool_choice"] = _choice(request.tool_choice)
    names = [_said(tool)["name"] for tool in request.tools]
    return members, Toolbox(
        parallel=request.params.get("parallel_tool_calls") is not False,
        originals={alias(name): name for name in names if alias(name) != name},
    )


def _choice(choice: str | Json) -> str | Json:
    if isinstance(choice, str):
        return choice
    if choice["type"] != "allowed_tools":
        return renamed(choice)
    allowed = choice["allowed_tools"]
    tools = [renamed(tool) for tool in allowed["tools"]]
    return {**choice, "allowed_tools": {**allowed, "tools": tools}}


def _said(tool: Json) -> Json:
    said: Json = tool[tool.get("type", "function")]
    return said


@bounded(REMEMBERED)
def _kept_functions(key: bytes) -> orjson.Fragment:
    written = _functions(declared_tools(key).tools, said_in(key))
    return orjson.Fragment(fitted(orjson.dumps(written)))


def _functions(tools: Iterable[Tool], declarations: Iterable[Json]) -> list[Json]:
    given = {alias(_said(tool)["name"]): tool for tool in declarations}
    return [_function(tool, given[tool.name]) for tool in tools]


def _function(tool: Tool, given: Json) -> Json:
    own = _said(given)
    said = {name: own[name] for name in own if name != "format" and own[name] is not None}
    said |= {"name": tool.name, "parameters": tool.parameters}
    beside = {name: given[name] for name in given if name != "custom"}  # OpenRouter caches tools
    return {**beside, "type": "function", "function": said}


def exchange(written: EncodedRequest, call: RequestContext) -> Exchange[State]:
    """Join a body to the reader of its answer, whichever dialect it was written in."""
    body, receipt, box = written
    state = State(box.calls(call.id))
    return Exchange(PATH, body, receipt, state, call.streamed, Sse, decode, close, decode_answer)


@dataclass(frozen=True, slots=True)
class Compatible(Leaf):
    link: Link
    spoken: Dialect = field(default_factory=Dialect)

    def stream(self, request: ChatRequest) -> Events:
        written = encode(request, self.spoken, kept=True)
        return converse(self.link, exchange(written, request.call), request.call)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        body, receipt, _ = encode(request, self.spoken)
        return (Planned(self.link.name, self.link.url(PATH), body, receipt),)

    def may_think(self, request: ChatRequest) -> bool:
        return self.spoken.reasoning_echo

    async def models(self) -> Listed:
        return await models_at(self.link, "/models")

    async def embed(self, request: EmbeddingRequest) -> Json:
        body = {"model": request.model, "input": request.input, **request.params}
        link = self.link.opened_with(request.call.key)
        said = await link.ask("/embeddings", orjson.dumps(body), request.call.capture)
        return read_vectors(said, link)


def connect(settings: Settings[Options]) -> Compatible:
    """Take the address as it is given, with or without /v1; its usual mistake is forgiven."""
    base_url = settings.link.base_url.rstrip("/").removesuffix(PATH)
    return Compatible(replace(settings.link, base_url=base_url), dialect(settings))


KIND = Kind(
    name="compatible",
    about="Any endpoint that speaks OpenAI's chat completions.",
    connect=connect,
    options=Options,
    abilities=Dialect,
    endings=(PATH, "/completions", "/responses", "/models"),
    beginnings=("/v1", "/api/v1", "/openai/v1"),
    remembers=False,
    leaks=True,
    catalog=("", "openai/"),
    services=SERVICES,
    provider="openai",
)
