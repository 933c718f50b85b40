"""Two turns of the assistant in a row, at every leaf: a longer request begins as the shorter did.

An upstream that answers only to a user is told to go on behind a last turn of the assistant. There
those words stay: what it said then, and its thoughts, hold only behind the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import orjson
import pytest

from adapters.errors import BadRequest
from adapters.protocol import ChatRequest, Json
from adapters.shared.history import GO_ON, settle
from tests.support.dialogue import assistant, result, user
from tests.support.recordings import Upstream, upstreams

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
CALL = ("call_1", "get_weather", '{"city":"沈阳"}')
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
# Two turns in a row in each, the first of them the last of a request before.
HISTORIES: Mapping[str, tuple[Json, ...]] = {
    "plain": (assistant("b"), assistant("c")),
    "three": (assistant("b"), assistant("c"), assistant("d")),
    "echoed thoughts": (
        assistant("b"),
        {**assistant("c"), "thinking_blocks": [THOUGHT], "reasoning_content": "hm"},
    ),
    "thoughts in both": (
        {**assistant("b"), "thinking_blocks": [THOUGHT], "reasoning_content": "hm"},
        {**assistant("c"), "thinking_blocks": [THOUGHT], "reasoning_content": "hm"},
    ),
    "a call behind": (assistant("b"), assistant("c", CALL), result("call_1", "5")),
    "a call before": (assistant(None, CALL), result("call_1", "5"), assistant("b"), assistant("c")),
    "a refusal": (assistant("b"), {**assistant(None), "refusal": "no"}),
}
NEWEST = Upstream("claude", "claude-sonnet-4-6")
ALL = [NEWEST, *upstreams()]
every_leaf = pytest.mark.parametrize("upstream", ALL, ids=lambda one: f"{one.name}-{one.model}")
every_history = pytest.mark.parametrize("history", HISTORIES)


def sent(upstream: Upstream, messages: Sequence[Json]) -> Json:
    """Its body."""
    adapter = upstream.connect(upstream.link())
    request = ChatRequest(upstream.model, settle(messages)[0], (TOOL,))
    (planned,) = adapter.plan(request)
    body: Json = orjson.loads(orjson.dumps(planned.body))
    return body


def turns_of(upstream: Upstream, messages: Sequence[Json]) -> list[Json]:
    """Its turns, under whatever name: the list that a longer conversation makes longer."""
    short, body = sent(upstream, [user("a")]), sent(upstream, messages)
    (turns,) = [
        body[name]
        for name, few in short.items()
        if type(few) is list and len(few) < len(body[name])
    ]
    return list(turns)


def is_asked_to_go_on(turn: Json) -> bool:
    return turn.get("role", "user") == "user" and GO_ON in str(turn)


@every_leaf
@every_history
def test_what_was_put_behind_a_turn_stands_there_in_later_requests(
    upstream: Upstream, history: str
) -> None:
    messages = [user("a"), *HISTORIES[history], user("z")]
    for length in range(2, len(messages)):
        if messages[length - 1].get("tool_calls"):
            continue  # its results are part of it
        try:
            earlier, later = (turns_of(upstream, messages[:end]) for end in (length, length + 1))
        except BadRequest:
            continue
        if is_asked_to_go_on(earlier[-1]) and messages[length]["role"] == "assistant":
            assert later[: len(earlier)] == earlier


@every_leaf
@every_history
def test_who_answers_only_to_a_user_reads_no_two_turns_in_a_row(
    upstream: Upstream, history: str
) -> None:
    if not is_asked_to_go_on(turns_of(upstream, (user("a"), assistant("b")))[-1]):
        return
    turns = turns_of(upstream, [user("a"), *HISTORIES[history], user("z")])
    assert not [
        one for one, two in pairwise(turns) if one.get("role") == two.get("role") == "assistant"
    ]
    assert sum(map(is_asked_to_go_on, turns)) == (2 if history == "three" else 1)


@every_leaf
@every_history
def test_the_same_history_is_the_same_bytes(upstream: Upstream, history: str) -> None:
    messages = [user("a"), *HISTORIES[history], user("z")]
    assert sent(upstream, messages) == sent(upstream, messages)
