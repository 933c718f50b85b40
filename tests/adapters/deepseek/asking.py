"""Requests to DeepSeek, as the tests of them share."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.deepseek import KIND, DeepSeek, Habits, encode
from adapters.errors import BadRequest
from adapters.kind import Settings
from adapters.protocol import ChatRequest, Json
from adapters.wire.http import Link, Transport
from tests.support.dialogue import assistant, result, user
from tests.support.fold import Answer, fold, run
from tests.support.upstreams.tape import tape

THINKER, PLAIN = "deepseek-flash", "deepseek-chat"
HELLO = (user("hello"),)
USUAL = Habits()
BETA = Habits(beta=True)
NAMED: Json = {"type": "function", "function": {"name": "f"}}


def tool(name: str = "f", **members: Any) -> Json:
    return {"type": "function", "function": {"name": name, **members}}


def request(**given: Any) -> ChatRequest:
    return ChatRequest(**{"model": THINKER, "messages": HELLO, **given})


def written(habits: Habits = USUAL, **given: Any) -> tuple[Json, list[tuple[str, str]]]:
    body, receipt, _ = encode(request(**given), habits)
    return body, [(note.code, note.field) for note in receipt]


def refused(habits: Habits = USUAL, **given: Any) -> str | None:
    with pytest.raises(BadRequest) as caught:
        encode(request(**given), habits)
    assert caught.value.status == 400
    return caught.value.param


ROUND = (assistant(None, ("a", "f", "{}")), result("a", "x"))


def heard(message: Json, reason: str, **given: Any) -> Answer:
    body = {"choices": [{"message": message, "finish_reason": reason}]}
    pieces = [b"\n\n", b"\n", json.dumps(body).encode()]
    return run(fold(DeepSeek(tape(pieces)).stream(request(**given))))


def settings(base_url: str, **given: Any) -> Settings[Any]:
    return KIND.settings(Link("up", base_url, Transport()), **given)
