"""Every turn goes up as a prefix of the next."""

from __future__ import annotations

import copy
import json
from itertools import pairwise

import orjson
from hypothesis import given
from hypothesis import strategies as st

from adapters.protocol import Json
from tests.receipts.sending import every_upstream, send, tool
from tests.support.recordings import Upstream

NAMES = st.sampled_from(["get_weather", "查询天气", "save-note_2"])
IDS = st.text("abcXYZ019_-:|.", min_size=1, max_size=12)
ARGUMENTS = st.dictionaries(
    st.text("ab天", min_size=1, max_size=3),
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    max_size=3,
).map(json.dumps)
TEXTS = st.text("ab 天🌨\n", min_size=1, max_size=8).filter(str.strip)


@st.composite
def conversations(draw: st.DrawFn) -> list[list[Json]]:
    """The turns of a conversation, each as the messages it adds."""
    turns: list[list[Json]] = [[{"role": "user", "content": draw(TEXTS)}]]
    if draw(st.booleans()):
        turns[0].insert(0, {"role": "system", "content": draw(TEXTS)})
    for _ in range(draw(st.integers(1, 3))):
        ids = draw(st.lists(IDS, unique=True, max_size=3))
        calls = [
            {
                "id": identity,
                "type": "function",
                "function": {"name": draw(NAMES), "arguments": draw(ARGUMENTS)},
            }
            for identity in ids
        ]
        said: Json = {"role": "assistant", "content": draw(TEXTS)}
        if calls:
            said = {"role": "assistant", "content": draw(st.none() | TEXTS), "tool_calls": calls}
        results = [
            {"role": "tool", "tool_call_id": identity, "content": draw(TEXTS)} for identity in ids
        ]
        if not calls or draw(st.booleans()):
            results.append({"role": "user", "content": draw(TEXTS)})
        turns.append([said, *results])
    return turns


TOOLS = [tool(name) for name in ("get_weather", "查询天气", "save-note_2")]


@every_upstream
@given(turns=conversations(), tools=st.permutations(TOOLS))
def test_every_turn_begins_with_the_bytes_of_the_turn_before(
    upstream: Upstream, turns: list[list[Json]], tools: list[Json]
) -> None:
    adapter = upstream.connect(upstream.link())
    said: list[Json] = []
    bodies = []
    for turn in turns:
        said += turn
        sent = send(adapter, {"model": upstream.model, "messages": said, "tools": tools})
        assert sent.refused is None
        bodies.append(orjson.loads(sent.body))
    for shorter, longer in pairwise(bodies):
        for name in shorter.keys() | longer.keys():
            before, after = orjson.dumps(shorter.get(name)), orjson.dumps(longer.get(name))
            if before != after:  # all that may differ is a list of turns that grows
                assert name not in ("system", "tools")
                assert isinstance(shorter[name], list)
                assert after.startswith(before[:-1] + b",")


@every_upstream
@given(turns=conversations())
def test_what_a_client_redumped_is_the_same_bytes(
    upstream: Upstream, turns: list[list[Json]]
) -> None:
    adapter = upstream.connect(upstream.link())
    said = [message for turn in turns for message in turn]
    redumped = copy.deepcopy(said)
    for message in redumped:
        for call in message.get("tool_calls") or ():
            value = json.loads(call["function"]["arguments"])
            call["function"]["arguments"] = json.dumps(value, indent=1, ensure_ascii=False)
    bodies = {
        send(adapter, {"model": upstream.model, "messages": messages, "tools": TOOLS}).body
        for messages in (said, redumped)
    }
    assert len(bodies) == 1
