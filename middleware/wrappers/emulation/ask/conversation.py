"""A conversation with tools for a model that has no tool role: blocks and results as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from adapters.protocol import RESULT_OF, Json
from adapters.shared.calls import Calls
from adapters.shared.history import rounds, text_of
from adapters.shared.toolbox import Tool
from middleware.wrappers.emulation.ask.prompt import AFTER_RESULTS, block
from middleware.wrappers.emulation.formats.raw_call import Ready
from middleware.wrappers.emulation.formats.table import BY_OPENER, HARMONY
from middleware.wrappers.emulation.language import is_protocol
from middleware.wrappers.emulation.read.reader import Reader
from middleware.wrappers.emulation.read.rules import ReadRules

_OPENER = re.compile("|".join(map(re.escape, sorted((*BY_OPENER, *HARMONY), reverse=True))))
_SYSTEM = frozenset(("system", "developer"))
_MEMBERS_OF_CALLS = frozenset(("tool_calls", "function_call", "refusal"))


def has_calls(messages: Sequence[Json]) -> bool:
    return any(message["role"] == "tool" or message.get("tool_calls") for message in messages)


def rendered(
    messages: Sequence[Json], tools: Sequence[Tool], longest: int | None = None
) -> tuple[Json, ...]:
    """Every call and result as text; the roles still alternate."""
    names, twins = rounds(messages), _twins(messages)
    out: list[Json] = []
    results = _Results()
    for message in messages:
        if message["role"] == "tool":
            content = _shortened("\n".join(_texts(message.get("content"))), longest)
            identity = message["tool_call_id"]
            shown = identity if identity in twins else ""
            text = _result(names.get(identity, ""), shown, _guarded(content, tools))
            results.add(text, message)
            continue
        if results.texts:
            ended, results = results, _Results()
            if message["role"] == "user" and not ended.images:
                out.append(_before(ended.text(), message))
                continue
            out.append(ended.message())
        out.append(_called(message) if message.get("tool_calls") else message)
    if results.texts:
        out.append(results.message())
    return tuple(out)


@dataclass(slots=True)
class _Results:
    """Of one round."""

    texts: list[str] = field(default_factory=list)
    images: list[Json] = field(default_factory=list)
    """What server tools gave; each language has a place for them, or says that it has none."""
    table: str = ""

    def add(self, text: str, message: Json) -> None:
        self.texts.append(text)
        if RESULT_OF in message:
            self.images += (one for one in message["content"] if one["type"] == "image_url")
            self.table = message[RESULT_OF]

    def text(self) -> str:
        return "\n".join((*self.texts, AFTER_RESULTS))

    def message(self) -> Json:
        text = self.text()
        if not self.images:
            return {"role": "user", "content": text}
        parts = [{"type": "text", "text": text}, *self.images]
        return {"role": "user", "content": parts, RESULT_OF: self.table}


def instructed(messages: Sequence[Json], text: str) -> tuple[Json, ...]:
    """The instructions, behind the caller's own system text."""
    for position, message in enumerate(messages):
        if message["role"] in _SYSTEM:
            system = {**message, "content": _joined(message.get("content"), text)}
            return (*messages[:position], system, *messages[position + 1 :])
    return ({"role": "system", "content": text}, *messages)


def first_question(messages: Sequence[Json]) -> str:
    return next(
        (text_of(message.get("content")) for message in messages if message["role"] == "user"), ""
    )


def _joined(content: Any, text: str) -> Any:
    if isinstance(content, list):
        return [*content, {"type": "text", "text": text}]
    return f"{content}\n\n{text}" if content else text


def _called(message: Json) -> Json:
    texts = [text_of(message.get("content")).rstrip()]
    texts += [block(*_call(call)) for call in message["tool_calls"]]
    members = {key: value for key, value in message.items() if key not in _MEMBERS_OF_CALLS}
    return {**members, "content": "\n".join(filter(None, texts))}


def _call(call: Json) -> tuple[str, str]:
    function = call[call.get("type", "function")]
    if "input" in function and "arguments" not in function:
        return function["name"], orjson.dumps({"input": function["input"]}).decode()
    return function["name"], function.get("arguments") or "{}"


def _twins(messages: Sequence[Json]) -> frozenset[str]:
    """The calls whose tool's name alone does not tell which of the round they are."""
    twins = set[str]()
    for message in messages:
        calls = message.get("tool_calls") or ()
        names = [_call(call)[0] for call in calls]
        twins.update(call["id"] for call in calls if names.count(_call(call)[0]) > 1)
    return frozenset(twins)


def _result(name: str, identity: str, content: str) -> str:
    """A small model repeats an id that it is shown, so it is shown where it is needed."""
    call = f"CALL_ID: {identity}\n" if identity else ""
    return f"TOOL_RESULT\nTOOL_NAME: {name}\n{call}CONTENT:\n{content}\nEND_TOOL_RESULT"


def _shortened(content: str, longest: int | None) -> str:
    if longest is None or len(content) <= longest:
        return content
    return f"{content[:longest]}\n[cut: {len(content) - longest} more characters]"


def _texts(content: Any) -> Iterator[str]:
    if content is None or isinstance(content, str):
        yield content or ""
        return
    for part in content:
        kind = part.get("type", "text")
        yield part.get("text") or "" if kind in ("text", "refusal") else f"[{kind} omitted]"


def _guarded(text: str, tools: Sequence[Tool]) -> str:
    """A result cannot write a call for the model to copy: each mark of one gets a blank more.

    Lines of the protocol are set in. What opens calls of other formats is broken up where a whole
    call of one of the tools stands in the result; pages about formats stay as they are.
    """
    if _OPENER.search(text) and _would_call(text, tools):
        text = _OPENER.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", text)
    if "TOOL" not in text.upper() and "工具" not in text:
        return text
    return "\n".join(f" {line}" if is_protocol(line) else line for line in text.split("\n"))


def _would_call(text: str, tools: Sequence[Tool]) -> bool:
    """Would a model that repeats the text call a tool?"""
    reader = Reader(tools, Calls(""), ReadRules(bare=False, prose=False, hold=0, thoughts=False))
    for _ in (*reader.feed(text), *reader.close()):
        pass
    ready = (call for call in reader.judge.open if isinstance(call, Ready) or call.best)
    return bool(reader.judge.made) or any(ready)


def _before(text: str, message: Json) -> Json:
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [{"type": "text", "text": text}, *content]}
    return {**message, "content": f"{text}\n\n{content}" if content else text}
