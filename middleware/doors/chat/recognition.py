"""The pieces of a chat request, each checked alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import Notes
from adapters.shared.history import MOST_REWRITTEN, with_canonical_calls
from middleware.doors.chat import legacy
from middleware.doors.chat.checks import check_fields, require_distinct_names
from middleware.doors.chat.fields import ChatFields, read_fields
from middleware.doors.chat.grammars import check_grammars
from middleware.doors.chat.messages import Message
from middleware.doors.chat.shapes import REQUEST, Tools
from middleware.doors.recognition import Form, Remember
from middleware.doors.seen import Piece
from middleware.doors.skim import ArrayMember

_MESSAGE: TypeAdapter[Any] = TypeAdapter(Message)
_ALL_TOOLS: TypeAdapter[Any] = TypeAdapter(Tools)
_ANY: Sequence[Json] = ({"role": "user", "content": ""},)


def _is_message(piece: Piece) -> bool:
    message = piece.value
    try:
        _MESSAGE.validator.validate_python(message)
    except ValidationError:
        return False
    if message["role"] == "function" or message.get("function_call"):
        return False  # their ids say where they stand
    if message.get("tool_calls"):
        message, room = with_canonical_calls(message)
        piece.arguments = MOST_REWRITTEN - room
    piece.value = [message]
    return True


def _are_tools(piece: Piece) -> bool:
    tools = piece.value
    try:
        _ALL_TOOLS.validator.validate_python(tools)
        require_distinct_names(tools)
        check_grammars({"tools": tools})
    except (ValidationError, BadRequest):
        return False
    piece.value = tuple(tools)
    return True


def _rest(rest: Json, checked: Json, _: Remember) -> ChatFields | None:
    check_grammars(checked)
    choice, notes = rest.get("tool_choice"), Notes()
    if legacy.is_used(checked) or (isinstance(choice, dict) and not rest.get("tools")):
        return None
    # Which tool is chosen is looked for among those of each request.
    check_fields(rest, notes, ("tools", "tool_choice") if isinstance(choice, dict) else ("tools",))
    return read_fields(rest, notes.receipt())


CHAT_FORM = Form("chat", ArrayMember("messages"), _is_message, _are_tools, REQUEST, [*_ANY], _rest)
