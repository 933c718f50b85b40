"""Turns ↔ JSON, as files have them but for what `references` and `sides` take out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args
from urllib.parse import quote, unquote

from adapters.protocol import Json
from adapters.wire.capture import CapturedTool
from middleware.cassettes.cassette import (
    CassetteTurn,
    Ended,
    ExchangeFailure,
    RecordedAnswer,
    RecordedExchange,
)
from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.file.bodies import BODY, body_from_json, body_to_json
from middleware.cassettes.file.schema import ANY, EACH, Misshapen, checked, wrong
from middleware.cassettes.visitor import Operation

_URI = re.compile(r"http://([^/]+)\.test(.*)", re.DOTALL)
# Fields that a file has as they are.
_PLAIN: Mapping[str, type] = {
    "id": str, "session": str, "lane": str, "at": int, "route": str, "kept": bool, "redacted": bool,
}  # fmt: skip
_ANSWER: Mapping[str, type] = {
    "status": int, "message": dict, "finish_reason": str, "usage": dict, "logprobs": dict,
    "system_fingerprint": str, "service_tier": str, "error": dict, "body": dict, "created": int,
}  # fmt: skip
_FUNCTION: Mapping[str, Any] = {EACH: ANY, "name": str, "arguments": str, "input": str}
_DETAILS: Mapping[str, Any] = {
    EACH: ANY, "cached_tokens": int, "cache_write_tokens": int, "reasoning_tokens": int,
}  # fmt: skip
# What of an answer is read; all else of it is handed on.
_READ: Mapping[str, Any] = {
    EACH: ANY,
    "message": {
        EACH: ANY,
        **dict.fromkeys(("content", "refusal", "reasoning_content"), str),
        "tool_calls": [{EACH: ANY, "id": str, "function": _FUNCTION, "custom": _FUNCTION}],
        "function_call": _FUNCTION,
    },
    "logprobs": {EACH: ANY, "content": [{EACH: ANY}]},
    "usage": {
        EACH: ANY,
        **dict.fromkeys(("prompt_tokens", "completion_tokens"), int),
        **dict.fromkeys(("prompt_tokens_details", "completion_tokens_details"), _DETAILS),
    },
}
_FAILURE: Mapping[str, Any] = {
    "code": str,
    "status": int,
    "again": ("never", "same", "elsewhere"),
    "message": str,
}
_HEADERS: Mapping[str, Any] = {EACH: [str]}
_REQUEST: Mapping[str, Any] = {"method": str, "uri": str, "body": BODY}
_RESPONSE: Mapping[str, Any] = {
    "status": {"code": int},
    "headers": _HEADERS,
    "body": BODY,
    "pieces": [[int]],
    "ended": get_args(Ended),
    "failure": _FAILURE,
}
_TOOL: Mapping[str, Any] = {
    "name": str,
    "arguments": str,
    "content": ANY,
    "failed": bool,
    "sources": [dict],
    "cut": int,
    "seconds": float,
    "pieces": [str],
    "order": int,
}
_TURN: Mapping[str, Any] = {
    "turn": int,
    **_PLAIN,
    "ended": get_args(Ended),
    "ask": {
        "operation": get_args(Operation),
        "headers": _HEADERS,
        "path": str,
        "body": dict,
        "own": dict,
    },
    "upstream": [{"request": _REQUEST, "response": _RESPONSE}],
    "tools": [_TOOL],
    "answer": {**_ANSWER},
}


def turn_to_json(turn: CassetteTurn) -> Json:
    operation = "" if turn.operation == "chat" else turn.operation
    ended = "" if turn.ended == "whole" else turn.ended
    answer = {name: getattr(turn.answer, name) for name in _ANSWER}
    return {
        "turn": turn.number,
        **said({**{name: getattr(turn, name) for name in _PLAIN}, "ended": ended}),
        "ask": {
            **said({"operation": operation, "headers": turn.headers, "path": turn.path}),
            "body": turn.body,
            **said({"own": turn.own}),
        },
        **said({"upstream": [_exchange_to_json(one) for one in turn.exchanges]}),
        **said({"tools": [said(one._asdict()) for one in turn.tools]}),
        "answer": {name: value for name, value in answer.items() if value is not None},
    }


def turn_from_json(value: object, path: str, line: int = 0) -> CassetteTurn:
    """Read what `turn_to_json` wrote, or somebody by hand."""
    try:
        return _turn(checked(value, _TURN, "turn"), line)
    except Misshapen as error:
        raise UnreadableCassette(path, str(error), line) from None


def address(one: RecordedExchange) -> str:
    """Its URI, with the upstream's name."""
    return f"http://{quote(one.upstream, safe='')}.test{one.path}"


def said(values: Mapping[str, object]) -> Json:
    """What is not empty."""
    return {name: value for name, value in values.items() if value}


def _exchange_to_json(one: RecordedExchange) -> Json:
    kind = one.headers.get("content-type", "")
    response = {
        "headers": {name: [value] for name, value in one.headers.items()},
        "body": one.body and body_to_json(one.body, kind),
        "pieces": [list(piece) for piece in one.pieces],
        "ended": one.ended,
        "failure": one.failure and {name: getattr(one.failure, name) for name in _FAILURE},
    }
    sent = {"body": one.sent and body_to_json(one.sent, "")}
    return {
        "request": {"method": one.method, "uri": address(one), **said(sent)},
        "response": {"status": {"code": one.status}, **said(response)},
    }


def _require_names(message: Json) -> None:
    for at, call in enumerate(message.get("tool_calls", ())):
        kind = "custom" if call.get("type") == "custom" else "function"
        if not call.get(kind, {}).get("name"):
            where = f"turn.answer.message.tool_calls[{at}].{kind}.name"
            raise wrong(where, None, "the name of a tool")
    if "function_call" in message and not message["function_call"].get("name"):
        where = "turn.answer.message.function_call.name"
        raise wrong(where, None, "the name of a tool")


def _turn(found: Json, line: int) -> CassetteTurn:
    ask: Json = found.get("ask", {})
    if "body" not in ask or "answer" not in found:
        raise Misshapen("turn: no ask.body or no answer; expected both")
    _require_names(checked(found["answer"], {**_READ}, "turn.answer").get("message", {}))
    exchanges = [
        _exchange(one.get("request", {}), one.get("response", {}), f"turn.upstream[{at}]")
        for at, one in enumerate(found.get("upstream", ()))
    ]
    return CassetteTurn(
        number=found.get("turn", 0),
        ended=found.get("ended", "whole"),
        operation=ask.get("operation", "chat"),
        headers=_headers(ask),
        body=ask["body"],
        path=ask.get("path", ""),
        own=ask.get("own", {}),
        exchanges=tuple(exchanges),
        tools=tuple(_tool(one, at) for at, one in enumerate(found.get("tools", ()))),
        answer=RecordedAnswer(**found["answer"]),
        line=line,
        **{name: found[name] for name in _PLAIN if name in found},
    )


def _tool(said: Json, at: int) -> CapturedTool:
    content = said.get("content", "")
    if not said.get("name") or not isinstance(content, str | list):
        raise wrong(f"turn.tools[{at}]", said, "a tool's name, its arguments and what it gave")
    return CapturedTool(**{"arguments": "{}", **said, "content": content})


def _exchange(request: Json, response: Json, at: str) -> RecordedExchange:
    upstream, path = _address(request.get("uri"), at)
    body = body_from_json(response.get("body", {}), f"{at}.response.body")
    pieces = response.get("pieces", ())
    sizes = {len(piece) for piece in pieces}
    if pieces and (sizes != {2} or sum(piece[1] for piece in pieces) != len(body)):
        expected = f"pairs of milliseconds and bytes, {len(body)} bytes in all; or leave them out"
        raise wrong(f"{at}.response.pieces", pieces, expected)
    failure = {"code": "", "status": 0, "again": "never", "message": ""}
    return RecordedExchange(
        upstream=upstream,
        path=path,
        sent=body_from_json(request.get("body", {}), f"{at}.request.body"),
        method=request.get("method", "POST"),
        status=response.get("status", {}).get("code", 200),
        headers=_headers(response),
        body=body,
        pieces=tuple((pause, count) for pause, count in pieces),
        ended=response.get("ended", "whole"),
        failure=ExchangeFailure(**failure | response["failure"]) if "failure" in response else None,
    )


def _address(uri: object, at: str) -> tuple[str, str]:
    found = _URI.fullmatch(str(uri))
    if found is None:
        raise wrong(f"{at}.request.uri", uri, "http://UPSTREAM.test/path")
    return unquote(found[1]), found[2]


def _headers(holder: Json) -> dict[str, str]:
    return {name: ", ".join(values) for name, values in holder.get("headers", {}).items()}
