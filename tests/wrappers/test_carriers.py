"""What doors put into a request for one leaf alone: no other sends it, what is lost is named."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import (
    CARRIER,
    THOUGHTS_OF,
    Adapter,
    Carried,
    ChatRequest,
    Json,
)
from adapters.receipts import Note
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from tests.wrappers.test_strict_place import MODELS

ROUTES = build(config.parse(MODELS, environment={}), Transport())
NAMES = tuple(entry.id for entry in ROUTES.listing())
SECRET = "for one leaf alone"
LOST = Note("member_dropped", "messages[0].content[1]", "nobody else has it")
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def carried(language: str = "nobody's", **more: Any) -> Carried:
    return Carried(language, {"said": SECRET}, **more)


def asked(*messages: Json, **members: Any) -> ChatRequest:
    return ChatRequest("m", messages, **members)


def planned(adapter: Adapter, request: ChatRequest) -> tuple[bytes, list[Note]]:
    calls = adapter.plan(request)
    return orjson.dumps([call.body for call in calls]), [note for c in calls for note in c.receipt]


def private(language: str = "nobody's") -> st.SearchStrategy[Json]:
    members: Json = {CARRIER: st.just(carried(language)), THOUGHTS_OF: st.just(SECRET)}
    return st.fixed_dictionaries({}, optional=members)


@pytest.mark.parametrize("name", NAMES)
@given(secrets=st.lists(private(), min_size=5, max_size=5), native=st.booleans())
def test_no_leaf_sends_what_is_for_another(name: str, secrets: list[Json], native: bool) -> None:
    plain: tuple[Json, ...] = (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Call it."},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
        {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
    )
    tools = ({"type": "function", "function": {"name": "f", "parameters": {}}},)
    said = [{**message, **more} for message, more in zip(plain, secrets, strict=True)]
    request = asked(*said, tools=tools, native=carried() if native else None)
    without = asked(*plain, tools=tools)
    adapter = ROUTES.find(name)
    body, notes = planned(adapter, request)
    assert SECRET.encode() not in body
    assert (body, notes) == planned(adapter, without)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_lost_is_told_once(name: str) -> None:
    user = {"role": "user", "content": "Hello", CARRIER: carried(lost=(LOST,))}
    for call in ROUTES.find(name).plan(asked(user, user, native=carried(lost=(LOST,)))):
        assert call.receipt.count(LOST) == 1


@pytest.mark.parametrize("name", NAMES)
def test_what_must_not_be_lost_is_refused(name: str) -> None:
    refusal = BadRequest("This file is kept elsewhere.", param="messages[0].content[0]")
    user = {"role": "user", "content": "Hello", CARRIER: carried(refusal=refusal)}
    with pytest.raises(BadRequest, match="kept elsewhere"):
        ROUTES.find(name).plan(asked(user))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "both"])
def test_thoughts_stay_with_the_upstream_they_are_of(name: str) -> None:
    turn = {"role": "assistant", "content": "Yes.", "reasoning_content": SECRET}
    talk = {"role": "user", "content": "Sure?"}
    upstream = planned_upstream(name)
    own = asked(talk, {**turn, THOUGHTS_OF: upstream}, talk)
    assert planned(ROUTES.find(name), own) == planned(ROUTES.find(name), asked(talk, turn, talk))
    body, notes = planned(ROUTES.find(name), asked(talk, {**turn, THOUGHTS_OF: "other"}, talk))
    assert SECRET.encode() not in body
    (left,) = [note for note in notes if note.code == "thoughts_left"]
    assert "messages[1]" in left.text


def planned_upstream(name: str) -> str:
    return ROUTES.find(name).plan(asked({"role": "user", "content": "Hello"}))[0].upstream


def test_a_client_cannot_carry_anything_itself() -> None:
    user = {"role": "user", "content": "Hello", CARRIER: {"language": "anthropic", "value": SECRET}}
    for name in NAMES:
        body, notes = planned(ROUTES.find(name), asked(user))
        assert SECRET.encode() not in body
        assert ("member_dropped", "messages[0].carrier") in [note[:2] for note in notes]
