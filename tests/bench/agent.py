"""What a coding agent sends: thirty tools with nested schemas, and a conversation that grows.

No two conversations share a word of their own, and a turn repeats all that was said before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

CONVERSATIONS = 32
TURNS = 20
"""Of each, in the mean: two messages a turn, 70 KB in all."""
_VERBS = ("read", "write", "search", "rename", "format", "compare")
_NOUNS = ("file", "folder", "branch", "symbol", "test")
_TEXT: Mapping[str, Any] = {"type": "string"}
_COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 0, "maximum": 100_000}


@lru_cache(maxsize=1)
def tools() -> Sequence[Mapping[str, Any]]:
    """Thirty, about 1 KB each."""
    return tuple(_tool(verb, noun) for verb in _VERBS for noun in _NOUNS)


def _tool(verb: str, noun: str) -> Mapping[str, Any]:
    place = _object(path=_TEXT, line=_COUNT, column=_COUNT)
    said = f"{verb.capitalize()}s one {noun} of the project that is open, and tells what came of it"
    function = {
        "name": f"{verb}_{noun}",
        "description": f"{said}. Nothing outside of the project is touched. Ask for one {noun} at "
        f"a time: what is not there is an error, and what is too long is cut at its end.",
        "parameters": _object(
            target={**_TEXT, "description": f"Where the {noun} is, from the project's root on"},
            span=_object(first=place, last=place),
            mode={"type": "string", "enum": ["exact", "words", "pattern"], "default": "exact"},
            filters={
                "type": "array",
                "maxItems": 8,
                "items": _object(field=_TEXT, value=_either()),
            },
            limit={**_COUNT, "description": "At most so many lines are told"},
        ),
    }
    return {"type": "function", "function": function}


def _object(**members: Any) -> Mapping[str, Any]:
    first = next(iter(members))
    return {"type": "object", "properties": members, "required": [first]}


def _either() -> Mapping[str, Any]:
    return {"anyOf": [_TEXT, {"type": "number"}, {"type": "array", "items": _TEXT}]}


def agent_body(script: str, conversation: str, turns: int) -> bytes:
    """A conversation after so many turns; what came before is as it was."""
    rules = "You change code with great care, and say in a sentence what was done. " * 30
    system = {"role": "system", "content": f"{rules}[{script}]"}
    task = {"role": "user", "content": f"Mend what fails in part {conversation}, and say why."}
    told = [said for turn in range(turns) for said in _turn(conversation, turn)]
    body = {
        "model": "bench",
        "max_tokens": 1024,
        "tools": tools(),
        "messages": [system, task, *told],
    }
    if script != "plain":
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return orjson.dumps(body)


def _turn(conversation: str, turn: int) -> Iterator[Mapping[str, Any]]:
    name = tools()[turn % len(tools())]["function"]["name"]
    asked = {"target": f"part/{conversation}/{turn}.py", "limit": 40, "mode": "words"}
    arguments = orjson.dumps(asked).decode()
    identity = f"call_{conversation}_{turn}"
    call = {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}
    yield {"role": "assistant", "content": None, "tool_calls": [call]}
    lines = (f"{line:4}  value_{conversation}_{turn} = compute({line})" for line in range(36))
    yield {"role": "tool", "tool_call_id": identity, "content": "\n".join(lines)}


def conversations(script: str) -> Sequence[bytes]:
    """Several at different turns, so that no body is soon repeated."""
    half = CONVERSATIONS // 2
    return [
        agent_body(script, f"c{number}", TURNS + (number - half) * TURNS // CONVERSATIONS)
        for number in range(CONVERSATIONS)
    ]
