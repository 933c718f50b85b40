"""The pieces of a request, each checked alone."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import Notes, Receipt
from middleware.doors.known import Form
from middleware.doors.responses.shapes import BODY, Item, Tools, kind_of
from middleware.doors.responses.tools import ToolSet
from middleware.doors.seen import Piece

_ITEM: TypeAdapter[Any] = TypeAdapter(Item)
_TOOLS: TypeAdapter[Any] = TypeAdapter(Tools)
_ANY = "?"
_REGULAR = frozenset(
    {
        *("message", "reasoning", "function_call", "function_call_output"),
        *("custom_tool_call", "custom_tool_call_output"),
    }
)
"""Kinds of items that stand for themselves."""


class KnownTools(NamedTuple):
    declared: list[Json]
    """As the client said it."""
    offered: tuple[Json, ...]
    """As chat declares them."""
    tools: ToolSet
    receipt: Receipt


def _is_item(piece: Piece) -> bool:
    item = piece.value
    try:
        _ITEM.validator.validate_python(item)
    except ValidationError:
        return False
    piece.arguments = len(item.get("arguments") or "")
    piece.value = [item]
    return kind_of(item) in _REGULAR


def _are_tools(piece: Piece) -> bool:
    declared, tools, notes = piece.value, ToolSet(), Notes()
    try:
        _TOOLS.validator.validate_python(declared)
        tools.declare(declared, "tools", notes)
        tools.require_distinct()
    except (ValidationError, BadRequest):
        return False
    piece.value = KnownTools(declared, tuple(tools.tools), tools, notes.receipt())
    return True


def _rest(rest: Json) -> Json | None:
    data = {**rest, "input": _ANY}
    if isinstance(data.get("tools"), int):
        del data["tools"]
    try:
        BODY.validator.validate_python(data)
    except ValidationError:
        return None
    # What stands before is found by its id, and read with it.
    return None if data.get("previous_response_id") else rest


RESPONSES_FORM = Form("responses", "input", _is_item, _are_tools, _rest)
