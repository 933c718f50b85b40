"""Lines of Ollama's `/api/chat` as events; `done: true` is the only proof of an end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from adapters.errors import UpstreamError, from_words, words_of
from adapters.protocol import (
    Event,
    Finish,
    FinishReason,
    Json,
    Noted,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from adapters.receipts import Note
from adapters.shared.history import is_json_object
from adapters.shared.schema import mismatch
from adapters.shared.schema.mismatch import MOST_STEPS
from adapters.shared.schema.walk import StepBudget
from adapters.shared.think_tags import Splitter
from adapters.shared.usage import figure
from adapters.wire.exchange import AnswerState, few, quoted, require_text, text_in
from adapters.wire.json_text import exact, load

# There is no reason for calls: they end with `stop`, except at servers that only speak like
# Ollama. `load` and `unload` answer empty requests.
FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "stop",
    "length": "length",
    "load": "stop",
    "unload": "stop",
}
# What an error inside a stream means: its status went out with the first line.
_ERROR_WORDS: tuple[tuple[str, int], ...] = (
    ("does not support", 400),
    ("context length", 400),
    ("invalid", 400),
    ("unauthorized", 401),
    ("not found", 404),
    ("usage limit", 429),
    ("rate limit", 429),
    ("server busy", 503),
    ("overloaded", 503),
)
_CALL_BEGINS = '{"name":"%s","arguments":'
_CALL = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\]+)"\s*,\s*"arguments"\s*:\s*', re.DOTALL)
_LONGEST_BEGINNING = 200
_NEARLY_FULL = 0.95


@dataclass(slots=True)
class State(AnswerState):
    count: int = 0
    """Calls so far; the server's own index is 0 for every call in some versions."""
    schemas: Mapping[str, Any] = field(default_factory=dict)
    """Upstream's name of each tool offered → its parameters."""
    checks: StepBudget = field(default_factory=lambda: StepBudget(MOST_STEPS))
    """What all calls of an answer may cost to be checked."""
    shaped: bool = False
    """A grammar lets a call come as text: `{"name": …, "arguments": …}`."""
    must_call: bool = False
    held: str = ""
    """Text that may be such a call."""
    thought: Splitter | None = None
    """For a model that thinks inside its text."""
    logprobs: list[Json] = field(default_factory=list)
    """Of tokens that made no text yet."""
    window: int | None = None
    """Tokens of context that were asked for."""
    quick: bool = False
    """Text is passed on as it comes: the model was heard, and nothing is to be held back."""


def decode(frame: bytes, state: State) -> Iterable[Event]:
    line = load(frame)
    # Nearly every line is a piece of text and nothing else.
    if state.quick and type(line) is dict and len(line) == 4 and line.get("done") is False:
        message = line.get("message")
        if type(message) is dict and len(message) == 2:
            text = message.get("content")
            if text and type(text) is str:
                return (TextDelta(text),)
    state.raw = frame
    return _decode_line(line, state)


def close(state: State) -> Iterable[Event]:
    raise state.cut("'done'")


def decode_answer(body: Any, state: State) -> Iterator[Event]:
    """Read one plain answer: the same object as a line, with everything in it."""
    yield from _decode_line(body, state)
    if "done" not in body:
        yield from _end(body, state)


def _decode_line(line: Any, state: State) -> Iterator[Event]:
    if type(line) is not dict:
        raise state.unreadable(f"sent {type(line).__name__} where an object belongs")
    if line.get("error"):
        raise _failure(line, state)
    message = line.get("message")
    if type(message) is dict:
        state.model = state.model or text_in(line, "model") or "unnamed"
        yield from _say(message, line, state)
        state.quick = not state.shaped and state.thought is None
    elif message is not None or not state.model:
        raise state.unreadable("sent an object without a message")
    if line.get("done"):
        yield from _end(line, state)


def _say(message: Json, line: Json, state: State) -> Iterator[Event]:
    state.logprobs += map(_logprob, state.entries(line, "logprobs"))
    if thought := state.optional(message, "thinking", str):
        state.logprobs = []  # OpenAI has no place for those of a thought
        yield ReasoningDelta(thought)
    if text := message.get("content"):
        yield from _text(require_text(text), state)
    if calls := few(message.get("tool_calls")):
        yield from _release(state)
        precise = exact(state.raw)
        same = precise["message"]["tool_calls"] if precise else calls
        for call, written in zip(calls, same, strict=True):
            yield from _call(call, written, state)


def _text(text: str, state: State) -> Iterator[Event]:
    if state.thought is not None:
        yield from state.thought.feed(text)
    elif state.shaped:
        yield from _shaped_text(text, state)
    else:
        yield TextDelta(text, tuple(state.logprobs))
        state.logprobs = []


def _shaped_text(text: str, state: State) -> Iterator[Event]:
    """Hold back what may be a call; anything else leaves as soon as it cannot be one."""
    decided = len(state.held) >= _LONGEST_BEGINNING
    state.held += text
    if decided:
        return
    begun = "".join(state.held[:_LONGEST_BEGINNING].split())
    calls = (_CALL_BEGINS % "".join(name.split()) for name in state.schemas)
    if not any(one.startswith(begun) or begun.startswith(one) for one in calls):
        yield from _release(state)
        state.shaped = False


def _release(state: State) -> Iterator[Event]:
    if state.held:
        yield TextDelta(state.held, tuple(state.logprobs))
        state.held, state.logprobs = "", []


def _call(call: Any, precise: Any, state: State) -> Iterator[Event]:
    """One call; `precise` is the same with its numbers as they were written."""
    said: Any = call.get("function") if isinstance(call, dict) else None
    name = text_in(said, "name")
    if not name:
        raise state.unreadable("sent a tool call without a name")
    arguments = said.get("arguments")
    if not isinstance(arguments, str):
        yield from _checked(name, arguments or {}, state)
        arguments = _dumped(precise["function"].get("arguments") or {}, state)
    yield from _whole(text_in(call, "id"), name, arguments, state)


def _whole(identity: str, name: str, arguments: str, state: State) -> Iterator[Event]:
    state.count += 1
    yield from state.calls.whole(state.count, identity, name, arguments)


def _checked(name: str, arguments: Any, state: State) -> Iterator[Event]:
    if state.count and not state.calls.parallel:
        return  # this call is left out
    schema = state.schemas.get(name)
    if schema is None:
        if state.schemas:
            yield Noted((Note("tool_unknown", "tool_calls", f"'{name}' was not offered"),))
        return
    if fault := mismatch(arguments, schema, state.checks):
        yield Noted((Note("arguments_mismatch", "tool_calls", f"{name}: {fault}"),))


def _dumped(arguments: Any, state: State) -> str:
    try:
        return orjson.dumps(arguments).decode()
    except orjson.JSONEncodeError as error:
        raise state.unreadable("sent arguments that are nested too deeply") from error


def _logprob(said: Any) -> Json:
    said = said if isinstance(said, dict) else {}
    token = text_in(said, "token")
    top = said.get("top_logprobs")
    return {
        "token": token,
        "logprob": said.get("logprob"),
        "bytes": said.get("bytes") or list(token.encode()),
        "top_logprobs": [
            {name: value for name, value in _logprob(one).items() if name != "top_logprobs"}
            for one in (top if isinstance(top, list) else ())
        ],
    }


# The end ---------------------------------------------------------------------------------------


def _end(line: Json, state: State) -> Iterator[Event]:
    native = quoted(line.get("done_reason"))
    if state.thought is not None:
        yield from state.thought.close()
    if state.held:
        yield from _shaped_call(state, cut=native == "length")
    yield from state.calls.close()
    usage, notes = _usage(line, state.window)
    notes += _afterthoughts(native, state)
    if notes:
        yield Noted(tuple(notes))
    reason = FINISH.get(native, "stop")
    yield Finish("tool_calls" if reason == "stop" and state.calls else reason, usage, native)


def _afterthoughts(native: str, state: State) -> Iterator[Note]:
    if native and native not in FINISH:
        yield Note("finish_unknown", "finish_reason", f"'{native}' was taken for 'stop'")
    if state.must_call and not state.calls:
        text = "the model made no call, whatever it was held to"
        yield Note("tool_choice_not_enforced", "tool_choice", text)
    if state.logprobs:
        yield Note("logprobs_dropped", "logprobs", "of tokens that are not text")


def _shaped_call(state: State, cut: bool) -> Iterator[Event]:
    """Make a call of the text a grammar shaped; one that was cut stays as far as it came."""
    begins = _CALL.match(state.held)
    name = begins[1] if begins else ""
    arguments = _arguments(state.held, begins.end() if begins else 0, cut)
    if arguments is None or name not in state.schemas:
        yield from _release(state)
        return
    state.held, state.logprobs = "", []
    if is_json_object(arguments):
        yield from _checked(name, orjson.loads(arguments), state)
    yield from _whole("", name, arguments, state)


def _arguments(held: str, start: int, cut: bool) -> str | None:
    """Take the text itself, so that numbers keep their digits; None if it is something else."""
    rest = held[start:].rstrip()
    inner = rest.removesuffix("}").rstrip()
    if is_json_object(held) and is_json_object(inner):
        return inner
    return rest if cut and not is_json_object(held) else None


def _usage(line: Json, window: int | None) -> tuple[Usage, list[Note]]:
    """Zeros are left out by the server, so an absent figure is not known for sure."""
    notes = []
    figures = []
    for name in ("prompt_eval_count", "eval_count"):
        count = figure(line.get(name))
        if count is None:
            notes.append(Note("usage_estimated", "usage", f"{name} was not given: counted as 0"))
        figures.append(count or 0)
    prompt, completion = figures
    if window and (prompt >= window * _NEARLY_FULL or prompt + completion >= window):
        text = f"{prompt} + {completion} tokens fill a context of {window}: the oldest may be lost"
        notes.append(Note("context_may_be_truncated", "messages", text))
    return Usage(prompt, completion), notes


def _failure(line: Json, state: State) -> UpstreamError:
    said = words_of(orjson.dumps(line))
    status = line.get("status_code") or line.get("status")
    if type(status) is not int or not 400 <= status < 600:
        low = said.lower()
        status = next((status for part, status in _ERROR_WORDS if part in low), 500)
    return from_words(status, said, state.upstream, state.secrets, within=True)
