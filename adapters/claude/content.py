"""Content of OpenAI messages → Claude's blocks: text, images, documents, tool results."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from adapters.claude.capabilities import Capability
from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import AddNote, Notes
from adapters.shared.fields import unsupported
from adapters.shared.history import json_object, speaker, spoken, wrapped_arguments
from adapters.shared.toolbox import alias

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
# OpenAI's lifetimes of a cache breakpoint → the nearest of Claude's two that is not shorter.
_LIFETIMES: Mapping[str, str] = {"5m": "5m", "30m": "1h", "1h": "1h", "12h": "1h", "24h": "1h"}

CACHING = ("cache_control", "prompt_cache_breakpoint")
"""Members of a part, a message or a tool that say how far to cache."""


@dataclass(slots=True)
class Content:
    """Encodes the content of one request's messages."""

    capability: Capability
    lifetime: str | None = None
    """Of cache breakpoints that name none."""
    error_results: bool = False
    """A result `{"error": …}` says that its tool failed."""
    lifetime_used: bool = False
    marked: bool = False
    """Some block may have a cache breakpoint."""
    notes: Notes = field(default_factory=Notes)

    def copy(self) -> Content:
        told = self.lifetime, self.error_results, self.lifetime_used, self.marked
        return Content(self.capability, *told, self.notes.copy())

    @property
    def note(self) -> AddNote:
        return self.notes.add

    def texts(self, content: Any, position: int) -> list[Json]:
        """Blocks of a string, or of the text and refusal parts of a list, in this message."""
        if not content:
            return []
        if isinstance(content, str):
            return self._whole(content, position)
        blocks = []
        for place, part in enumerate(content):
            at = f"messages[{position}].content[{place}]"
            if part["type"] == "refusal":
                self.note("refusal_as_text", at, "a refusal was sent as text")
            blocks += self._text(part.get("text") or part.get("refusal") or "", part, at)
        return blocks

    def _whole(self, text: str, position: int) -> list[Json]:
        """A message that is one text; Claude refuses those without a visible character."""
        if text.strip():
            return [{"type": "text", "text": text}]
        self._empty(f"messages[{position}]")
        return []

    def user(self, message: Json, position: int) -> list[Json]:
        content, where = message["content"], f"messages[{position}]"
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks: list[Json] = []
        for place, part in enumerate(content):
            at = f"{where}.content[{place}]"
            if part["type"] != "text":
                blocks.append(self._attachment(part, at))
            elif part["text"]:
                blocks += self._text(part["text"], part, at)
            else:
                self._empty(at)
        if "name" in message:
            self._speak(message, blocks, where)
        return blocks

    def _speak(self, message: Json, blocks: list[Json], where: str) -> None:
        name = speaker(message)
        if name and blocks:
            text = next((block for block in blocks if block["type"] == "text"), None)
            if text:
                text["text"] = spoken(name, text["text"])
            else:
                blocks.insert(0, {"type": "text", "text": f"{name}:"})
            self.note("name_as_prefix", f"{where}.name", "the name was put before the text")
        elif message.get("name"):
            self.note("name_dropped", f"{where}.name", "the name says no more than the role")

    def call(self, call: Json, identity: str, position: int, place: int) -> Json:
        """One tool_use: its arguments go up as they are written."""
        kind = call.get("type", "function")
        said = call[kind]
        arguments = said.get("arguments") or "{}"
        if kind == "custom":
            arguments = orjson.dumps({"input": said["input"]}).decode()
        if json_object(arguments) is None:
            at = f"messages[{position}].tool_calls[{place}].function.arguments"
            arguments = wrapped_arguments(arguments, at, self.note)
        return {
            "type": "tool_use",
            "id": identity,
            "name": alias(said["name"]),
            "input": orjson.Fragment(arguments),
        }

    def result(self, message: Json, identity: str, position: int) -> Json:
        """One tool_result; one without content says that the tool gave nothing."""
        block: Json = {"type": "tool_result", "tool_use_id": identity}
        content = message.get("content") or ""
        if isinstance(content, str):
            if content and not content.isspace():
                block["content"] = content
        else:
            block |= self._result_parts(content, f"messages[{position}].content")
        if message.get("is_error") is True or (self.error_results and _is_error(content)):
            block["is_error"] = True
        return block

    def _result_parts(self, parts: list[Json], where: str) -> Json:
        blocks: list[Json] = []
        for position, part in enumerate(parts):
            at = f"{where}[{position}]"
            if part["type"] == "text":
                blocks += self._text(part["text"], part, at)
            else:
                blocks.append(self._attachment(part, at))
        # A cache breakpoint belongs to the result as a whole.
        marks = [block.pop("cache_control") for block in blocks if "cache_control" in block]
        marked = {"cache_control": marks[-1]} if marks else {}
        return {"content": blocks, **marked} if blocks else {}

    def _text(self, text: str, part: Json, where: str) -> list[Json]:
        """Claude refuses text blocks without a visible character."""
        if text.strip():
            block = {"type": "text", "text": text}
            # A type and a text alone say nothing of caching.
            return [block | self.breakpoint(part, where) if len(part) > 2 else block]
        if text:
            self._empty(where)
        return []

    def _empty(self, where: str) -> None:
        self.note("empty_text_dropped", where, "a text without a visible character was left out")

    def _attachment(self, part: Json, where: str) -> Json:
        kind = part["type"]
        if kind == "image_url":
            block = self._image(part["image_url"], f"{where}.image_url")
        elif kind == "file":
            block = _document(part.get("file") or {}, f"{where}.file")
        else:
            raise unsupported(
                where,
                f"Claude cannot take content of type '{kind}'. Send text, an image or a PDF "
                "(transcribe audio first).",
            )
        return {**block, **self.breakpoint(part, where)}

    def _image(self, image: Json, where: str) -> Json:
        if not self.capability.vision:
            raise unsupported(where, "This model does not read images. Describe the image in text.")
        if image.get("detail") not in (None, "auto"):
            self.note("image_detail_dropped", f"{where}.detail", "Claude has one level of detail")
        address = image["url"]
        if address[:8].lower().startswith(("http://", "https://")):
            return {"type": "image", "source": {"type": "url", "url": address}}
        kind, data = _data_url(address, f"{where}.url")
        kind = "image/jpeg" if kind == "image/jpg" else kind
        if kind not in IMAGE_TYPES:
            raise unsupported(
                f"{where}.url",
                f"Claude reads images of type JPEG, PNG, GIF and WebP, not '{kind}'. Convert it.",
            )
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}

    def breakpoint(self, part: Json, where: str) -> Json:
        """A cache breakpoint: OpenAI's, or `cache_control` as Claude's own clients write it."""
        if isinstance(part.get("cache_control"), dict):
            self.marked = True
            return {"cache_control": part["cache_control"]}
        if part.get("cache_control"):
            self.note("member_dropped", f"{where}.cache_control", "it is no object")
        asked = part.get("prompt_cache_breakpoint")
        if not isinstance(asked, dict):
            return {}
        self.marked = True
        lifetime = asked.get("ttl")
        if not lifetime:
            lifetime, self.lifetime_used = self.lifetime, True
        if not lifetime:
            return {"cache_control": {"type": "ephemeral"}}
        if lifetime in ("12h", "24h"):
            self.note("cache_lifetime_shortened", where, "Claude keeps a prefix for 1h at most")
        elif str(lifetime) not in _LIFETIMES:
            self.note("cache_lifetime_unknown", where, "Claude knows 5m and 1h: sent as 5m")
        return {"cache_control": {"type": "ephemeral", "ttl": _LIFETIMES.get(str(lifetime), "5m")}}


def _is_error(content: Any) -> bool:
    said = json_object(content) if isinstance(content, str) else None
    return said is not None and "error" in said


def _data_url(address: str, where: str) -> tuple[str, str]:
    """`data:image/png;base64,…` → type and data."""
    head, comma, data = address.partition(",")
    scheme, _, kind = head.partition(":")
    if scheme.lower() != "data" or not comma or not kind.endswith(";base64"):
        raise BadRequest(
            f"'{where}' must be an http(s) address or 'data:<type>;base64,<data>', not "
            f"'{address[:40]}…'.",
            param=where,
        )
    return kind.removesuffix(";base64").partition(";")[0].lower(), data


def _document(file: Json, where: str) -> Json:
    data = file.get("file_data")
    if not isinstance(data, str) or not data:
        raise unsupported(
            f"{where}.file_id" if file.get("file_id") else where,
            "Files stored elsewhere cannot be read. Send the file itself as 'file_data': "
            "'data:application/pdf;base64,<data>'.",
        )
    name = file["filename"] if isinstance(file.get("filename"), str) else ""
    kind = "application/pdf" if name.lower().endswith(".pdf") else ""
    if data[:5].lower() == "data:":
        kind, data = _data_url(data, f"{where}.file_data")
    source = _document_source(kind, data, where)
    return {"type": "document", "source": source, **({"title": name} if name else {})}


def _document_source(kind: str, data: str, where: str) -> Json:
    if kind == "application/pdf":
        return {"type": "base64", "media_type": kind, "data": data}
    if kind.startswith("text/"):
        return {"type": "text", "media_type": "text/plain", "data": _decoded(data, where)}
    raise unsupported(
        f"{where}.file_data",
        f"Claude reads PDF and plain text files, not '{kind or 'files of unknown type'}'. Send "
        "'data:application/pdf;base64,<data>', or the text as text.",
    )


def _decoded(data: str, where: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise BadRequest(
            f"'{where}.file_data' is not base64 of UTF-8 text.", param=f"{where}.file_data"
        ) from None
