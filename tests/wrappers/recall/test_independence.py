"""What goes up of a conversation does not depend on what else its client and model did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from adapters.protocol import ChatRequest, Event, Json
from middleware.wrappers.recall import MemoryStore, Recall
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import answer, assistant, request, result, user
from tests.support.fold import ask

_WORDS = ("weather?", "and there?")


@dataclass(frozen=True)
class Turn:
    """A question, its call, and the answer to the result."""

    words: str
    calls: bool
    thought: bool
    said: str
    """Beside the call."""
    kept: bool
    """The client sends back what was said beside the call."""


@dataclass(frozen=True)
class Talk:
    turns: tuple[Turn, ...]
    asks_for_thoughts: bool


TURN = st.builds(
    Turn,
    words=st.sampled_from(_WORDS),
    calls=st.booleans(),
    thought=st.booleans(),
    said=st.sampled_from(["", "Let me look."]),
    kept=st.booleans(),
)
# The first turn calls: by its ids a conversation is known, whatever others say.
TURNS = st.lists(TURN, min_size=1, max_size=3).map(
    lambda turns: (replace(turns[0], calls=True), *turns[1:])
)
TALK = st.builds(Talk, TURNS, st.booleans())


def requests(talk: Talk, name: str) -> list[tuple[ChatRequest, Sequence[Event]]]:
    """Everything a client asks in a conversation, with the answers it gets."""
    asked: list[tuple[ChatRequest, Sequence[Event]]] = []
    messages: list[Json] = []

    def step(*sent: Json, heard: Sequence[Event]) -> None:
        messages.extend(sent)
        one = request(*messages)
        if talk.asks_for_thoughts:
            one = replace(one, params={"reasoning_effort": "high"})
        asked.append((one, heard))

    for number, turn in enumerate(talk.turns):
        thought = f"{name} thought {number}" if turn.thought else ""
        question = user(turn.words)
        if turn.calls:
            call = (f"{name}.{number}", "weather", '{"city":"A"}')
            step(question, heard=answer(thought, turn.said, said=[call]))
            messages.append(assistant(turn.said if turn.kept else None, call))
            step(result(call[0], "5"), heard=answer(thought, "It is 5."))
        else:
            step(question, heard=answer(thought, "It is 5."))
        messages.append(assistant("It is 5."))
    step(user("thanks"), heard=answer())
    return asked


def bodies(own: Talk, foreign: Sequence[Talk], every: int) -> list[list[Json]]:
    """What the upstream gets of a conversation while others go on in between."""
    model = FakeAdapter()
    recall = Recall(model, MemoryStore(), thinks=lambda one: "reasoning_effort" in one.params)
    others = [requests(talk, f"other{number}") for number, talk in enumerate(foreign)]
    rest = [step for talk in others for step in talk]
    seen = []
    for asked, heard in requests(own, "own"):
        for _ in range(min(every, len(rest))):
            other, told = rest.pop(0)
            model.answers.append(told)
            ask(recall, other)
        model.answers.append(heard)
        ask(recall, asked)
        seen.append(model.last())
    return seen


@given(TALK, st.lists(TALK, max_size=4), st.integers(1, 9))
def test_other_conversations_change_nothing(own: Talk, foreign: list[Talk], every: int) -> None:
    assert bodies(own, foreign, every) == bodies(own, [], 0)


@given(TALK)
def test_nothing_but_thoughts_is_put_back(own: Talk) -> None:
    sent = [list(one.messages) for one, _ in requests(own, "own")]
    for body, asked in zip(bodies(own, [], 0), sent, strict=True):
        without = [
            {name: value for name, value in message.items() if name != "reasoning_content"}
            for message in body
        ]
        assert without == asked


@given(TALK, st.lists(TALK, max_size=3))
def test_a_conversation_with_new_ids_is_found_while_its_end_is_its_own(
    own: Talk, foreign: list[Talk]
) -> None:
    model = FakeAdapter()
    recall = Recall(model, MemoryStore())
    own = replace(own, turns=(*own.turns, Turn("mine", True, True, "", True)))
    *earlier, (last, _) = requests(own, "own")
    for asked, heard in earlier:
        model.answers.append(heard)
        ask(recall, asked)
    messages = [_minted(message) for message in last.messages]
    sent = []
    for others in ([], foreign):
        named = ((talk, f"other{number}") for number, talk in enumerate(others))
        for asked, heard in (step for talk, name in named for step in requests(talk, name)):
            model.answers.append(heard)
            ask(recall, asked)
        model.answers.append(answer())
        ask(recall, request(*messages))
        sent.append(model.last())
    assert sent[0] == sent[1]
    thoughts = [message.get("reasoning_content") for message in sent[0]]
    assert f"own thought {len(own.turns) - 1}" in thoughts


def _minted(message: Json) -> Json:
    if "tool_call_id" in message:
        return {**message, "tool_call_id": f"new {message['tool_call_id']}"}
    if "tool_calls" in message:
        calls = [{**call, "id": f"new {call['id']}"} for call in message["tool_calls"]]
        return {**message, "tool_calls": calls}
    return message
