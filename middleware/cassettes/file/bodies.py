"""Bodies as people read them: bytes ↔ `json`, `events`, `lines`, `text` or `base64`.

Whatever is chosen gives the very same bytes again; what does not is written in the next form.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from adapters.protocol import Json
from middleware.cassettes.file.schema import ANY, wrong

BODY: Mapping[str, Any] = {
    "json": ANY, "events": [str], "lines": [str], "text": str, "base64": str, "rest": str,
}  # fmt: skip
_STREAMS: Mapping[str, str] = {"text/event-stream": "events", "application/x-ndjson": "lines"}
_ENDS: Mapping[str, str] = {"events": "\n\n", "lines": "\n"}
"""What ends each part of a stream; what stands behind the last is `rest`: half an event."""

_DEEPEST = 64


def body_to_json(body: bytes, content_type: str) -> Json:
    """Take a body apart; `content_type` is what its header says."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}
    name = _STREAMS.get(content_type.partition(";")[0].strip().lower(), "")
    *parts, rest = text.split(_ENDS[name]) if name else [text]
    if parts:
        return {name: parts, **({"rest": rest} if rest else {})}
    value = _parsed(body)
    return {"text": text} if value is None else {"json": value}


def body_from_json(found: Json, at: str) -> bytes:
    """Undo `body_to_json`, or read what was written by hand; nothing there: no bytes."""
    form, *others = [name for name in found if name != "rest"] or ["text"]
    if others:
        raise wrong(at, found, f"one of {', '.join(BODY)}")
    value = found.get(form, "")
    if form == "json":
        return packed(value)
    if form in _ENDS:
        parts = [part + _ENDS[form] for part in value]
        return "".join([*parts, found.get("rest", "")]).encode()
    try:
        return value.encode() if form == "text" else base64.b64decode(value, validate=True)
    except ValueError:
        raise wrong(f"{at}.{form}", value, "base64") from None


def packed(value: object) -> bytes:
    """Compact JSON, as bodies are sent."""
    try:
        return orjson.dumps(value)
    except TypeError:  # integers of more than 64 bits, many levels
        said = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return said.encode("utf-8", "replace")


def _parsed(body: bytes) -> Any:
    """The JSON of a body that says it as `packed` does; None: it says it in another way."""
    if body[:1] not in (b"{", b"["):
        return None
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    # What is deeper cannot be dumped either.
    return value if not _is_deep(value) and orjson.dumps(value) == body else None


def _is_deep(value: Any) -> bool:
    """More than a reader takes."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [member for one in level for member in _members(one)]
        if not level:
            return False
    return True


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
