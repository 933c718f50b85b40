"""OpenAI's messages, as DeepSeek reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from adapters.compatible.messages import as_function
from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import Notes
from adapters.shared.beginnings import JsonArray, writer_of
from adapters.shared.fields import unsupported
from adapters.shared.history import GO_ON, text_of
from adapters.shared.result_images import ResultImages
from adapters.shared.unknown_members import UnknownMembers

_LOST = ("annotations", "audio", "reasoning_details", "thinking_blocks")
_GO_ON: Mapping[str, str] = {"role": "user", "content": GO_ON}


class Manner(NamedTuple):
    """How DeepSeek is spoken to."""

    vision: bool
    filler: str | None
    """For assistant messages without thoughts; None where it does not think."""
    continues: bool
    """It goes on with a last assistant message; else each of them wants an answer."""


@dataclass(slots=True)
class WrittenMessages:
    """Writes one request's messages; what DeepSeek has no word for is refused or noted."""

    manner: Manner
    images: ResultImages
    written: JsonArray = field(default_factory=JsonArray)
    unknown: UnknownMembers = field(default_factory=lambda: UnknownMembers(_LOST))
    notes: Notes = field(default_factory=Notes)
    position: int = 0

    def copy(self) -> WrittenMessages:
        images, written = self.images.copy(), self.written.copy()
        seen = self.unknown.copy(), self.notes.copy(), self.position
        return WrittenMessages(self.manner, images, written, *seen)

    def add(self, message: Json) -> None:
        self.unknown.add(message)
        for said in self.images.told(message):
            self._write(said)

    def _write(self, message: Json) -> None:
        if message["role"] == "assistant" and self._ends_on_assistant:
            # It stands there in later turns too: its cache stays valid.
            self.written.younger += () if self.manner.continues else ({**_GO_ON},)
        self.written.younger.append(self._told(message, f"messages[{self.position}]"))
        self.position += 1

    @property
    def _ends_on_assistant(self) -> bool:
        told = self.written.younger
        return bool(told) and told[-1]["role"] == "assistant"

    def end(self) -> WrittenMessages:
        """At its beta address it goes on with a last assistant message; elsewhere that is a 400."""
        for said in self.images.behind():
            self._write(said)
        if not self._ends_on_assistant:
            return self
        turns = self.written.younger
        if self.manner.continues:
            turns[-1] = {**turns[-1], "prefix": True}
        else:
            where = f"messages[{self.position - 1}]"
            self.notes.add("ending_added", where, f"'{GO_ON}' was put behind it")
            turns.append({**_GO_ON})
        return self

    def _told(self, message: Json, where: str) -> Json:
        role = message["role"]
        if role == "assistant":
            told = self._assistant(message, where)
        else:
            if role == "developer":
                role = "system"
            told = {
                "role": role,
                "content": self._content(message, where, self.manner.vision and role == "user"),
            }
            if role == "tool":
                told["tool_call_id"] = message["tool_call_id"]
        if message.get("name") and role != "tool":
            told["name"] = message["name"]
        return told

    def _assistant(self, message: Json, where: str) -> Json:
        told: Json = {"role": "assistant", "content": self._content(message, where, False)}
        if message.get("refusal"):
            self.notes.add("refusal_as_text", f"{where}.refusal", "a refusal was sent as text")
            told["content"] = told["content"] or message["refusal"]
        thought = message.get("reasoning_content") or message.get("reasoning") or self.manner.filler
        # Without the key every later turn of a tool loop is a 400; what it says is not checked.
        if thought is not None:
            told["reasoning_content"] = thought
        for name in _LOST:
            if message.get(name):
                self.notes.add("part_dropped", f"{where}.{name}", "DeepSeek has nothing like it")
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
            self.notes.add("parts_joined", f"{where}.content", "text parts became lines of one")
        return text_of(content)


def written_messages(said: Sequence[Json], manner: Manner, kept: bool) -> WrittenMessages:
    begin = partial(WrittenMessages, manner, ResultImages(manner.vision))
    return writer_of(said, begin, ("deepseek", manner), kept).end()


def _unread(kind: str, where: str, role: str) -> BadRequest:
    if kind == "image_url" and role == "user":
        text = (
            "This DeepSeek model reads no images. Describe the image in words, ask a model that "
            "reads images, or set 'vision = true' for this one in the config."
        )
    else:
        text = f"DeepSeek reads no '{kind}' in a {role} message. Send its content as text."
    return unsupported(where, text)
