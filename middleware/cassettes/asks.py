"""Asks and answers in OpenAI's shape, which cassettes keep whatever door they came by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from typing import Any

import orjson

from adapters.errors import GatewayError
from adapters.protocol import (
    THOUGHTS_OF,
    Aside,
    CallKind,
    ChatRequest,
    Event,
    Events,
    Finish,
    Json,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    RequestContext,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
    Usage,
)
from middleware.cassettes.cassette import Cassette, CassetteTurn, RecordedAnswer
from middleware.doors import DOORS, FALLBACK
from middleware.doors.chat.fold import Fold
from middleware.doors.chat.words import Heading
from middleware.doors.door import Door
from middleware.doors.surrogates import without_surrogates
from middleware.doors.x_usetool import usage_object

Heard = Fold | tuple[Event, ...]
"""An answer as far as it was heard; one that came at once as it came."""
new_fold = partial(Fold, Heading("", 0, ""))
_NOBODY = Upstream("recorded")
_OWN = frozenset({"role", "content", "refusal", "reasoning_content", "tool_calls", "function_call"})
_FIGURES = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILS = ("prompt_tokens_details", "completion_tokens_details")


def parse_ask(cassette: Cassette, turn: CassetteTurn, call: RequestContext) -> ChatRequest:
    """A recorded ask as any door may have asked it: what asks are compared by."""
    return _parsed(FALLBACK, turn.body, cassette, call)


def parse_own(cassette: Cassette, turn: CassetteTurn, call: RequestContext) -> ChatRequest:
    """A recorded ask as the gateway read it, with what its own door alone could say."""
    door = DOORS.at.get(turn.path)
    if door is None:
        return parse_ask(cassette, turn, call)
    request = _parsed(door, turn.own, cassette, call)
    # Whose thoughts a turn had is read from seals, for which a replay has another secret.
    kept = ({key: said[key] for key in said if key == THOUGHTS_OF} for said in _messages(turn))
    pairs = zip(request.messages, chain(kept, repeat({})), strict=False)
    return replace(request, messages=tuple({**said, **owner} for said, owner in pairs))


def _messages(turn: CassetteTurn) -> Sequence[Json]:
    return turn.body.get("messages") or ()


def _parsed(door: Door, body: Json, cassette: Cassette, call: RequestContext) -> ChatRequest:
    server = cassette.server
    return door.parse(
        orjson.dumps(body),
        repair=server.get("history_repair") is True,
        strict=server.get("strict") is True,
        call=call,
    ).request


def body_of(data: bytes) -> Json:
    """A body as the door reads it: without halves of characters, which no file can have."""
    try:
        body: Json = orjson.loads(data)
    except orjson.JSONDecodeError:
        body = orjson.loads(without_surrogates(data))
    return body


def had_functions(body: bytes) -> bool:
    """Whether an ask had `functions` instead of tools, which the door reads as tools."""
    return b'"functions"' in body and bool(body_of(body).get("functions"))


def folded(
    events: Sequence[Event],
    created: int | None = None,
    status: int = 200,
    error: Json | None = None,
) -> RecordedAnswer:
    """What events come to, also those of an answer without an end."""
    return RecordedAnswer(**told_in(tuple(events), created, status, error))


def heard_more(heard: Heard | None, events: tuple[Event, ...]) -> Fold:
    """Fold events as they come: those that wait for it are many, and dear to find again."""
    fold = _fold_of(heard or ())
    fold.add(events)
    return fold


def _fold_of(heard: Heard) -> Fold:
    if isinstance(heard, Fold):
        return heard
    fold = new_fold()
    fold.add(heard)
    return fold


def told_in(heard: Heard, created: int | None, status: int, error: Json | None) -> Json:
    """Members of a `RecordedAnswer`."""
    fold = _fold_of(heard)
    message = fold.message()
    if not message["refusal"]:
        del message["refusal"]
    if not all(message.values()):
        said = message.items()
        message = {name: value or None for name, value in said if value or name == "content"}
    finish, upstream = fold.finish, fold.opened.upstream if fold.opened else _NOBODY
    return {
        "status": status,
        "message": message,
        "finish_reason": finish.reason if finish else None,
        "usage": usage_object(finish.usage) if finish and finish.usage else None,
        "logprobs": {"content": fold.logprobs, "refusal": None} if fold.logprobs else None,
        "system_fingerprint": upstream.fingerprint,
        "service_tier": upstream.tier,
        "error": error,
        "created": created,
    }


def error_object(error: GatewayError) -> Json:
    """OpenAI's error object, and what tells a client whether to ask again."""
    told: Json = {
        "message": error.message,
        "type": error.type,
        "param": error.param,
        "code": error.code,
        "again": error.again,
    }
    return told | ({"retry_after": error.retry_after} if error.retry_after else {})


def error_of(answer: RecordedAnswer) -> GatewayError | None:
    """Undo `error_object`."""
    told = answer.error
    if told is None:
        return None
    status = answer.status if answer.status >= 400 else 502
    error = GatewayError(
        str(told.get("message") or ""),
        code=told.get("code"),
        param=told.get("param"),
        status=status,
        retry_after=told.get("retry_after"),
    )
    error.type = str(told.get("type") or error.type)
    if (again := told.get("again")) in ("same", "elsewhere"):
        error.again = again
    return error


def events_of(answer: RecordedAnswer) -> tuple[tuple[Event, ...], ...]:
    """Undo `folded`: a batch for each member of the message; no `Finish` where it broke off."""
    if answer.message is None:
        return ()
    said = [*_said(answer)]
    reason: Any = answer.finish_reason
    if answer.error is None:
        reason = "tool_calls" if reason == "function_call" else reason or "stop"
        said.append((Finish(reason, _usage(answer.usage)),))
    if not said:
        return ()
    upstream = Upstream("recorded", fingerprint=answer.system_fingerprint, tier=answer.service_tier)
    return ((Opened((), upstream), *said[0]), *said[1:])


def _said(answer: RecordedAnswer) -> Iterable[tuple[Event, ...]]:
    message = answer.message or {}
    if thought := message.get("reasoning_content"):
        yield (ReasoningDelta(thought),)
    if text := message.get("content"):
        logprobs = (answer.logprobs or {}).get("content") or ()
        yield (TextDelta(text, (*logprobs,)),)
    if refusal := message.get("refusal"):
        yield (RefusalDelta(refusal),)
    for index, call in enumerate(_calls(message)):
        yield _call(index, call)
    for name in message.keys() - _OWN:
        yield (Aside(name, message[name]),)


def _call(index: int, call: Json) -> tuple[Event, ...]:
    kind: CallKind = "custom" if call.get("type") == "custom" else "function"
    function = call.get(kind) or {}
    start = ToolCallStart(index, str(call.get("id") or f"call_{index}"), function["name"], kind)
    arguments = function.get("input" if kind == "custom" else "arguments") or "{}"
    return start, ToolCallDelta(index, arguments)


def _calls(message: Json) -> Sequence[Json]:
    legacy = message.get("function_call")
    return [{"function": legacy}] if legacy else message.get("tool_calls") or ()


def _usage(found: Json | None) -> Usage | None:
    if not found:
        return None
    prompt, completion = (found.get(name) or {} for name in _DETAILS)
    extra = {name: value for name, value in found.items() if value and name not in _FIGURES}
    return Usage(
        found.get("prompt_tokens", 0),
        found.get("completion_tokens", 0),
        cached=prompt.get("cached_tokens"),
        cache_write=prompt.get("cache_write_tokens"),
        reasoning=completion.get("reasoning_tokens"),
        extra=extra,
    )


async def collected(events: Events) -> RecordedAnswer:
    """What a live adapter answers, folded; its failure too."""
    heard: list[Event] = []
    try:
        async for batch in events:
            heard += batch
    except GatewayError as error:
        status = 200 if heard else error.status
        answer = folded(heard) if heard else RecordedAnswer()
        return RecordedAnswer(status, answer.message, error=error_object(error))
    return folded(heard)
