"""The pieces of a request to `/api/chat`, each checked alone."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError

from adapters.errors import BadRequest
from adapters.protocol import Json
from middleware.doors.chat.checks import require_distinct_names
from middleware.doors.ollama.members import OllamaFields, read_fields
from middleware.doors.ollama.shapes import CHAT, SentMessage, Tools
from middleware.doors.recognition import Form, Remember
from middleware.doors.seen import Piece
from middleware.doors.skim import ArrayMember

_MESSAGE: TypeAdapter[Any] = TypeAdapter(SentMessage)
_TOOLS: TypeAdapter[Any] = TypeAdapter(Tools)


def as_function(tool: Json) -> Json:
    return tool if tool.get("type") == "function" else {**tool, "type": "function"}


def _is_message(piece: Piece) -> bool:
    try:
        _MESSAGE.validator.validate_python(piece.value)
    except ValidationError:
        return False
    piece.value = [piece.value]
    return True


def _are_tools(piece: Piece) -> bool:
    try:
        _TOOLS.validator.validate_python(piece.value)
        tools = tuple([as_function(tool) for tool in piece.value])
        require_distinct_names(tools)
    except (ValidationError, BadRequest):
        return False
    piece.value = tools
    return True


def _rest(rest: Json, _: Json, __: Remember) -> OllamaFields | None:
    return None if rest.get("_debug_render_only") else read_fields(rest)


CHAT_FORM = Form("ollama", ArrayMember("messages"), _is_message, _are_tools, CHAT, [], _rest)
