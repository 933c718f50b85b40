"""Asks as the tests of matching share them, and their keys."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from adapters.protocol import Json
from middleware.cassettes.match import AskKey, Form, MatchRules, canonical, key_of, read_rules
from middleware.doors.chat.parse import parse

Change = Callable[[Json], object]
EXACT = MatchRules()


def offered(name: str, says: str, **properties: Json) -> Json:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "type": "function",
        "function": {"name": name, "description": says, "parameters": schema},
    }


STOCK = offered("stock", "How many are left.", sku={"type": "string"}, shop={"type": "integer"})
BUY = offered("buy", "Buys one.", sku={"type": "string"})
SHORT: Json = {
    "model": "clerk",
    "temperature": 0.2,
    "tools": [STOCK, BUY],
    "messages": [
        {"role": "system", "content": "You sell lamps.\nBe polite."},
        {"role": "user", "content": "还有灯吗？"},
    ],
}


def called(identity: str, name: str, arguments: str) -> Json:
    return {
        "id": identity,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def told(identity: str, content: Any) -> Json:
    return {"role": "tool", "tool_call_id": identity, "content": content}


def round_of(*calls: tuple[str, str, str, str]) -> list[Json]:
    """A turn that calls, and its results: id, name, arguments, result of each."""
    turn = {"role": "assistant", "content": None, "tool_calls": [called(*one[:3]) for one in calls]}
    return [turn, *(told(one[0], one[3]) for one in calls)]


LAMP, SHADE = '{"sku":"L-1","shop":7}', '{"sku":"S-2","shop":7}'
LONG: Json = SHORT | {
    "messages": [
        *SHORT["messages"],
        *round_of(("a", "stock", LAMP, "3"), ("b", "stock", SHADE, "none")),
        *round_of(("c", "buy", '{"sku":"L-1"}', "done")),
        {"role": "user", "content": "Thanks!"},
    ]
}


def changed(body: Json, change: Change) -> Json:
    copied: Json = copy.deepcopy(body)
    change(copied)
    return copied


def form_of(body: Json) -> Form:
    parsed = parse(json.dumps(body).encode())
    return canonical(parsed.request, parsed.legacy)


def key(body: Json, rules: MatchRules = EXACT) -> AskKey:
    return key_of("chat", form_of(body), rules)


def match(recorded: Json, now: Json, rules: MatchRules = EXACT) -> bool:
    return key(recorded, rules) == key(now, rules)


def masks(*found: Json, **more: Any) -> MatchRules:
    return read_rules({"mask": list(found), **more}, "match.toml")


def prompt(system: str, user: str = "Go on.") -> Json:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return {"model": "clerk", "messages": messages}


def put(value: Any, *path: str | int) -> Change:
    def change(body: Json) -> None:
        at: Any = body
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change
