"""Models of a script and the chat that talks with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from middleware.cli.chat.tools import example_tools

Json = dict[str, Any]
NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
TOOLS = {tool.name: tool for tool in example_tools(lambda: NOON)}


def chunk(finish: str | None = None, **delta: Any) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
