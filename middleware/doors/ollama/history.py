"""Ollama's messages → OpenAI's: whose result is whose, and ids that are the same every time.

Most clients of this API drop the ids of calls, or never had any. What stands in their place is made
of what was called and where, so that a history is the same bytes turn after turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import Notes

_ROLES = ("system", "user", "assistant", "tool")
_SHOWING = ("user", "tool")
# How the base64 of an image begins, by its type.
_BEGINNINGS: Mapping[str, str] = {
    "iVBORw0KGgo": "png",
    "/9j/": "jpeg",
    "R0lGOD": "gif",
    "UklGR": "webp",
}
_DATA = "data:image/"
_SHOWN = 40


@dataclass(slots=True)
class OllamaConversation:
    """Reads messages one by one."""

    notes: Notes
    messages: list[Json] = field(default_factory=list)
    calls: dict[str, str] = field(default_factory=dict)
    """Id of each call of the last round → its tool."""
    waiting: dict[str, str] = field(default_factory=dict)
    """Those without a result, in their order."""
    regular: bool = True
    """Each round of calls has its results behind it, and each turn says something."""

    def copy(self) -> OllamaConversation:
        waiting, notes = self.waiting.copy(), self.notes.copy()
        return OllamaConversation(notes, [*self.messages], self.calls, waiting, self.regular)

    def add(self, message: Json) -> None:
        self.messages.append(_message(self, message, len(self.messages)))

    def finish(self) -> list[Json]:
        self.end_round()
        return self.messages

    def end_round(self) -> None:
        if self.waiting:
            self.regular = False


def with_images(text: Any, images: Iterable[str] | None, where: str) -> Any:
    """The content of a message that shows images."""
    shown = [_image(image, f"{where}images[{at}]") for at, image in enumerate(images or ())]
    if not shown:
        return text
    said = text if isinstance(text, list) else [{"type": "text", "text": text}] if text else []
    return [*said, *shown]


def _message(conversation: OllamaConversation, message: Json, position: int) -> Json:
    role, content = message["role"].lower(), message.get("content") or ""
    where = f"messages[{position}]."
    if role not in _ROLES:
        raise BadRequest(
            f"Invalid value for '{where}role': expected one of {', '.join(_ROLES)}, but got "
            f"'{role[:_SHOWN]}' instead.",
            param=f"{where}role",
        )
    images = message.get("images")
    if images and role in _SHOWING:
        content = with_images(content, images, where)
    elif images:
        text = "only a user and a tool show images"
        conversation.notes.add("member_dropped", f"{where}images", text)
    written: Json = {"role": role, "content": content}
    if role == "tool":
        if identity := _answered(conversation, message):
            written["tool_call_id"] = identity
        return written
    conversation.end_round()
    if role == "assistant":
        written |= _assistant(conversation, message, position)
        if not (content or "tool_calls" in written):
            conversation.regular = False
    return written


def _assistant(conversation: OllamaConversation, message: Json, position: int) -> Json:
    written: Json = {}
    if thought := message.get("thinking"):
        written["reasoning_content"] = thought
    if calls := message.get("tool_calls"):
        written["tool_calls"] = _calls(conversation, calls, position)
    return written


def _calls(conversation: OllamaConversation, calls: Iterable[Json], position: int) -> list[Json]:
    written: dict[str, Json] = {}
    for index, call in enumerate(calls):
        name = call["function"]["name"]
        where = f"messages[{position}].tool_calls[{index}].function.arguments"
        arguments = _arguments(conversation, call["function"].get("arguments"), where)
        identity = call.get("id")
        if not identity or identity in written:
            made = orjson.dumps((position, index, name, arguments))
            identity = f"call_{blake2b(made, digest_size=12).hexdigest()}"
        function = {"name": name, "arguments": arguments}
        written[identity] = {"id": identity, "type": "function", "function": function}
    conversation.calls = {name: call["function"]["name"] for name, call in written.items()}
    conversation.waiting = {**conversation.calls}
    return [*written.values()]


def _arguments(conversation: OllamaConversation, arguments: Any, where: str) -> str:
    if isinstance(arguments, str):
        conversation.notes.add("arguments_as_text", where, "they are an object in Ollama's API")
        return arguments
    if not isinstance(arguments, dict | None):
        raise BadRequest(
            f"Invalid type for '{where}': expected an object.", code="invalid_type", param=where
        )
    return orjson.dumps(arguments or {}).decode()


def _answered(conversation: OllamaConversation, message: Json) -> str:
    """The call a result is of: by id, else the next of its tool, else the next; empty: none."""
    waiting = conversation.waiting
    identity = message.get("tool_call_id")
    if identity not in conversation.calls:
        tool = message.get("tool_name") or message.get("name")
        of_tool = (one for one, name in waiting.items() if name == tool)
        identity = next(of_tool if tool else iter(waiting), "")
    if waiting.pop(identity, None) is None:
        conversation.regular = False
    return identity


def _image(image: str, where: str) -> Json:
    kind = next((kind for begin, kind in _BEGINNINGS.items() if image.startswith(begin)), "")
    if image.startswith(_DATA) and ";base64," in image[:_SHOWN]:
        url = image
    elif kind:
        url = f"{_DATA}{kind};base64,{image}"
    else:
        raise BadRequest(
            f"Invalid value for '{where}': expected a PNG, JPEG, GIF or WebP image in base64, "
            "without an address in front of it.",
            param=where,
        )
    return {"type": "image_url", "image_url": {"url": url}}
