"""What a server answers → the content of a tool message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from middleware.tools.results import image_url, json_of
from middleware.tools.tool import CallFailed, Content

if TYPE_CHECKING:
    from mcp.types import CallToolResult


def content_of(result: CallToolResult) -> Content:
    """What a model gets of it, or raise `CallFailed`."""
    texts = [text for one in result.content for text in _text(one)]
    text = "\n".join(texts)
    if result.is_error:
        raise CallFailed(text or "the server says no more than that it failed")
    if not result.content and result.structured_content is not None:
        return json_of(result.structured_content)
    images = [image_url(one.data, one.mime_type) for one in result.content if one.type == "image"]
    if not images:
        return text
    return [*([{"type": "text", "text": text}] if texts else []), *images]


def _text(one: Any) -> Sequence[str]:
    if one.type == "text":
        return (one.text,)
    if one.type == "resource_link":
        return (str(one.uri),)
    if one.type == "resource":
        return (getattr(one.resource, "text", None) or f"[{one.resource.uri}]",)
    return () if one.type == "image" else (f"[{one.type} of {one.mime_type}]",)
