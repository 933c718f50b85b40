"""Blocks of users and results → parts of OpenAI's messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import Notes

_FAILED = ("error", "<tool_use_error>", '{"error')
"""How results begin that say themselves that their tool failed, in small letters."""


@dataclass(slots=True)
class Losses:
    """What of one message OpenAI's shape cannot say."""

    where: str
    notes: Notes = field(default_factory=Notes)
    refusal: BadRequest | None = None

    def refuse(self, at: str, what: str) -> None:
        text = f"Only Claude can be sent {what}. Send the text, the data or an address instead."
        if self.refusal is None:
            self.refusal = BadRequest(text, param=at, code="unsupported_parameter")

    def drop(self, at: str, kind: str) -> None:
        self.notes.add("item_dropped", at, f"blocks of type '{kind[:60]}' are Claude's alone")


def parts_of(content: str | Sequence[Json] | None, where: str, losses: Losses) -> list[Json]:
    """Parts of a user's message, or of a result."""
    if not content:
        return []
    if isinstance(content, str):
        return [text_part(content)]
    found: list[Json] = []
    for at, block in enumerate(content):
        place = f"{where}[{at}]"
        read = _READERS.get(block["type"])
        if read is None:
            losses.drop(place, block["type"])
        else:
            found += read(block, place, losses)
    return found


def result_content(block: Json, where: str, losses: Losses) -> str | list[Json]:
    """What a tool gave: text where it is no more than that."""
    content = block.get("content")
    if isinstance(content, str) and not block.get("is_error"):
        return content
    parts = parts_of(content, f"{where}.content", losses)
    if block.get("is_error"):
        _say_it_failed(parts)
    kinds = {part["type"] for part in parts}
    if "file" in kinds:
        losses.refuse(where, "a document as what a tool gave")
    return parts if kinds - {"text"} else "\n".join(part["text"] for part in parts)


def text_part(text: str) -> Json:
    return {"type": "text", "text": text}


def _say_it_failed(parts: list[Json]) -> None:
    """Other languages have no flag for that."""
    text = next((part["text"] for part in parts if part["type"] == "text"), "")
    if not text.lstrip().lower().startswith(_FAILED):
        first = parts.pop(0) if text and parts[0]["type"] == "text" else text_part("")
        parts.insert(0, text_part(f"Error: {first['text']}"))


def _text(block: Json, _: str, __: Losses) -> Iterator[Json]:
    if block["text"]:  # SDKs send empty ones, which nobody takes
        yield text_part(block["text"])


def _image(block: Json, where: str, losses: Losses) -> Iterator[Json]:
    address = _address(block["source"])
    if address:
        yield {"type": "image_url", "image_url": {"url": address}}
    else:
        losses.refuse(where, "an image that is stored elsewhere")


def _address(source: Json) -> str:
    if source.get("type") == "url" and isinstance(source.get("url"), str):
        return str(source["url"])
    if source.get("type") == "base64" and isinstance(source.get("data"), str):
        return f"data:{source.get('media_type')};base64,{source['data']}"
    return ""


def _document(block: Json, where: str, losses: Losses) -> Iterator[Json]:
    source, title = block["source"], block.get("title")
    title = title if isinstance(title, str) else ""
    if (block.get("citations") or {}).get("enabled"):
        text = "only Claude cites the documents it is sent"
        losses.notes.add("citations_dropped", f"{where}.citations", text)
    match source.get("type"):
        case "base64":
            yield {"type": "file", "file": {"file_data": _address(source), "filename": title}}
        case "text" if isinstance(source.get("data"), str):
            yield text_part(f"{title}\n{source['data']}" if title else source["data"])
        case "content" if isinstance(source.get("content"), str | list):
            yield from parts_of(_checked(source["content"]), f"{where}.source.content", losses)
        case _:
            losses.refuse(where, "a document that is stored elsewhere")


def _checked(content: Any) -> str | list[Json]:
    """Of what nobody has looked at yet, what has the shape of texts."""
    if isinstance(content, str):
        return content
    return [one for one in content if isinstance(one, dict) and isinstance(one.get("text"), str)
            and one.get("type") == "text"]  # fmt: skip


def _search_result(block: Json, where: str, losses: Losses) -> Iterator[Json]:
    head = [str(block[name]) for name in ("title", "source") if block.get(name)]
    content = block.get("content")
    told = parts_of(_checked(content) if isinstance(content, list) else "", where, losses)
    yield text_part("\n".join([*head, *(part["text"] for part in told)]))


def _reference(block: Json, _: str, __: Losses) -> Iterator[Json]:
    yield text_part(str(block.get("tool_name") or ""))


_READERS: Mapping[str, Callable[[Json, str, Losses], Iterator[Json]]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    "tool_reference": _reference,
}
