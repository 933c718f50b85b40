"""What a chat request says beside its messages and tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.protocol import Json, value_class
from adapters.receipts import Receipt
from middleware.doors.chat.shapes import FIELDS

# What the door itself takes care of; everything else of OpenAI's goes on in `params`.
_PARAMS = FIELDS.difference(
    ("model", "messages", "tools", "tool_choice", "stream", "stream_options"),
    ("functions", "function_call", "n"),
)


@value_class
class ChatFields:
    """Nobody changes it: it may be that of many requests."""

    model: str
    choice: str | Json | None
    params: Mapping[str, Any]
    extra: Mapping[str, Any]
    streamed: bool
    usage_chunk: bool
    receipt: Receipt
    """What the fields alone lose."""


def read_fields(data: Json, receipt: Receipt = ()) -> ChatFields:
    """Read what was validated; of messages and tools only whether there are any."""
    choice, options = data.get("tool_choice"), data.get("stream_options") or {}
    streamed = data.get("stream") is True
    return ChatFields(
        model=data["model"],
        # Without tools of its own a client may still want none of the gateway's to be called.
        choice=choice if data.get("tools") or choice == "none" else None,
        params={k: v for k, v in data.items() if k in _PARAMS and v is not None},
        extra={k: v for k, v in data.items() if k not in FIELDS},
        streamed=streamed,
        usage_chunk=streamed and options.get("include_usage") is True,
        receipt=receipt,
    )
