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
        role, content = message["role"].lower(), message.get("content") or ""
        position = len(self.messages)
        if role not in _ROLES:
            raise _unknown(role, f"messages[{position}].role")
        if images := message.get("images"):
            content = _beside(self, content, images, role, f"messages[{position}].")
        written: Json = {"role": role, "content": content}
        if role == "tool":
            if identity := _answered(self, message):
                written["tool_call_id"] = identity
        else:
            if self.waiting:
                self.regular = False
            if role == "assistant":
                _say_more(self, written, message, position)
        self.messages.append(written)

    def finish(self) -> list[Json]:
        if self.waiting:
            self.regular = False
        return self.messages


def with_images(text: Any, images: Iterable[str] | None, where: str) -> Any:
    """The content of a message that shows images."""
    shown = [_image(image, f"{where}images[{at}]") for at, image in enumerate(images or ())]
    if not shown:
        return text
    said = text if isinstance(text, list) else [{"type": "text", "text": text}] if text else []
    return [*said, *shown]


def _unknown(role: str, where: str) -> BadRequest:
    return BadRequest(
        f"Invalid value for '{where}': expected one of {', '.join(_ROLES)}, but got "
        f"'{role[:_SHOWN]}' instead.",
        param=where,
    )


def _beside(
    conversation: OllamaConversation, content: Any, images: Iterable[str], role: str, where: str
) -> Any:
    if role in _SHOWING:
        return with_images(content, images, where)
    text = "only a user and a tool show images"
    conversation.notes.add("member_dropped", f"{where}images", text)
    return content


def _say_more(
    conversation: OllamaConversation, written: Json, message: Json, position: int
) -> None:
    """What an assistant has beside its text."""
    if thought := message.get("thinking"):
        written["reasoning_content"] = thought
    if calls := message.get("tool_calls"):
        written["tool_calls"] = _calls(conversation, calls, position)
    elif not written["content"]:
        conversation.regular = False


def _calls(conversation: OllamaConversation, calls: Iterable[Json], position: int) -> list[Json]:
    written: dict[str, Json] = {}
    names: dict[str, str] = {}
    for index, call in enumerate(calls):
        function = call["function"]
        name, given = function["name"], function.get("arguments")
        if type(given) is not dict:
            where = f"messages[{position}].tool_calls[{index}].function.arguments"
            given = _odd_arguments(conversation, given, where)
        arguments = given if type(given) is str else orjson.dumps(given).decode()
        identity = call.get("id")
        if not identity or identity in written:
            made = orjson.dumps((position, index, name, arguments))
            identity = f"call_{blake2b(made, digest_size=12).hexdigest()}"
        said = {"name": name, "arguments": arguments}
        written[identity] = {"id": identity, "type": "function", "function": said}
        names[identity] = name
    conversation.calls, conversation.waiting = names, names.copy()
    return [*written.values()]


def _odd_arguments(conversation: OllamaConversation, arguments: Any, where: str) -> str | Json:
    """Those that are no object."""
    if isinstance(arguments, str):
        conversation.notes.add("arguments_as_text", where, "they are an object in Ollama's API")
        return arguments
    if arguments is not None:
        raise BadRequest(
            f"Invalid type for '{where}': expected an object.", code="invalid_type", param=where
        )
    return {}


def _answered(conversation: OllamaConversation, message: Json) -> str:
    """The call a result is of: by id, else the next of its tool, else the next; empty: none."""
    waiting = conversation.waiting
    identity = message.get("tool_call_id")
    if identity not in conversation.calls:
        tool = message.get("tool_name") or message.get("name")
        likely = (one for one, name in waiting.items() if name == tool) if tool else iter(waiting)
        identity = next(likely, "")
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
