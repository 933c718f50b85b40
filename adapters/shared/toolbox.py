"""A request's tools and its choice among them, in the one form every language encodes from."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import orjson

from adapters.errors import BadRequest
from adapters.protocol import ChatRequest, Json, value_class
from adapters.receipts import Note, Receipt
from adapters.shared.cache import bounded, by_identity
from adapters.shared.calls import Calls
from adapters.shared.fields import unsupported
from adapters.shared.history import rounds
from adapters.shared.schema import inline_all

Mode = Literal["auto", "none", "required", "named"]
REMEMBERED = 2 << 20
"""Bytes of JSON; what one language makes of them is fifteen times as much, where all are held."""
PLAIN_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}}
_MODES: Mapping[str, Mode] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "any": "required",  # what LangChain and Mistral call it
}
_INPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "The whole input, as free text."}},
    "required": ["input"],
}


@dataclass(frozen=True, slots=True)
class Tool:
    """One function as the upstream is told of it."""

    name: str
    """The upstream's name: an alias where the client's is not ASCII."""
    description: str
    parameters: Json
    strict: bool = False


@value_class
class Toolbox:
    tools: tuple[Tool, ...] = ()
    mode: Mode = "auto"
    named: str = ""
    """The upstream's name of the forced tool, in mode `named`."""
    parallel: bool = True
    restored: bool = False
    """The request declared no tools; these are the ones its history calls."""
    originals: Mapping[str, str] = field(default_factory=dict)
    """Upstream's name → the client's, where they differ."""
    custom: frozenset[str] = frozenset()
    receipt: Receipt = ()
    key: bytes = field(default=b"", compare=False, repr=False)
    """Stands for `tools` in `declared`; empty where they are not remembered."""

    @property
    def offered(self) -> tuple[Tool, ...]:
        """What a model is shown where there is no tool_choice: none means none, one means one."""
        if self.mode == "named":
            return tuple(tool for tool in self.tools if tool.name == self.named)
        return () if self.mode == "none" else self.tools

    @property
    def unfolded(self) -> tuple[Tool, ...]:
        """The tools with what every `$ref` means in its place."""
        return _kept_unfolded(self.key) if self.key else unfolded(self.tools)

    def calls(self, request_id: str) -> Calls:
        """The reader of an answer's calls that undoes what was done to the tools."""
        return Calls(request_id, self.originals, self.custom, self.parallel)


def alias(name: str) -> str:
    """An ASCII name made of the name alone: the same in every turn and every order of tools."""
    if PLAIN_NAME.fullmatch(name):
        return name
    slug = re.sub(r"[^a-zA-Z0-9]+", "_", name).strip("_")[:48]
    digest = base64.b32encode(hashlib.sha256(name.encode()).digest())[:10].decode().lower()
    return f"{slug or 'tool'}_{digest}"


def toolbox(request: ChatRequest, *, restore: bool = False) -> Toolbox:
    """Read tools, tool_choice and parallel_tool_calls of a request.

    `restore` declares the tools of the history again when the request has none of its own, for
    upstreams that refuse tool turns without tools.
    """
    if not request.tools:
        return _restored(request) if restore else Toolbox()
    mode, named, allowed = _choice(request.tool_choice)
    parallel = request.params.get("parallel_tool_calls") is not False
    if allowed is None and (key := key_of(request.tools, request.call.owner)):
        return _kept_box(key, mode, named, parallel)
    return _box(_read(request.tools, allowed), mode, named, parallel)


@bounded(REMEMBERED)
def _kept_box(key: bytes, mode: Mode, named: str, parallel: bool) -> Toolbox:
    return _box(declared_tools(key), mode, named, parallel, key)


def _box(read: DeclaredTools, mode: Mode, named: str, parallel: bool, key: bytes = b"") -> Toolbox:
    tools, originals, custom, receipt = read
    forced = alias(named) if named else ""
    return Toolbox(tools, mode, forced, parallel, False, originals, custom, receipt, key)


class DeclaredTools(NamedTuple):
    """What a toolbox has of the declared tools alone."""

    tools: tuple[Tool, ...]
    originals: Mapping[str, str]
    custom: frozenset[str]
    receipt: Receipt


@by_identity(REMEMBERED)
def key_of(tools: tuple[Json, ...], owner: str) -> bytes:
    """Stands for the tools of an owner in what is remembered of them; empty: nothing is.

    The same come with every turn of a conversation, often as the same object. Owners have theirs
    apart: the time of an answer would tell that somebody else had sent the same.
    """
    if not tools:
        return b""
    try:
        key = owner.encode() + b" " + orjson.dumps(tools)
    except orjson.JSONEncodeError:
        return b""
    return key if len(key) <= REMEMBERED // 4 else b""


def said_in(key: bytes) -> list[Json]:
    """The tools as the client declared them."""
    said: list[Json] = orjson.loads(_text_in(key))
    return said


def tools_text(tools: tuple[Json, ...], owner: str) -> bytes:
    """Tools as JSON, by what is remembered of them."""
    key = key_of(tools, owner)
    return _text_in(key) if key else orjson.dumps(tools)


def _text_in(key: bytes) -> bytes:
    return key[key.index(b" ") + 1 :]


@bounded(REMEMBERED)
def declared_tools(key: bytes) -> DeclaredTools:
    return _read(said_in(key), None)


@bounded(REMEMBERED)
def _kept_unfolded(key: bytes) -> tuple[Tool, ...]:
    return unfolded(declared_tools(key).tools)


def unfolded(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """The tools with what every `$ref` means in its place, all together within one budget."""
    schemas = inline_all([tool.parameters for tool in tools])
    return tuple(
        tool if schema is tool.parameters else replace(tool, parameters=schema)
        for tool, schema in zip(tools, schemas, strict=True)
    )


def _read(declarations: Iterable[Json], allowed: frozenset[str] | None) -> DeclaredTools:
    notes: list[Note] = []
    tools, custom, originals = [], set(), {}
    for position, tool in enumerate(declarations):
        kind = tool.get("type", "function")
        said = tool[kind]
        if allowed is not None and said["name"] not in allowed:
            continue
        name = alias(said["name"])
        if name != said["name"]:
            originals[name] = said["name"]
        if kind == "custom":
            custom.add(name)
            notes.append(_as_function(said, position))
            tools.append(Tool(name, said.get("description") or "", dict(_INPUT)))
        else:
            tools.append(_function(name, said))
    _require_distinct(tools)
    return DeclaredTools(tuple(tools), originals, frozenset(custom), tuple(notes))


def _function(name: str, said: Json) -> Tool:
    parameters = said.get("parameters") or dict(NO_ARGUMENTS)
    if "type" not in parameters and not {"anyOf", "oneOf", "allOf", "$ref"} & parameters.keys():
        parameters = {"type": "object", **parameters}
    return Tool(name, said.get("description") or "", parameters, bool(said.get("strict")))


def _as_function(said: Json, position: int) -> Note:
    if (said.get("format") or {}).get("type") == "grammar":
        raise unsupported(
            f"tools[{position}].custom.format",
            "This model cannot be held to a grammar. Leave 'format' out, or describe the input in "
            "the tool's description.",
        )
    text = "sent as a function with one string"
    return Note("custom_tool_as_function", f"tools[{position}]", text)


def _require_distinct(tools: list[Tool]) -> None:
    names = [tool.name for tool in tools]
    for name in names:
        if names.count(name) > 1:
            raise BadRequest(f"Two tools have the name '{name}'. Give each its own.", param="tools")


def _choice(choice: Any) -> tuple[Mode, str, frozenset[str] | None]:
    """tool_choice in any of its forms → mode, forced name, allowed names."""
    if choice is None:
        return "auto", "", None
    if isinstance(choice, str):
        return _MODES[choice], "", None
    if choice["type"] == "allowed_tools":
        allowed = choice["allowed_tools"]
        names = frozenset(tool[tool["type"]]["name"] for tool in allowed["tools"])
        return allowed["mode"], "", names
    return "named", choice[choice["type"]]["name"], None


def _restored(request: ChatRequest) -> Toolbox:
    names = dict.fromkeys(rounds(request.messages).values())
    if not names:
        return Toolbox()
    return Toolbox(
        tools=tuple(Tool(alias(name), "", dict(NO_ARGUMENTS)) for name in names),
        mode="none",
        restored=True,
        originals={alias(name): name for name in names if alias(name) != name},
    )
