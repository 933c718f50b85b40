"""Claude's answers, streamed or whole, as events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from adapters.calls import Calls
from adapters.claude.messages import THOUGHTS
from adapters.errors import Truncated, UpstreamError, from_words
from adapters.exchange import Heard
from adapters.history import is_json_object
from adapters.http import load
from adapters.protocol import (
    Aside,
    Event,
    Finish,
    FinishReason,
    Json,
    Note,
    Noted,
    ReasoningDelta,
    Receipt,
    RefusalDelta,
    TextDelta,
    Usage,
)

FINISH: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "content_filter",
}
# An error inside a stream has no status of its own; its type stands for one.
STATUS: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_TIERS: Mapping[str, str] = {"standard": "default", "priority": "priority"}
_RETRY_AFTER_OVERLOAD = "5"
_SAYABLE = frozenset({"text", "tool_use"})


@dataclass(slots=True)
class State(Heard):
    upstream: str = "upstream"
    secrets: tuple[str, ...] = ()
    calls: Calls = field(default_factory=lambda: Calls("req_local"))
    blocks: list[Json] = field(default_factory=list)
    """Claude's own content so far, in order."""
    block: Json = field(default_factory=dict)
    """The block that is open; {} between blocks."""
    pieces: list[str] = field(default_factory=list)
    """What its deltas said."""
    position: int = 0
    """Blocks begun: calls are told apart by it, since indexes may start again."""
    usage: Json = field(default_factory=dict)
    native: str = ""
    details: Json = field(default_factory=dict)
    """What goes with a refusal."""
    noted: set[str] = field(default_factory=set)
    broken: bool = False
    """A call's arguments are not what Claude would take back."""


def decode(frame: bytes, state: State) -> Iterable[Event]:
    event = load(frame)
    try:
        kind = event["type"]
        if kind == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "text_delta":
                text = delta["text"]
                state.pieces.append(text)
                return (TextDelta(text),) if text else ()
            return _delta(delta, state)
        return tuple(_HANDLERS.get(kind, _skip)(event, state))
    except (KeyError, TypeError, AttributeError) as error:
        raise _unreadable(event, state) from error


def close(state: State) -> Iterable[Event]:
    if not state.ending:
        raise Truncated(
            f"Upstream '{state.upstream}' ended its stream without a stop_reason: it is cut."
        )
    try:
        return tuple(_finish(state))
    except (KeyError, TypeError, AttributeError) as error:
        raise _unreadable(None, state) from error


def decode_answer(body: Any, state: State) -> Iterable[Event]:
    """Read one plain message: each of its blocks begins and ends at once."""
    try:
        events = list(_begin({"message": body}, state))
        for block in body["content"]:
            events += _start({"content_block": block}, state)
            events += _end_block(state)
        _take_reason(body, state)
        return [*events, *_finish(state)]
    except (KeyError, TypeError, AttributeError) as error:
        raise _unreadable(body, state) from error


def _delta(delta: Json, state: State) -> Iterable[Event]:
    """A piece of the open block, other than text."""
    match delta["type"]:
        case "input_json_delta":
            piece = delta["partial_json"]
            state.pieces.append(piece)
            if state.block["type"] == "tool_use":
                return tuple(state.calls.delta(state.position, piece))
        case "thinking_delta":
            thought = delta["thinking"]
            state.pieces.append(thought)
            return (ReasoningDelta(thought),) if thought else ()
        case "signature_delta":
            state.block["signature"] = (state.block.get("signature") or "") + delta["signature"]
        case "citations_delta":
            state.block["citations"] = [*(state.block.get("citations") or ()), delta["citation"]]
        case "compaction_delta":
            state.block["content"] = (state.block.get("content") or "") + (delta["content"] or "")
    return ()


def _skip(event: Json, state: State) -> Iterable[Event]:
    """Pings, and whatever is invented after this was written."""
    return ()


def _begin(event: Json, state: State) -> Iterable[Event]:
    message = event["message"]
    if message.get("type") == "error":
        raise _failure(message, state)
    state.model = message.get("model") or state.model
    _take_usage(message, state)
    state.tier = _TIERS.get(state.usage.get("service_tier") or "")
    return ()


def _start(event: Json, state: State) -> Iterator[Event]:
    block = state.block = dict(event["content_block"])
    state.position += 1
    match block["type"]:
        case "text":
            if block.get("text"):
                state.pieces.append(block["text"])
                yield TextDelta(block["text"])
        case "thinking":
            if block.get("thinking"):
                state.pieces.append(block["thinking"])
                yield ReasoningDelta(block["thinking"])
        case "tool_use":
            yield from state.calls.start(state.position, block.get("id"), block["name"])
        case "redacted_thinking":
            pass
        case kind:
            yield from _note_once(f"a block of type '{kind}' stayed behind", state)


def _note_once(text: str, state: State) -> Iterator[Event]:
    if text not in state.noted:
        state.noted.add(text)
        yield Noted((Note("block_not_shown", "content", text),))


def _stop(event: Json, state: State) -> Iterator[Event]:
    yield from _end_block(state)


def _end_block(state: State) -> Iterator[Event]:
    """Complete the open block as Claude would have it back."""
    block, state.block = state.block, {}
    said, state.pieces = "".join(state.pieces), []
    kind = block.get("type")
    if kind in ("text", "thinking"):
        block[kind] = said
    elif "input" in block and said.strip():
        state.broken |= not is_json_object(said)
        block["input"] = orjson.Fragment(said)
    elif kind == "tool_use":
        # No pieces: no arguments, or all of them at once.
        arguments = orjson.dumps(block.get("input") or {}).decode()
        yield from state.calls.delta(state.position, arguments)
    if block.get("citations"):
        yield from _note_once("citations stayed behind", state)
    state.broken |= kind == "thinking" and not block.get("signature")
    if kind:
        state.blocks.append(block)


def _take_usage(message: Json, state: State) -> None:
    """Counters are cumulative; the last figure of each counts."""
    for name, figure in (message.get("usage") or {}).items():
        if figure is not None:
            state.usage[name] = figure


def _reason(event: Json, state: State) -> Iterable[Event]:
    _take_usage(event, state)
    _take_reason(event["delta"], state)
    return ()


def _take_reason(said: Json, state: State) -> None:
    if said.get("stop_reason"):
        state.native = str(said["stop_reason"])
        state.details = said.get("stop_details") or {}
        state.ending = True


def _end(event: Json, state: State) -> Iterator[Event]:
    return _finish(state)


def _finish(state: State) -> Iterator[Event]:
    yield from _end_block(state)
    yield from state.calls.close()
    if state.native == "refusal" and state.details.get("explanation"):
        yield RefusalDelta(state.details["explanation"])
    usage, notes = usage_of(state.usage)
    reason, why = _finish_reason(state)
    if notes + why:
        yield Noted(notes + why)
    turn = _turn(state)
    thoughts = _leading_thoughts(turn)
    if thoughts:
        yield Aside("thinking_blocks", thoughts)
    yield Finish(reason, usage, state.native, turn)


def _finish_reason(state: State) -> tuple[FinishReason, Receipt]:
    native = state.native
    reason = FINISH.get(native)
    if reason is None:
        said = f"'{native}'" if native else "nothing"
        return "stop", (Note("finish_unknown", "finish_reason", f"Claude's reason was {said}"),)
    if native == "tool_use" and not state.calls:
        text = "Claude stopped for a call that is not the client's"
        return "stop", (Note("finish_without_calls", "finish_reason", text),)
    if native == "pause_turn":
        text = "Claude paused: send the conversation again to let it go on"
        return reason, (Note("turn_paused", "finish_reason", text),)
    if native == "refusal":
        category = state.details.get("category") or "not given"
        return reason, (Note("refusal", "finish_reason", f"Claude refused; category: {category}"),)
    return reason, ()


def usage_of(said: Json) -> tuple[Usage, Receipt]:
    """Claude counts cached tokens beside `input_tokens`, OpenAI within."""
    read, written = said.get("cache_read_input_tokens"), said.get("cache_creation_input_tokens")
    usage = Usage(
        prompt=(said.get("input_tokens") or 0) + (read or 0) + (written or 0),
        completion=said.get("output_tokens") or 0,
        cached=read,
        cache_write=written,
        reasoning=(said.get("output_tokens_details") or {}).get("thinking_tokens"),
    )
    if "input_tokens" in said and "output_tokens" in said:
        return usage, ()
    text = "the upstream did not count all tokens; what is missing is 0"
    return usage, (Note("usage_estimated", "usage", text),)


def _turn(state: State) -> Json | None:
    """Claude's own message, where OpenAI's text and calls could not be turned back into it."""
    # Claude refuses a block of empty text, its own too.
    blocks = [block for block in state.blocks if block.get("text") != ""]
    kinds = [block["type"] for block in blocks]
    plain = (
        _SAYABLE.issuperset(kinds)
        and kinds == sorted(kinds)
        and not any(block.get("citations") for block in blocks)
    )
    if plain or state.broken or state.native == "refusal":
        return None
    return {"role": "assistant", "content": blocks}


def _leading_thoughts(turn: Json | None) -> list[Json]:
    """Thoughts a client can echo as LiteLLM's clients do: before everything else, or not at all."""
    blocks = turn["content"] if turn else []
    thoughts = [block for block in blocks if block["type"] in THOUGHTS]
    return thoughts if thoughts == blocks[: len(thoughts)] else []


def _failed(event: Json, state: State) -> Iterable[Event]:
    raise _failure(event, state)


def _failure(event: Json, state: State) -> UpstreamError:
    said = event.get("error")
    said = said if isinstance(said, dict) else {"message": said}
    kind = str(said.get("type") or "")
    status = STATUS.get(kind, 500)
    words = str(said.get("message") or kind)
    error = from_words(status, words, state.upstream, state.secrets)
    if error.status == 503:
        error.retry_after = _RETRY_AFTER_OVERLOAD
    return error


def _unreadable(said: Any, state: State) -> UpstreamError:
    if isinstance(said, dict) and said.get("error"):
        return _failure(said, state)
    return UpstreamError(
        f"Upstream '{state.upstream}' sent something that is not a Claude answer. Check that its "
        "base_url leads to an Anthropic Messages API.",
        code="upstream_bad_answer",
    )


_HANDLERS: Mapping[str, Callable[[Json, State], Iterable[Event]]] = {
    "message_start": _begin,
    "content_block_start": _start,
    "content_block_stop": _stop,
    "message_delta": _reason,
    "message_stop": _end,
    "error": _failed,
}
