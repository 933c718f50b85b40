"""Tools for Ollama: a few keywords of JSON Schema, and a grammar where a call must be made."""

from __future__ import annotations

from typing import Any

import orjson

from adapters.protocol import Json
from adapters.receipts import Notes, Receipt
from adapters.shared.cache import bounded, fitted
from adapters.shared.schema import inline, object_root, subset
from adapters.shared.toolbox import REMEMBERED, Tool, Toolbox, unfolded
from adapters.shared.toolbox import declared_tools as read_tools

# What the server keeps of a property; everything else it drops without a word.
_KEPT = frozenset({"type", "properties", "items", "enum", "required", "anyOf", "description"})
_ROOT = ("type", "properties", "required")
# What its grammar enforces; of the rest some is ignored and some is an error.
_ENFORCED = frozenset(
    {
        *("type", "properties", "items", "enum", "const", "required"),
        *("additionalProperties", "anyOf", "minimum", "maximum"),
        *("minItems", "maxItems", "minLength", "maxLength"),
    }
)


def declared(box: Toolbox, kept: bool = False) -> tuple[list[Json] | orjson.Fragment, Receipt]:
    """Write the offered tools as the server reads them."""
    if not box.key or len(box.offered) < len(box.tools):
        return _declared(box.offered)
    written, text, notes = _remembered(box.key)
    return text if kept else [*written], notes


# The same tools come with every turn of a conversation, so the work is done once.
@bounded(REMEMBERED)
def _remembered(key: bytes) -> tuple[list[Json], orjson.Fragment, Receipt]:
    written, notes = _declared(read_tools(key).tools)
    return written, orjson.Fragment(fitted(orjson.dumps(written))), notes


def _declared(tools: tuple[Tool, ...]) -> tuple[list[Json], Receipt]:
    written, notes = [], Notes()
    for tool in unfolded(tools):
        root, lost = object_root(tool.parameters)
        reduced, moved = subset(root, _KEPT)
        function: Json = {"name": tool.name}
        if tool.description:
            function["description"] = tool.description
        function["parameters"] = {name: reduced[name] for name in _ROOT if name in reduced}
        written.append({"type": "function", "function": function})
        if moved:
            text = f"only described to the model, not enforced: {', '.join(moved)}"
            notes.add("schema_reduced", f"tools.{tool.name}", text)
        for text in lost:
            notes.add("schema_merged", f"tools.{tool.name}", text)
    if any(tool.strict for tool in tools):
        text = "arguments are checked when they come, not enforced"
        notes.add("strict_not_enforced", "tools", text)
    return written, notes.receipt()


def call_shape(tools: tuple[Tool, ...]) -> Json:
    """Describe an answer that can only be a call of one of these tools.

    A server that has tools looks for calls in JSON too: it knows them by `name` and `arguments`,
    and takes an object with other keys for the arguments themselves (Ollama 0.12.6).
    """
    schemas = (one.parameters for one in unfolded(tools))
    arguments = [subset(object_root(schema)[0], _ENFORCED)[0] for schema in schemas]
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string", "enum": [tool.name for tool in tools]},
            "arguments": arguments[0] if len(arguments) == 1 else {"anyOf": arguments},
        },
        "required": ["name", "arguments"],
    }


def answer_shape(response_format: Any) -> Any:
    """Return `format` for OpenAI's response_format; None leaves the answer free."""
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if kind == "json_object":
        return "json"
    if kind == "json_schema":
        return (response_format.get("json_schema") or {}).get("schema") or "json"
    return None


def either_shape(call: Json, answer: Any) -> Json:
    """Describe an answer that is a call or has the client's form: a grammar would forbid calls."""
    other = inline(answer) if isinstance(answer, dict) else {"type": "object"}
    return {"anyOf": [call, other]}
