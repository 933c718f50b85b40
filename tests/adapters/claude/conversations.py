"""What tests of Claude's requests share: turns, calls, tools, and the rules Claude has."""

from __future__ import annotations

import re
from typing import Any

import pytest

from adapters.errors import BadRequest
from adapters.protocol import Json
from tests.support.dialogue import assistant, result, user
from tests.support.upstreams.claude_wire import (
    request,
    sent,
)

SHENYANG, DALIAN = ("a", "get_weather", '{"city":"沈阳"}'), ("b", "get_weather", '{"city":"大连"}')


def system(content: Any, role: str = "system") -> Json:
    return {"role": role, "content": content}


def said(content: str) -> Json:
    return {"type": "text", "text": content}


def codes(*messages: Json, **asked: Any) -> list[str]:
    return sent(request(*messages, **asked))[1]


def refusal(*messages: Json, **asked: Any) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        sent(request(*messages, **asked))
    return caught.value


def assert_accepted(body: Json) -> None:
    """What Claude checks of a conversation."""
    waiting: list[str] = []
    used: set[str] = set()
    for position, turn in enumerate(body["messages"]):
        kinds = [block["type"] for block in turn["content"]]
        assert kinds, "all messages must have non-empty content"
        assert position == 0 or turn["role"] != body["messages"][position - 1]["role"]
        results = [b["tool_use_id"] for b in turn["content"] if b["type"] == "tool_result"]
        assert sorted(results) == sorted(waiting), "each tool_use must have a single result"
        assert kinds[: len(results)] == ["tool_result"] * len(results), "results come first"
        waiting = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        assert not used & set(waiting), "ids must be unique"
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", one) for one in waiting)
        used |= set(waiting)
        texts = [block["text"] for block in turn["content"] if block["type"] == "text"]
        assert all(one.strip() for one in texts), "text must be visible"
        inputs = [block["input"] for block in turn["content"] if block["type"] == "tool_use"]
        assert all(isinstance(one, dict) for one in inputs)
    assert not waiting
    assert not used or body["tools"]


SIGNED: Json = {"type": "thinking", "thinking": "hm", "signature": "s"}

KIMI = "kimi-k2"
ROUND = (user("x"), assistant(None, ("a", "get_weather", "{}")), result("a", "5"))


def named(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}
