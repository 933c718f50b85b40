"""OpenAI's answers, whole or in chunks, as events: for every server that speaks chat completions.

Read for what servers mean, not only for what the specification says: each `if` below is a server
that was seen to do it. What no server may do is end a stream without its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import orjson

from adapters.compatible.likeness import likeness
from adapters.compatible.parts import events_of, joined
from adapters.compatible.reasons import FAILED, FINISH, error_in, failure
from adapters.compatible.state import Slot, State
from adapters.protocol import (
    Aside,
    CallKind,
    Event,
    Finish,
    FinishReason,
    Json,
    Noted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from adapters.receipts import Note, Receipt
from adapters.shared.usage import usage_of
from adapters.wire.exchange import few, quoted
from adapters.wire.json_text import load

_DONE = b"[DONE]"
_NOTHING: tuple[object, ...] = (None, "", [])
_SOLE: Mapping[str, Callable[[str], Event]] = {
    "content": TextDelta,
    "reasoning_content": ReasoningDelta,
    "reasoning": ReasoningDelta,
}


def decode(frame: bytes, state: State) -> Iterable[Event]:
    if frame.startswith(_DONE):
        return _done(state)
    said = decode_chunk(load(frame), state)
    # What was read may have changed what others mean.
    state.alike = likeness(frame, said, state) if state.guesses else None
    return said


def decode_chunk(chunk: Any, state: State) -> Iterable[Event]:
    if type(chunk) is not dict:
        raise state.unreadable(f"sent {type(chunk).__name__} where a chunk belongs")
    if not state.model:
        _identify(chunk, state)
    choices = chunk.get("choices")
    # Nearly every chunk is one short delta: no generator is made for those.
    if choices and len(choices) == 1 and not chunk.get("usage"):
        return _choice(choices[0], chunk, state)
    return _choices(choices, chunk, state)


def _choices(choices: list[Json] | None, chunk: Json, state: State) -> Iterator[Event]:
    if not choices:
        _require_no_error(chunk, state)
        _require_chunk(chunk, state)
    for choice in few(choices) or ():
        yield from _choice(choice, chunk, state)
    # With the reason, after it, or on every chunk: the last one is the whole. Beside a choice it
    # is no end: some servers give reason and usage with every piece.
    if usage := state.optional(chunk, "usage", dict):
        state.usage = usage
        if state.ending and not choices:
            yield from close(state)


def _choice(choice: Json, chunk: Json, state: State) -> Iterable[Event]:
    index = choice.get("index")
    if index and type(index) is int and index > 0:
        state.further = True
        return ()
    # A server that ignores `stream` may still send its one answer as an event.
    delta = choice.get("delta", choice.get("message")) or {}
    if len(delta) == 1 and not choice.get("logprobs") and not choice.get("finish_reason"):
        text, pieces = delta.get("content"), delta.get("tool_calls")
        if text and type(text) is str:
            return (TextDelta(text),)
        if pieces and len(pieces) == 1:
            return _piece(pieces[0], state)
    return _padded(delta, choice, chunk, state)


def _padded(delta: Json, choice: Json, chunk: Json, state: State) -> Iterable[Event]:
    rare = choice.get("finish_reason") or choice.get("logprobs") or state.logprobs
    told = None if rare or "error" in chunk else _sole(delta, state)
    return _delta(delta, choice, chunk, state) if told is None else told


def _sole(delta: Json, state: State) -> Iterable[Event] | None:
    """What a delta says that has one thing to say; servers fill it up with null and empty text."""
    said = {name: value for name, value in delta.items() if value not in _NOTHING}
    said.pop("role", None)
    if len(said) != 1:
        return None
    ((name, value),) = said.items()
    if type(value) is str:
        kind = _SOLE.get(name)
        return (kind(value),) if kind else None
    alone = name == "tool_calls" and type(value) is list and len(value) == 1
    return _piece(value[0], state) if alone else None


def _delta(delta: Json, choice: Json, chunk: Json, state: State) -> Iterator[Event]:
    yield from _say(delta, choice, state)
    if delta.get("tool_calls"):
        for piece in _placed(few(delta["tool_calls"]), state):
            yield from _piece(piece, state)
    if delta.get("function_call"):
        yield from _piece({"index": 0, "function": delta["function_call"]}, state)
    reason = choice.get("finish_reason")
    if reason and reason != "null":  # DashScope writes that there is none
        _end(quoted(reason), choice, chunk, state)
    elif "error" in chunk:
        _require_no_error(chunk, state)


def _done(state: State) -> Iterator[Event]:
    # OpenRouter has sent whole answers whose reason was null to the end; their usage, which only
    # a finished answer has, is the proof. `[DONE]` alone is not: proxies write it after a cut.
    if not state.ending and state.usage:
        state.ending = True
    yield from close(state)


def close(state: State) -> Iterator[Event]:
    if not state.ending:
        raise state.cut("a finish_reason")
    yield from state.calls.close()  # a call may come behind the reason
    reason, notes = _read_reason(state)
    usage, more = usage_of(state.usage)
    if notes + more:
        yield Noted(notes + more)
    yield Finish(reason, usage, state.native, stop=state.stop)


def decode_answer(body: Any, state: State) -> Iterator[Event]:
    if not isinstance(body, dict):
        raise state.unreadable(f"sent {type(body).__name__} where a completion belongs")
    _identify(body, state)
    choices = body.get("choices") or [{}]
    state.further = len(choices) > 1
    choice, message = choices[0], choices[0].get("message")
    if not isinstance(message, dict):
        _require_no_error(body, state)
        raise state.unreadable("sent a completion without a message in 'choices'")
    yield from _say(message, choice, state)
    yield from _whole_calls(message, state)
    state.usage = state.optional(body, "usage", dict)
    # A whole answer is complete without a reason; only a stream needs it as proof.
    _end(quoted(choice.get("finish_reason")), choice, body, state)
    yield from close(state)


def _whole_calls(message: Json, state: State) -> Iterator[Event]:
    calls = list(few(message.get("tool_calls")) or ())
    if message.get("function_call"):
        calls.append({"function": message["function_call"]})
    for position, call in enumerate(calls):
        kind, said = _told(call)
        slot = Slot(position, call.get("id") or "", early=[_argument_text(said)])
        state.slots[position] = slot
        if said.get("name"):
            yield from _start(slot, said["name"], kind, state)


def _identify(said: Json, state: State) -> None:
    state.model = said.get("model") or ""
    state.fingerprint = said.get("system_fingerprint")
    state.tier = said.get("service_tier")


def _say(said: Json, choice: Json, state: State) -> Iterator[Event]:
    """Everything of a delta or message but its calls."""
    if thought := _thought(said, state):
        yield ReasoningDelta(thought)
    state.logprobs += state.entries(state.optional(choice, "logprobs", dict) or {}, "content")
    yield from _text(said.get("content"), state)
    if refusal := state.optional(said, "refusal", str):
        yield RefusalDelta(refusal)
    for name in ("annotations", "images"):
        if aside := state.entries(said, name):
            yield Aside(name, aside)
    if audio := state.optional(said, "audio", dict):
        yield Aside("audio", audio)


def _thought(said: Json, state: State) -> str:
    # Servers that send both fields send the same thought twice; MiniMax has its thoughts in the
    # details alone, where others have what they say elsewhere too, or in cipher.
    thought = state.optional(said, "reasoning_content", str)
    thought = thought or state.optional(said, "reasoning", str)
    return thought or joined(state.entries(said, "reasoning_details"))


def _text(text: Any, state: State) -> Iterator[Event]:
    if isinstance(text, list):
        yield from events_of(text)
    elif text is not None and text != "":
        # Cloudflare's JSON mode answers with the value itself, its streams with bare numbers.
        text = text if type(text) is str else orjson.dumps(text).decode()
        yield TextDelta(text, tuple(state.logprobs))
        state.logprobs = []


def _placed(pieces: Sequence[Json], state: State) -> Sequence[Json]:
    """Several pieces without a mark of their own belong to the calls begun last, in their order."""
    if len(pieces) < 2 or len(state.slots) < len(pieces) or any(map(_is_marked, pieces)):
        return pieces
    places = [*islice(reversed(state.slots), len(pieces))][::-1]
    return [{**piece, "index": place} for piece, place in zip(pieces, places, strict=True)]


def _is_marked(piece: Json) -> bool:
    name = _told(piece)[1].get("name")
    return piece.get("index") is not None or bool(piece.get("id") or name)


def _piece(piece: Json, state: State) -> Iterable[Event]:
    """A piece of a streamed call."""
    kind, said = _told(piece)
    slot, arguments = _slot(piece, said, state), _argument_text(said)
    if slot.started:
        return state.calls.delta(slot.key, arguments)
    slot.identity = slot.identity or piece.get("id") or ""
    slot.early.append(arguments)
    return _start(slot, said["name"], kind, state) if said.get("name") else ()


def _start(slot: Slot, name: str, kind: CallKind, state: State) -> Iterator[Event]:
    slot.started = True
    yield from state.calls.start(slot.key, slot.identity, name, kind)
    yield from state.calls.delta(slot.key, "".join(slot.early))


def _told(call: Json) -> tuple[CallKind, Json]:
    custom = call.get("custom")
    if isinstance(custom, dict) and not call.get("function"):
        return "custom", custom
    return "function", call.get("function") or {}


def _argument_text(said: Json) -> str:
    """Some servers send an object where the text of one belongs, or null."""
    arguments = said.get("arguments") or said.get("input") or ""
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()


def _slot(piece: Json, said: Json, state: State) -> Slot:
    """Find the call a piece belongs to: by index, else by id, else the last one."""
    place, identity = piece.get("index"), piece.get("id")
    identity = identity if isinstance(identity, str) else ""
    if type(place) not in (int, str):
        place = identity or (f"unnamed {state.count}" if said.get("name") else state.last)
    slot = state.slots.get(place)
    if slot is None or (said.get("name") and _is_another(slot, identity, said, state)):
        slot = state.slots[place] = Slot(state.count, identity)
        state.count += 1
    state.last = place
    return slot


def _is_another(slot: Slot, identity: str, said: Json, state: State) -> bool:
    # Gemini's and older Ollama's compatible endpoints give every call index 0 and an id of its own.
    if identity and slot.identity:
        return identity != slot.identity
    # Without ids, what comes behind a whole object cannot be the same call's.
    return slot.started and bool(_argument_text(said).strip()) and state.calls.is_whole(slot.key)


def _end(native: str, choice: Json, whole: Json, state: State) -> None:
    """The reason was given; where it comes with every piece, the last one counts."""
    error = choice.get("error") or whole.get("error")
    if native in FAILED or error:
        error = error or f"the answer ended with '{native}'"
        raise failure(error, FAILED.get(native, 500), state.upstream, state.secrets)
    state.native, state.ending = native, True
    said = choice.get("stop_reason")  # vLLM: the string, or the number of a token
    state.stop = said if isinstance(said, str) and said else None
    state.usage = state.usage or state.optional(choice, "usage", dict)  # Moonshot
    state.cited |= bool(whole.get("citations") or whole.get("search_results"))  # Perplexity


def _read_reason(state: State) -> tuple[FinishReason, Receipt]:
    native, made_calls = state.native, bool(state.calls)
    reason = FINISH.get(native.lower())
    unknown = f"'{native}' was taken for 'stop'" if native else "none was given; taken for 'stop'"
    without = reason == "tool_calls" and not made_calls
    nameless = any(not slot.started for slot in state.slots.values())
    possible = (
        (reason is None, Note("finish_unknown", "finish_reason", unknown)),
        (without, Note("finish_without_calls", "finish_reason", f"'{native}' without a call")),
        (nameless, Note("call_without_name", "tool_calls", "a call without a name was left out")),
        (state.further, Note("choices_dropped", "choices", "only the first choice is passed on")),
        (state.cited, Note("citations_dropped", "citations", "chat completions have no such list")),
        (bool(state.logprobs), Note("logprobs_dropped", "logprobs", "of tokens that are not text")),
    )
    notes = tuple(note for applies, note in possible if applies)
    if reason in ("length", "content_filter"):
        return reason, notes
    # Servers that end every answer with "stop" mean the calls too.
    return "tool_calls" if made_calls else "stop", notes


def _require_chunk(said: Json, state: State) -> None:
    """Usage may come without choices; a whole completion without them is a lost answer."""
    if "choices" not in said and said.get("object") == "chat.completion":
        raise state.unreadable("sent a completion without 'choices'")


def _require_no_error(said: Json, state: State) -> None:
    error = error_in(said)
    if error:
        raise failure(error, 500, state.upstream, state.secrets)
