"""A conversation in Ollama's words: content is text, images are bytes, arguments are objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from adapters.errors import BadRequest
from adapters.ollama.abilities import Abilities
from adapters.ollama.window import Pictures
from adapters.protocol import Json
from adapters.receipts import Code, Notes
from adapters.shared.beginnings import JsonArray, writer_of
from adapters.shared.fields import unsupported
from adapters.shared.history import speaker, spoken, text_of, wrapped_arguments
from adapters.shared.result_images import ResultImages
from adapters.shared.toolbox import alias
from adapters.shared.unknown_members import UnknownMembers

_LOST: Mapping[str, tuple[Code, str]] = {
    "refusal": ("refusal_as_text", "a refusal was sent as plain text"),
    "thinking_blocks": ("thinking_dropped", "signed thoughts mean nothing to this model"),
    "audio": ("audio_dropped", "a sound of the assistant is only a foreign id"),
}


@dataclass(slots=True)
class Turns:
    """A conversation as it is written, and what the turns so far say about the next ones."""

    abilities: Abilities
    images: ResultImages
    written: JsonArray = field(default_factory=JsonArray)
    pictures: Pictures = field(default_factory=Pictures)
    unknown: UnknownMembers = field(default_factory=UnknownMembers)
    notes: Notes = field(default_factory=Notes)
    names: dict[str, str] = field(default_factory=dict)
    """Id of a call → the name of its tool."""
    noted: set[Code] = field(default_factory=set)
    round: list[Json] = field(default_factory=list)
    """A turn and the results behind it: they go in the order of its calls."""
    position: int = 0
    """Of the first of these."""

    def copy(self) -> Turns:
        return Turns(
            self.abilities,
            self.images.copy(),
            self.written.copy(),
            self.pictures,
            self.unknown.copy(),
            self.notes.copy(),
            self.names.copy(),
            self.noted.copy(),
            self.round.copy(),
            self.position,
        )

    def note(self, code: Code, where: str, text: str) -> None:
        """The first of each kind: a long conversation does the same thing many times."""
        if code not in self.noted:
            self.noted.add(code)
            self.notes.add(code, where, text)

    def add(self, message: Json) -> None:
        self.unknown.add(message)
        for said in self.images.told(message):
            self._gather(said)

    def _gather(self, message: Json) -> None:
        if message["role"] != "tool":
            self._end_round()
        self.round.append(message)

    def _end_round(self) -> None:
        """Sort results as their calls: most templates show no id."""
        placed = [*enumerate(self.round, self.position)]
        if len(placed) > 2:
            calls = self.round[0].get("tool_calls") or ()
            ranks = {call["id"]: at for at, call in enumerate(calls, 1)}
            placed.sort(key=lambda one: ranks.get(one[1].get("tool_call_id", ""), 0))
        for position, message in placed:
            self._write(_message(self, message, f"messages[{position}]"))
        self.position += len(placed)
        self.round = []

    def _write(self, turn: Json) -> None:
        self.written.younger.append(turn)
        if images := turn.get("images"):
            self.pictures = self.pictures.more(images)

    def end(self) -> Turns:
        for said in self.images.behind():
            self._gather(said)
        self._end_round()
        return self


def written_turns(said: Sequence[Json], abilities: Abilities, kept: bool) -> Turns:
    begin = partial(Turns, abilities, ResultImages(abilities.vision is not False))
    return writer_of(said, begin, ("ollama", abilities), kept).end()


def _message(turns: Turns, message: Json, where: str) -> Json:
    role = message["role"]
    if role == "assistant":
        return _assistant(turns, message, where)
    if role == "tool":
        return _result(turns, message, where)
    if role == "user":
        return _user(turns, message, where)
    _lose_name(turns, message, where)
    return {"role": "system", "content": _text(turns, message.get("content"), where)}


def _lose_name(turns: Turns, message: Json, where: str) -> None:
    if message.get("name"):
        turns.note("name_dropped", f"{where}.name", "this turn has no place for a name")


def _text(turns: Turns, content: Any, where: str) -> str:
    if isinstance(content, list):
        if len(content) > 1:
            turns.note("parts_joined", where, "the parts of a text were joined with a line break")
        for position, part in enumerate(content):
            if part["type"] not in ("text", "refusal"):
                raise _no_place(part["type"], f"{where}.content[{position}]", "")
    return text_of(content)


def _user(turns: Turns, message: Json, where: str) -> Json:
    content = message.get("content")
    media: list[str] = []
    if isinstance(content, list):
        texts = [part for part in content if part["type"] == "text"]
        media = list(_media(turns, content, where))
        content = _text(turns, texts, where)
    content = content or ""
    if name := speaker(message):
        turns.note("name_in_text", f"{where}.name", "the name of a speaker is said in the text")
        content = spoken(name, content)
    elif message.get("name"):
        turns.note("name_dropped", f"{where}.name", "the name says no more than the role")
    written: Json = {"role": "user", "content": content}
    return {**written, "images": media} if media else written


def _media(turns: Turns, content: list[Json], where: str) -> Iterator[str]:
    """Images and sounds as base64: the server finds out by itself what the bytes are."""
    for position, part in enumerate(content):
        at, kind = f"{where}.content[{position}]", part["type"]
        if kind == "image_url" and turns.abilities.vision is not False:
            yield _image(turns, part["image_url"], at)
        elif kind == "input_audio" and turns.abilities.audio:
            yield part["input_audio"]["data"]
        elif kind != "text":
            raise _no_place(kind, at, ", or choose a model that has the capability for it")


def _image(turns: Turns, image: Json, at: str) -> str:
    url: str = image["url"]
    head, _, data = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        raise unsupported(
            f"{at}.image_url.url",
            f"The image in '{at}' is not in the request: this model's server takes the bytes of an "
            "image, not its address. Send it as 'data:image/png;base64,…'.",
        )
    if image.get("detail"):
        turns.note("detail_dropped", f"{at}.image_url.detail", "images are read in one resolution")
    return data


def _no_place(kind: str, at: str, instead: str) -> BadRequest:
    what = f"This model cannot take the part of type '{kind}' in '{at}'."
    return unsupported(at, f"{what} Leave it out, or send its content as text{instead}.")


def _assistant(turns: Turns, message: Json, where: str) -> Json:
    texts = (_text(turns, message.get("content"), where), message.get("refusal"))
    written: Json = {"role": "assistant", "content": "\n".join(filter(None, texts))}
    if thought := message.get("reasoning_content") or message.get("reasoning"):
        written["thinking"] = thought
    calls = message.get("tool_calls") or ()
    if calls:
        written["tool_calls"] = [
            _call(turns, call, position, f"{where}.tool_calls[{position}]")
            for position, call in enumerate(calls)
        ]
    _lose_name(turns, message, where)
    for name, (code, text) in _LOST.items():
        if message.get(name):
            turns.note(code, f"{where}.{name}", text)
    return written


def _call(turns: Turns, call: Json, position: int, where: str) -> Json:
    said = call[call.get("type", "function")]
    name = turns.names[call["id"]] = alias(said["name"])
    if "input" in said:
        arguments = orjson.dumps({"input": said["input"]}).decode()
    else:
        arguments = wrapped_arguments(said["arguments"], where, turns.note)
    function = {"index": position, "name": name, "arguments": orjson.Fragment(arguments)}
    return {"id": call["id"], "function": function}


def _result(turns: Turns, message: Json, where: str) -> Json:
    identity = message["tool_call_id"]
    # Renderers differ in which of the two they read.
    return {
        "role": "tool",
        "content": _text(turns, message.get("content"), where),
        "tool_name": turns.names.get(identity, ""),
        "tool_call_id": identity,
    }
