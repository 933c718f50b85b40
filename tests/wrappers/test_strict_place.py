"""`Strict` under Show and Retry refuses what it would refuse around everything, alike."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from hypothesis import given, settings

from adapters.errors import BadRequest
from adapters.protocol import Adapter, ChatRequest, Json, Planned
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.doors.chat.parse import parse
from middleware.routing import Routes
from middleware.wrappers.strict import Strict
from tests.receipts.test_fields import REQUESTS

HERE = 'base_url = "http://127.0.0.1:1"\n'
MODELS = f"""
[recall]
store = "memory"
[upstreams.claude]
kind = "claude"
{HERE}
[upstreams.deepseek]
kind = "deepseek"
{HERE}
[upstreams.ollama]
kind = "ollama"
{HERE}
[upstreams.compatible]
kind = "compatible"
{HERE}
[models.claude-sonnet-4-5]
upstream = "claude"
[models.deepseek-chat]
upstream = "deepseek"
[models.llama]
upstream = "ollama"
[models.prompted]
upstream = "ollama"
tools = "emulated"
[models.gpt]
upstream = "compatible"
[models.both]
pipeline = "reason-then-answer"
reasoner = "deepseek-chat"
answerer = "claude-sonnet-4-5"
"""
NAMES = ["claude-sonnet-4-5", "deepseek-chat", "llama", "prompted", "gpt", "both"]


def built(text: str) -> Routes:
    return build(config.parse(MODELS + text, environment={}), Transport())


LENIENT, STRICT = built(""), built("[server]\nstrict = true\n")
Outcome = tuple[Planned, ...] | str


def planned(adapter: Adapter, request: ChatRequest) -> Outcome:
    try:
        return adapter.plan(request)
    except BadRequest as error:
        return f"{error.code} {error.param} {error.message}"


def refused(adapter: Adapter, request: ChatRequest) -> Outcome:
    async def first() -> None:
        await anext(adapter.stream(request))

    with pytest.raises(BadRequest) as caught:
        asyncio.run(first())
    return f"{caught.value.code} {caught.value.param} {caught.value.message}"


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(body=REQUESTS)
def test_strict_refuses_the_same_wherever_it_stands(name: str, body: Json) -> None:
    try:
        request = parse(orjson.dumps({"model": name, **body})).request
    except BadRequest:
        return
    inside = STRICT.find(name)
    outcome = planned(inside, request)
    assert outcome == planned(Strict(LENIENT.find(name)), request)
    if isinstance(outcome, str) and "is strict" in outcome:
        assert refused(inside, request) == outcome
