"""A conversation in Ollama's words: content is text, images are bytes, arguments are objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import orjson

from adapters.errors import BadRequest
from adapters.ollama.abilities import Abilities
from adapters.protocol import ChatRequest, Json
from adapters.receipts import Code, Notes
from adapters.shared.fields import unsupported
from adapters.shared.history import speaker, spoken, text_of, wrapped_arguments
from adapters.shared.result_images import images_behind, without_images
from adapters.shared.toolbox import alias

_LOST: Mapping[str, tuple[Code, str]] = {
    "refusal": ("refusal_as_text", "a refusal was sent as plain text"),
    "thinking_blocks": ("thinking_dropped", "signed thoughts mean nothing to this model"),
    "audio": ("audio_dropped", "a sound of the assistant is only a foreign id"),
}


@dataclass(slots=True)
class _Turns:
    """What the turns so far say about the next ones, and what they lost."""

    abilities: Abilities
    notes: Notes
    names: dict[str, str] = field(default_factory=dict)
    """Id of a call → the name of its tool."""
    noted: set[Code] = field(default_factory=set)

    def note(self, code: Code, where: str, text: str) -> None:
        """The first of each kind: a long conversation does the same thing many times."""
        if code not in self.noted:
            self.noted.add(code)
            self.notes.add(code, where, text)


def messages(request: ChatRequest, abilities: Abilities, notes: Notes) -> list[Json]:
    turns = _Turns(abilities, notes)
    said: Sequence[Json] = request.messages
    sees = abilities.vision is not False
    said = images_behind(said) if sees else without_images(said, notes)
    return [
        _message(turns, message, f"messages[{position}]")
        for position, message in _in_call_order(said)
    ]


def _in_call_order(messages: Iterable[Json]) -> list[tuple[int, Json]]:
    """Number the turns, and sort results as their calls: most templates show no id."""
    keyed = []
    turn, ranks = 0, dict[str, int]()
    for position, message in enumerate(messages):
        rank = 0
        if message["role"] == "tool":
            rank = ranks.get(message["tool_call_id"], 0)
        else:
            calls = message.get("tool_calls") or ()
            turn, ranks = position, {call["id"]: at for at, call in enumerate(calls, 1)}
        keyed.append((turn, rank, position, message))
    return [(position, message) for *_, position, message in sorted(keyed, key=itemgetter(0, 1))]


def _message(turns: _Turns, message: Json, where: str) -> Json:
    role = message["role"]
    if role == "assistant":
        return _assistant(turns, message, where)
    if role == "tool":
        return _result(turns, message, where)
    if role == "user":
        return _user(turns, message, where)
    _lose_name(turns, message, where)
    return {"role": "system", "content": _text(turns, message.get("content"), where)}


def _lose_name(turns: _Turns, message: Json, where: str) -> None:
    if message.get("name"):
        turns.note("name_dropped", f"{where}.name", "this turn has no place for a name")


def _text(turns: _Turns, content: Any, where: str) -> str:
    if isinstance(content, list):
        if len(content) > 1:
            turns.note("parts_joined", where, "the parts of a text were joined with a line break")
        for position, part in enumerate(content):
            if part["type"] not in ("text", "refusal"):
                raise _no_place(part["type"], f"{where}.content[{position}]", "")
    return text_of(content)


def _user(turns: _Turns, message: Json, where: str) -> Json:
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


def _media(turns: _Turns, content: list[Json], where: str) -> Iterator[str]:
    """Images and sounds as base64: the server finds out by itself what the bytes are."""
    for position, part in enumerate(content):
        at, kind = f"{where}.content[{position}]", part["type"]
        if kind == "image_url" and turns.abilities.vision is not False:
            yield _image(turns, part["image_url"], at)
        elif kind == "input_audio" and turns.abilities.audio:
            yield part["input_audio"]["data"]
        elif kind != "text":
            raise _no_place(kind, at, ", or choose a model that has the capability for it")


def _image(turns: _Turns, image: Json, at: str) -> str:
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


def _assistant(turns: _Turns, message: Json, where: str) -> Json:
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


def _call(turns: _Turns, call: Json, position: int, where: str) -> Json:
    said = call[call.get("type", "function")]
    name = turns.names[call["id"]] = alias(said["name"])
    if "input" in said:
        arguments = orjson.dumps({"input": said["input"]}).decode()
    else:
        arguments = wrapped_arguments(said["arguments"], where, turns.note)
    function = {"index": position, "name": name, "arguments": orjson.Fragment(arguments)}
    return {"id": call["id"], "function": function}


def _result(turns: _Turns, message: Json, where: str) -> Json:
    identity = message["tool_call_id"]
    # Renderers differ in which of the two they read.
    return {
        "role": "tool",
        "content": _text(turns, message.get("content"), where),
        "tool_name": turns.names.get(identity, ""),
        "tool_call_id": identity,
    }
