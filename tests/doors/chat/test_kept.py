"""What is kept of a request is the same object each time, and nobody changes it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given

from adapters.errors import GatewayError
from adapters.protocol import ChatRequest, Json, RequestContext
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.doors.chat.parse import parse
from middleware.doors.seen import Seen
from tests.doors.chat.conversations import TALK, TOOL, bodies, body_of
from tests.support.cases import CASES
from tests.support.fold import fold, run
from tests.support.recordings import upstreams

CONFIG = """
[recall]
store = "memory"
[upstreams.s]
kind = "scripted"
[models.plain]
upstream = "s"
[models.emulated]
upstream = "s"
tools = "emulated"
[models.pipeline]
pipeline = "reason-then-answer"
reasoner = "plain"
answerer = "emulated"
[models.choices]
choices = ["plain", "emulated"]
"""
ROUTES = build(config.parse(CONFIG, environment={}), Transport())
LEAVES = [upstream.connect(upstream.link()) for upstream in upstreams()]
RECORDED = [json.dumps({"model": "m", **case}).encode() for case in CASES.values()]


async def _everywhere(request: ChatRequest) -> None:
    """To every leaf, and through everything that stands around one."""
    for leaf in LEAVES:
        try:
            leaf.plan(request)
        except GatewayError:
            continue
    for name in ("plain", "emulated", "pipeline", "choices"):
        try:
            await fold(ROUTES.find(name).stream(request))
        except GatewayError:
            continue


def _read(body: bytes, seen: Seen | None) -> ChatRequest | None:
    try:
        return parse(body, repair=True, call=RequestContext(owner="a"), seen=seen).request
    except GatewayError:
        return None


def _is_left_alone(talk: list[bytes]) -> None:
    seen = Seen(least_body=0)
    for body in [*talk, *talk]:
        request = _read(body, seen)
        if request is not None:
            run(_everywhere(request))
            assert repr(_read(body, seen)) == repr(_read(body, None))


@given(talk=bodies())
def test_nobody_changes_what_is_kept_of_a_conversation(talk: list[bytes]) -> None:
    _is_left_alone(talk)


@pytest.mark.parametrize("body", RECORDED, ids=list(CASES))
def test_nobody_changes_what_is_kept_of_a_recorded_request(body: bytes) -> None:
    _is_left_alone([body])


def _growing() -> Iterator[bytes]:
    talk: list[Json] = [*TALK]
    for turn in range(6):
        yield body_of(talk, {"tools": [TOOL]})
        talk += [{"role": "assistant", "content": f"{turn}"}, {"role": "user", "content": "on"}]


def test_what_was_seen_is_the_same_object() -> None:
    seen, last = Seen(least_body=0), None
    for body in _growing():
        request = _read(body, seen)
        assert request is not None
        if last is not None:
            assert request.tools is last.tools
            pairs = zip(request.messages, last.messages, strict=False)
            assert all(one is other for one, other in pairs)
        last = request


def test_owners_have_nothing_in_common() -> None:
    seen = Seen(least_body=0)
    body = body_of(TALK, {"tools": [TOOL]})
    mine, others = (
        parse(body, call=RequestContext(owner=owner), seen=seen).request for owner in "ab"
    )
    assert mine.messages == others.messages
    assert not {*map(id, mine.messages)} & {*map(id, others.messages)}
    assert mine.tools is not others.tools


def test_what_was_refused_is_not_kept() -> None:
    seen = Seen(least_body=0)
    for refused in (body_of([*TALK, {"role": "robot"}], {}), body_of(TALK, {"n": 2})):
        assert _read(refused, seen) is None
    assert not seen.size
