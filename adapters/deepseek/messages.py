"""OpenAI's messages, as DeepSeek reads them."""

from __future__ import annotations

from typing import NamedTuple

from adapters.compatible import as_function
from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.shared.fields import Fields, unsupported
from adapters.shared.history import text_of

LOST = ("annotations", "audio", "reasoning_details", "thinking_blocks")


class Writer(NamedTuple):
    """Writes one request's messages; what DeepSeek has no word for is refused or noted."""

    vision: bool
    filler: str | None
    """For assistant messages without thoughts; None where it does not think."""
    fields: Fields

    def message(self, position: int, message: Json) -> Json:
        where, role = f"messages[{position}]", message["role"]
        if role == "assistant":
            told = self._assistant(message, where)
        else:
            if role == "developer":
                role = "system"
            told = {
                "role": role,
                "content": self._content(message, where, self.vision and role == "user"),
            }
            if role == "tool":
                told["tool_call_id"] = message["tool_call_id"]
        if message.get("name") and role != "tool":
            told["name"] = message["name"]
        return told

    def _assistant(self, message: Json, where: str) -> Json:
        told: Json = {"role": "assistant", "content": self._content(message, where, False)}
        if message.get("refusal"):
            self.fields.note("refusal_as_text", f"{where}.refusal", "a refusal was sent as text")
            told["content"] = told["content"] or message["refusal"]
        thought = message.get("reasoning_content") or message.get("reasoning") or self.filler
        # Without the key every later turn of a tool loop is a 400; what it says is not checked.
        if thought is not None:
            told["reasoning_content"] = thought
        for name in LOST:
            if message.get(name):
                self.fields.note("part_dropped", f"{where}.{name}", "DeepSeek has nothing like it")
        if message.get("tool_calls"):
            told["tool_calls"] = [as_function(call) for call in message["tool_calls"]]
        return told

    def _content(self, message: Json, where: str, images: bool) -> str | list[Json]:
        content = message.get("content")
        if content is None or isinstance(content, str):
            return content or ""
        known = {"text", "refusal", "image_url"} if images else {"text", "refusal"}
        for position, part in enumerate(content):
            if part["type"] not in known:
                raise _unread(part["type"], f"{where}.content[{position}]", message["role"])
        if any(part["type"] == "image_url" for part in content):
            return [{"type": part["type"], part["type"]: part[part["type"]]} for part in content]
        if len(content) > 1:
            self.fields.note("parts_joined", f"{where}.content", "text parts became lines of one")
        return text_of(content)


def _unread(kind: str, where: str, role: str) -> BadRequest:
    if kind == "image_url" and role == "user":
        text = (
            "This DeepSeek model reads no images. Describe the image in words, ask a model that "
            "reads images, or set 'vision = true' for this one in the config."
        )
    else:
        text = f"DeepSeek reads no '{kind}' in a {role} message. Send its content as text."
    return unsupported(where, text)
