"""What tools return → the content of a tool message."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from adapters.protocol import Json
from middleware.tools.tool import CallFailed, Content, ToolResult

_MOST_OF_AN_ERROR = 4000
_MOST_YIELDED = 32 << 20
_COST = 100
"""Of keeping a piece, however short it is."""
_LARGE, _CHARACTERS = 2_000_000, 16
"""Values of a result that is written down; so many characters count as one."""
_PICTURES: Sequence[tuple[bytes, str]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def content_of(value: object) -> Content:
    """Text as it is, pictures, OpenAI's parts, and everything else as JSON."""
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, bytes | bytearray):
        kind = picture(bytes(value[:16]))
        if not kind:
            raise CallFailed("it returned bytes, which are no picture and no text")
        return [image_part(bytes(value), kind)]
    if isinstance(value, list) and value and all(map(_is_part, value)):
        return [*value]
    return whole_characters(json_of(value))


def json_of(value: object) -> str:
    """Compact JSON, as pydantic writes it; what is too large would hold up the whole process."""
    if _is_large(value):
        raise CallFailed(f"it returned {type(value).__name__} that is too large to be written")
    try:
        return to_json(value, inf_nan_mode="constants").decode()
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        told = str(error).splitlines()[0]
        raise CallFailed(f"it returned {type(value).__name__}, which is no JSON: {told}") from error


def _is_large(value: object) -> bool:
    left, weight = [value], 0
    while left and weight <= _LARGE:
        one = left.pop()
        if isinstance(one, str | bytes):
            weight += len(one) // _CHARACTERS
        elif isinstance(one, dict | list | tuple | set | frozenset):
            weight += len(one)
            if weight <= _LARGE:
                left += one.values() if isinstance(one, dict) else one
        elif not isinstance(one, int | float) and _has_members(one):
            left.append(vars(one))
    return weight > _LARGE


def _has_members(value: object) -> bool:
    return hasattr(value, "__dict__") and (isinstance(value, BaseModel) or is_dataclass(value))


class Pieces:
    """What a generator yields, as one text; what is no text is JSON on a line of its own."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._left = _MOST_YIELDED
        self._apart = False

    def add(self, piece: object) -> str:
        """Take one in; gives its text back."""
        is_text = isinstance(piece, str)
        text = whole_characters(piece) if isinstance(piece, str) else json_of(piece)
        self._left -= len(text) + _COST
        if self._left < 0:
            raise CallFailed(f"it yielded more than {_MOST_YIELDED} characters")
        begun = bool(self._texts) and not self._texts[-1].endswith("\n")
        if self._apart or (begun and not is_text):
            self._texts.append("\n")
        self._texts.append(text)
        self._apart = not is_text
        return text

    def joined(self) -> str:
        return "".join(self._texts)


def whole_characters(text: str) -> str:
    """Half of a surrogate pair is no character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def picture(beginning: bytes) -> str:
    """The kind of picture that begins so; empty: none."""
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _PICTURES if beginning.startswith(start)), "")


def image_part(data: bytes, kind: str) -> Json:
    return image_url(base64.b64encode(data).decode(), kind)


def image_url(encoded: str, kind: str) -> Json:
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{encoded}"}}


def _is_part(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if value.get("type") == "text":
        return isinstance(value.get("text"), str)
    found = value.get("image_url") if value.get("type") == "image_url" else None
    url = found.get("url") if isinstance(found, dict) else None
    return isinstance(url, str) and url.startswith("data:")


def failed(text: str, seconds: float = 0.0) -> ToolResult:
    text = whole_characters(text)
    if len(text) > _MOST_OF_AN_ERROR:
        text = text[: _MOST_OF_AN_ERROR - 20] + " …"
    said = text if text.startswith("Error: ") else f"Error: {text}"
    return ToolResult(said, True, seconds, len(said))


def cut(content: Content, most: int, length: int) -> tuple[Content, int, bool]:
    """Content with no more characters than this, how many there were, and whether it was cut.

    `length` is that of a whole text, of which the content may be the beginning.
    """
    if isinstance(content, str):
        if length <= most:
            return content, length, False
        return f"{content[:most]}\n{_note(most, length)}", length, True
    count = sum(len(part["text"]) for part in content if part["type"] == "text")
    if count <= most:
        return content, count, False
    note = {"type": "text", "text": _note(most, count)}
    return [*_shortened(content, most), note], count, True


def _shortened(parts: Sequence[Json], most: int) -> Iterator[Json]:
    left = most
    for part in parts:
        if part["type"] == "text":
            text = part["text"][:left]
            left -= len(text)
            yield {**part, "text": text}
        else:
            yield part


def _note(most: int, count: int) -> str:
    return f"[cut: the first {most} of {count} characters]"
