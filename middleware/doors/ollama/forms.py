"""How the answers of each address say what is said; what comes without a model asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache

import orjson

from adapters.protocol import Json, value_class

DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
_LATEST = ":latest"


@value_class
class LineForm:
    """Of one address."""

    said: Callable[[str, str, Sequence[Json]], Json]
    """Text, thought and calls → members of a line."""
    text: tuple[bytes, bytes]
    """What stands before and behind a text."""
    thought: tuple[bytes, bytes]


def _message(text: str, thought: str, calls: Sequence[Json]) -> Json:
    message: Json = {"role": "assistant", "content": text}
    if thought:
        message["thinking"] = thought
    if calls:
        message["tool_calls"] = calls
    return {"message": message}


def _response(text: str, thought: str, _: Sequence[Json]) -> Json:
    return {"response": text} | ({"thinking": thought} if thought else {})


CHAT_LINES = LineForm(
    _message,
    (b'"message":{"role":"assistant","content":', b'},"done":false}\n'),
    (b'"message":{"role":"assistant","content":"","thinking":', b'},"done":false}\n'),
)
GENERATE_LINES = LineForm(
    _response,
    (b'"response":', b',"done":false}\n'),
    (b'"response":"","thinking":', b',"done":false}\n'),
)


def timestamp(now: float) -> str:
    """With nanoseconds, as Go writes it."""
    whole = int(now)
    return f"{second(whole)}.{int((now - whole) * 1e9):09d}Z"


@lru_cache(maxsize=4)
def second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


def loaded(form: LineForm, model: str, unloads: bool, now: float) -> bytes:
    """The answer to a request that asks nothing: there is nothing to load."""
    line = {"model": model, "created_at": timestamp(now), **form.said("", "", ())}
    line |= {"done": True, "done_reason": "unload" if unloads else "load"}
    return orjson.dumps(line | dict.fromkeys(DURATIONS, 1))


def bare(name: str) -> str:
    """A model's name without the tag that means none."""
    return name.removesuffix(_LATEST) or name
