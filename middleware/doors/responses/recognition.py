"""The pieces of a request, each checked alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson
from pydantic import TypeAdapter, ValidationError

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import Notes, Receipt
from adapters.shared.cache import fitted
from adapters.shared.history import canonical
from middleware.doors.recognition import Form, Remember
from middleware.doors.responses.fields import RequestFields, read_fields
from middleware.doors.responses.items import REGULAR, alone
from middleware.doors.responses.shapes import BODY, Item, Tools, kind_of
from middleware.doors.responses.tools import ToolSet
from middleware.doors.seen import Piece, size_of
from middleware.doors.skim import ArrayMember

_ITEM: TypeAdapter[Any] = TypeAdapter(Item)
_TOOLS: TypeAdapter[Any] = TypeAdapter(Tools)
_ANY = "?"


class KnownTools(NamedTuple):
    tools: ToolSet
    offered: tuple[Json, ...] = ()
    """As chat declares them."""
    text: bytes = b"[]"
    """As answers repeat them."""
    receipt: Receipt = ()


class KnownRest(NamedTuple):
    fields: RequestFields
    system: tuple[Json, ...]
    """The message that the instructions become, if there are any."""


def _is_item(piece: Piece) -> bool:
    item = piece.value
    try:
        _ITEM.validator.validate_python(item)
    except ValidationError:
        return False
    kind = kind_of(item)
    if kind == "function_call":
        said = item.get("arguments") or ""
        piece.arguments = len(said)
        item["arguments"] = canonical(said)
    if kind not in REGULAR:
        return False
    try:
        piece.value = [alone(item, "")]
    except BadRequest:  # where it stands is told where a body is read whole
        return False
    return True


def _are_tools(piece: Piece) -> bool:
    declared, tools, notes = piece.value, ToolSet(), Notes()
    try:
        _TOOLS.validator.validate_python(declared)
        tools.declare(declared, "tools", notes)
        tools.require_distinct()
    except (ValidationError, BadRequest):
        return False
    text = fitted(orjson.dumps(declared))
    piece.value = KnownTools(tools, tuple(tools.tools), text, notes.receipt())
    piece.size = size_of(piece.raw) + 2 * len(text)
    return True


def _rest(rest: Json, _: Json, remember: Remember) -> KnownRest | None:
    if rest.get("previous_response_id"):
        return None  # what stands before is found by its id, and read with it
    fields = read_fields(rest)
    # The same object, too, where another field says something new with each request.
    system = remember(fields.instructions, told) if fields.instructions else ()
    return KnownRest(fields, system)


def told(instructions: str) -> tuple[Json, ...]:
    return ({"role": "system", "content": instructions},)


RESPONSES_FORM = Form("responses", ArrayMember("input"), _is_item, _are_tools, BODY, _ANY, _rest)
