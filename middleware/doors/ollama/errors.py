"""Errors → Ollama's: one member, `error`, which is a text; some words are looked for."""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from adapters.errors import GatewayError
from adapters.protocol import Json
from adapters.receipts import Receipt
from middleware.doors.x_usetool import warnings_object

_NO_MODEL = re.compile(r"The model '([^']*)' does not exist here\.")
_NO_TOOLS = re.compile(r"The model '([^']*)' cannot call tools:")
_WORDS: Mapping[str | None, str] = {
    # Code → what clients look for; our own words follow.
    "invalid_api_key": "unauthorized",
    "overloaded": "server busy, please try again.  maximum pending requests exceeded",
}


def error_body(error: GatewayError, request_id: str = "") -> bytes:
    """The id stands in `x-request-id` alone: programs compare these words."""
    return orjson.dumps(_said(error))


def error_line(error: GatewayError, untold: Receipt) -> bytes:
    """The last line of a stream that failed, with the notes that no header has told."""
    said = _said(error)
    if untold:
        said["x_usetool"] = warnings_object(untold)
    return orjson.dumps(said) + b"\n"


def _said(error: GatewayError) -> Json:
    text = _NO_MODEL.sub(r"model '\1' not found.", error.message)
    text = _NO_TOOLS.sub(r'"\1" does not support tools:', text)
    words = _WORDS.get(error.code)
    return {"error": f"{words}: {text}" if words else text}
