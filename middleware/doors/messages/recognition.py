"""The pieces of a request, each read alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from pydantic import TypeAdapter, ValidationError

from adapters.errors import BadRequest
from adapters.protocol import CARRIER, Json
from adapters.receipts import Notes
from middleware.doors.messages.answer import weight_of
from middleware.doors.messages.conversation import Exact, ReadConversation
from middleware.doors.messages.rest import RestOfRequest, read_rest
from middleware.doors.messages.shapes import REQUEST, ClientTurn, Tools
from middleware.doors.messages.tools import read_tools
from middleware.doors.recognition import Form, Remember
from middleware.doors.seen import Piece, size_of
from middleware.doors.skim import ArrayMember

_TURN: TypeAdapter[Any] = TypeAdapter(ClientTurn)
_TOOLS: TypeAdapter[Any] = TypeAdapter(Tools)
_ANY: Sequence[Json] = ({"role": "user", "content": ""},)
_EACH = 1500
"""Bytes that a message takes beside the turn it was made of."""


def _is_turn(secret: bytes, piece: Piece) -> bool:
    turn = piece.value
    try:
        _TURN.validator.validate_python(turn)
        exact = Exact(b'{"messages":[%b]}' % piece.raw, [turn])
        talk = ReadConversation(secret, exact, Notes())
        talk.add(turn, 0)
    except (ValidationError, BadRequest):
        return False
    if talk.notes.receipt() or any(map(_is_lossy, talk.messages)):
        return False  # what is said of it says where it stands
    piece.value = talk.messages
    piece.weight = sum(map(weight_of, talk.messages))
    piece.size = size_of(piece.raw) + _EACH * len(talk.messages)
    return True


def _is_lossy(message: Json) -> bool:
    carried = message.get(CARRIER)
    return carried is not None and bool(carried.lost or carried.refusal)


def _are_tools(piece: Piece) -> bool:
    try:
        _TOOLS.validator.validate_python(piece.value)
        piece.value = read_tools(piece.value)
    except (ValidationError, BadRequest):
        return False
    piece.size = 2 * size_of(piece.raw)
    return True


def _rest(rest: Json, _: Json, __: Remember) -> RestOfRequest | None:
    return None if rest.get("thread") is not None else read_rest(rest)


@lru_cache(maxsize=8)
def form_of(secret: bytes) -> Form:
    """With the secret that thoughts are signed with."""
    turn, items = partial(_is_turn, secret), ArrayMember("messages")
    return Form("messages", items, turn, _are_tools, REQUEST, [*_ANY], _rest)
