"""OpenAI's messages, as far as a server understands them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import orjson

from adapters.compatible.dialect import Dialect
from adapters.protocol import Json
from adapters.receipts import Notes
from adapters.shared.beginnings import JsonArray, writer_of
from adapters.shared.result_images import ResultImages
from adapters.shared.toolbox import alias

# The names under which a cooperative client echoes an upstream's thoughts.
_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")


@dataclass(slots=True)
class Messages:
    """A conversation, as it is written."""

    spoken: Dialect
    images: ResultImages
    written: JsonArray = field(default_factory=JsonArray)
    notes: Notes = field(default_factory=Notes)
    position: int = 0

    def copy(self) -> Messages:
        images, written = self.images.copy(), self.written.copy()
        return Messages(self.spoken, images, written, self.notes.copy(), self.position)

    def add(self, message: Json) -> None:
        for said in self.images.told(message):
            self._write(said)

    def _write(self, message: Json) -> None:
        if message["role"] == "assistant":
            told = self._assistant(message)
        else:
            told = _other(message, self.spoken)
        self.written.younger.append(told)
        self.position += 1

    def _assistant(self, message: Json) -> Json:
        told = {name: value for name, value in message.items() if value is not None}
        if not self.spoken.reasoning_echo:
            self._drop_thoughts(told)
        calls = told.pop("tool_calls", None)
        if calls:
            write_call = renamed if self.spoken.custom_tools else as_function
            told["tool_calls"] = [write_call(call) for call in calls]
        # Null is for messages that say something else; and never left out, for strict servers.
        says_else = told.keys() & {"tool_calls", "refusal", "audio"}
        told.setdefault("content", None if says_else else "")
        return told

    def _drop_thoughts(self, told: Json) -> None:
        for name in _THOUGHTS:
            if told.pop(name, None):
                where = f"messages[{self.position}].{name}"
                self.notes.add("reasoning_dropped", where, "it takes no thoughts back")

    def end(self) -> Messages:
        for said in self.images.behind():
            self._write(said)
        return self


def written_messages(said: Sequence[Json], spoken: Dialect, kept: bool) -> Messages:
    begin = partial(Messages, spoken, ResultImages(spoken.vision is not False))
    return writer_of(said, begin, ("compatible", spoken), kept).end()


def _other(message: Json, spoken: Dialect) -> Json:
    if message["role"] == "developer" and not spoken.developer_role:
        return {**message, "role": "system"}
    if "is_error" in message:  # ours; what went wrong stands in the content
        return {name: message[name] for name in message if name != "is_error"}
    return message


def renamed(named: Json) -> Json:
    """A tool, choice or call under the name the upstream knows it by."""
    kind = named.get("type", "function")
    name = named[kind]["name"]
    known = alias(name)
    return named if known == name else {**named, kind: {**named[kind], "name": known}}


def as_function(call: Json) -> Json:
    """A call of the history as a function call, under the name the upstream knows."""
    if call.get("type") == "custom":
        said = call["custom"]
        arguments = orjson.dumps({"input": said["input"]}).decode()
    else:
        said = call["function"]
        arguments = said["arguments"]
    function = {"name": alias(said["name"]), "arguments": arguments}
    return {"id": call["id"], "type": "function", "function": function}
