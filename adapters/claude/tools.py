"""Tools and the choice among them, in Claude's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import orjson

from adapters.claude.capabilities import Capability
from adapters.claude.content import CACHING, Content
from adapters.claude.strict import StrictSchema, strict_schema
from adapters.protocol import ChatRequest, Json
from adapters.receipts import Notes, Receipt
from adapters.shared.cache import bounded, fitted
from adapters.shared.fields import unsupported
from adapters.shared.schema import object_root
from adapters.shared.schema.merging import COMBINERS, MOST_BRANCHES
from adapters.shared.schema.walk import StepBudget
from adapters.shared.toolbox import (
    REMEMBERED,
    Tool,
    Toolbox,
    alias,
    declared_tools,
    said_in,
    toolbox,
    unfolded,
)
from adapters.shared.unknown_members import unknown_in, unknown_in_tools

# Above these Claude refuses to compile: "The maximum number of strict tools supported is 20",
# "limit: 24" optional parameters, "limit: 16 parameters with unions"; one schema alone must stay
# below them ("Schema is too complex for compilation").
_CACHING = frozenset(CACHING)
MOST_STRICT = 20
MOST_OPTIONAL = 24
MOST_UNIONS = 16


def box_of(request: ChatRequest, capability: Capability) -> Toolbox:
    """The request's tools; those its history calls where it declares none: others of its language
    refuse such a history. Claude takes it, so that of its own clients goes up as it was sent.

    A model whose thoughts are bound to the conversation must see the same tools in every turn, so
    there `allowed_tools` is said in words.
    """
    if request.tools and not capability.tools:
        raise unsupported(
            "tools",
            "This model has no tools of its own. Set its tools to 'emulated' in the config, or "
            "leave 'tools' out of the request.",
        )
    if allowed := _allowed(request, capability) if capability.bound else {}:
        request = replace(request, tool_choice=allowed["mode"])
    return toolbox(request, restore=not request.tools and _had_others(request))


def _had_others(request: ChatRequest) -> bool:
    """Whether it has not the tools that a client of Claude's own language declared."""
    own = (request.native.beside or {}).get("tools") if request.native else None
    return own is None or own != request.tools


def is_forced(box: Toolbox, capability: Capability) -> bool:
    return box.mode in ("required", "named") and capability.forced_tool


def encode_choice(box: Toolbox, capability: Capability) -> Json | None:
    """`tool_choice`, where it is not what leaving it out means; `none` takes no flag."""
    if box.mode == "none":
        return {"type": "none"}
    choice: Json = {"type": "auto"}
    if is_forced(box, capability):
        named = box.mode == "named"
        choice = {"type": "tool", "name": box.named} if named else {"type": "any"}
    elif box.parallel:
        return None
    if not box.parallel:
        choice["disable_parallel_tool_use"] = True
    return choice


def choice_in_words(request: ChatRequest, box: Toolbox, capability: Capability) -> str:
    """What of the choice can only be asked for."""
    if box.mode == "auto" and not isinstance(request.tool_choice, dict):
        return ""
    allowed = _allowed(request, capability)
    names = [alias(tool[tool["type"]]["name"]) for tool in allowed.get("tools", ())]
    which = f"one of these tools: {', '.join(names)}" if names else ""
    if box.mode in ("required", "named") and not capability.forced_tool:
        which = f"the tool '{box.named}'" if box.named else which or "one of the tools"
        return f"Answer by calling {which}. Do not answer in plain text."
    return f"If you call a tool now, call only {which}." if which else ""


def _allowed(request: ChatRequest, capability: Capability) -> Json:
    """The `allowed_tools` of a request where they are to be said in words; {} otherwise."""
    choice = request.tool_choice
    if not capability.bound or not isinstance(choice, dict) or choice["type"] != "allowed_tools":
        return {}
    allowed: Json = choice["allowed_tools"]
    return allowed


class WrittenTools(NamedTuple):
    tools: list[Json]
    receipt: Receipt
    unknown: Mapping[str, str]
    """Members that Claude has no place for, as far as the client declared the tools."""
    text: orjson.Fragment | None = None
    """All of them, where they are remembered and none is marked."""


def encode_tools(request: ChatRequest, box: Toolbox, capability: Capability) -> WrittenTools:
    if not box.key:
        unknown = unknown_in_tools(request, CACHING) if request.tools else {}
        return WrittenTools(*_encode(box.tools, capability.json_schema), unknown)
    return _remembered(box.key, capability.json_schema)


def marked_tools(
    written: WrittenTools, declarations: Sequence[Json], content: Content
) -> list[Json]:
    """Put cache breakpoints onto tools; clients write them beside the function or into it."""
    if written.text is not None:
        return written.tools
    marks: dict[str, Json] = {}
    for position, declaration in enumerate(declarations):
        said = declaration[declaration.get("type", "function")]
        for holder in (declaration, said):
            if mark := content.breakpoint(holder, f"tools[{position}]"):
                marks[alias(said["name"])] = mark
    return [{**tool, **marks.get(tool["name"], {})} for tool in written.tools]


@bounded(REMEMBERED)
def _remembered(key: bytes, strict_too: bool) -> WrittenTools:
    tools, receipt = _encode(declared_tools(key).tools, strict_too)
    said = said_in(key)
    holders = (*said, *[one[one.get("type", "function")] for one in said])
    marked = not all(map(_CACHING.isdisjoint, holders))
    text = None if marked else orjson.Fragment(fitted(orjson.dumps(tools)))
    return WrittenTools(tools, receipt, unknown_in(said, CACHING), text)


def _encode(tools: tuple[Tool, ...], strict_too: bool) -> tuple[list[Json], Receipt]:
    writer = _Writer(strict_too)
    whole = unfolded(tools) if any(tool.strict for tool in tools) else tools
    encoded = [writer.tool(tool, f"tools[{at}]", whole[at]) for at, tool in enumerate(tools)]
    return encoded, writer.notes.receipt()


@dataclass(slots=True)
class _Writer:
    """Encodes the tools of one request, within what Claude compiles of strict ones."""

    strict_too: bool
    """The model can be held to a schema."""
    notes: Notes = field(default_factory=Notes)
    strict: int = 0
    optional: int = 0
    unions: int = 0
    budget: StepBudget = field(default_factory=lambda: StepBudget(MOST_BRANCHES))

    def tool(self, tool: Tool, where: str, whole: Tool) -> Json:
        """Encode a tool; `whole` is the same without references."""
        reduced = self._strict(whole, where) if tool.strict else None
        if reduced:
            return _said(tool, tool.description, reduced.schema) | {"strict": True}
        schema, description = tool.parameters, tool.description
        if schema.get("type") != "object" or COMBINERS & schema.keys():
            schema, lost = object_root(schema, self.budget)
            description = "\n".join(filter(None, [description, *lost]))
            text = "Claude takes one object: the schema was merged into one"
            self.notes.add("schema_root_merged", f"{where}.function.parameters", text)
        return _said(tool, description, schema)

    def _strict(self, tool: Tool, where: str) -> StrictSchema | None:
        free = self.strict_too and self.strict < MOST_STRICT
        reduced = strict_schema(tool.parameters) if free else None
        if reduced is None or not self._fits(reduced):
            text = "sent as a hint: Claude cannot be held to this schema"
            self.notes.add("strict_dropped", f"{where}.function.strict", text)
            return None
        self.strict += 1
        self.optional += reduced.optional
        self.unions += reduced.unions
        if reduced.lost:
            text = f"in words only: {', '.join(reduced.lost)}"
            self.notes.add("schema_in_words", f"{where}.function.parameters", text)
        return reduced

    def _fits(self, one: StrictSchema) -> bool:
        return (
            self.optional + one.optional <= MOST_OPTIONAL
            and self.unions + one.unions <= MOST_UNIONS
            and one.optional < MOST_OPTIONAL
            and one.unions < MOST_UNIONS
        )


def _said(tool: Tool, description: str, schema: Json) -> Json:
    described = {"description": description} if description else {}
    return {"name": tool.name, **described, "input_schema": schema}
