"""Whoever branches, edits or rebuilds a conversation: no thought ever reaches another one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.protocol import (
    ChatRequest,
    Event,
    Finish,
    Json,
    Opened,
    ReasoningDelta,
    RequestContext,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
)
from middleware.wrappers.recall import MemoryStore, Recall
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import assistant, rebuilt, result, user


class Thinker(FakeAdapter):
    """Thinks a new thought every time, and calls one tool twice when the user says so."""

    def __init__(self) -> None:
        super().__init__(usual=self.think)

    @property
    def seen(self) -> tuple[Json, ...]:
        return self.asked[-1].messages

    @property
    def thoughts(self) -> int:
        return len(self.asked)

    def think(self, request: ChatRequest) -> Iterator[tuple[Event, ...]]:
        yield (Opened((), Upstream("thinker")), ReasoningDelta(f"thought {self.thoughts}"))
        if "call" in request.messages[-1]["content"]:
            for index, city in enumerate("AB"):
                yield (ToolCallStart(index, f"id{self.thoughts}.{index}", "f"),)
                yield (ToolCallDelta(index, orjson.dumps({"city": city}).decode()),)
            yield (Finish("tool_calls"),)
        else:
            yield (TextDelta("answer"), Finish("stop"))


@dataclass(frozen=True)
class Chat:
    client: str
    messages: tuple[Json, ...] = ()
    thoughts: tuple[str, ...] = ()
    """Of each assistant turn."""
    edited: bool = False


@dataclass(frozen=True)
class Step:
    which: int
    """The conversation that goes on, or branches."""
    words: str
    """What the user says, or the tools answer."""
    call: bool
    edit: bool
    rebuild: bool = False


@dataclass
class World:
    thinker: Thinker = field(default_factory=Thinker)
    chats: list[Chat] = field(default_factory=lambda: [Chat("a"), Chat("b")])
    places: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """Thought → client, and the conversation it was thought in."""
    minted: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.recall = Recall(self.thinker, MemoryStore())

    def go(self, step: Step) -> None:
        chat = self.chats[step.which % len(self.chats)]
        if step.edit and chat.messages:
            chat = with_edit(chat)
        messages = (*chat.messages, *continued(chat, step))
        sent = messages
        if step.rebuild:
            sent = tuple(rebuilt(messages, lambda: f"new{next(self.minted)}"))
        asyncio.run(self.ask(ChatRequest("m", sent, call=RequestContext(owner=chat.client))))
        thought = f"thought {self.thinker.thoughts}"
        self.places[thought] = (chat.client, place(messages, collapse=step.rebuild))
        self.check(chat, messages, collapse=step.rebuild)
        turn = assistant("answer")
        if "call" in messages[-1]["content"]:
            arguments = [orjson.dumps({"city": city}).decode() for city in "AB"]
            number = self.thinker.thoughts
            said = [(f"id{number}.{at}", "f", text) for at, text in enumerate(arguments)]
            turn = assistant(None, *said)
        self.chats.append(
            Chat(chat.client, (*messages, turn), (*chat.thoughts, thought), chat.edited)
        )

    async def ask(self, request: ChatRequest) -> None:
        async for _ in self.recall.stream(request):
            pass

    def check(self, chat: Chat, messages: Sequence[Json], collapse: bool) -> None:
        positions = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
        assert len(self.thinker.seen) == len(messages)
        for at in positions:
            thought = self.thinker.seen[at].get("reasoning_content")
            if thought is None:
                assert chat.edited
            else:
                client, where = self.places[thought]
                assert client == chat.client
                assert where == place(messages[:at], collapse=collapse)


def with_edit(chat: Chat) -> Chat:
    """Change the words of the last turn that has any."""
    at = max(at for at, message in enumerate(chat.messages) if message["content"])
    message = chat.messages[at]
    changed = {**message, "content": message["content"] + "!"}
    messages = (*chat.messages[:at], changed, *chat.messages[at + 1 :])
    return Chat(chat.client, messages, chat.thoughts, edited=True)


def continued(chat: Chat, step: Step) -> list[Json]:
    calls = chat.messages[-1].get("tool_calls") if chat.messages else None
    if calls:
        pairs = zip(calls, step.words, strict=True)
        return [result(call["id"], word) for call, word in pairs]
    return [user(("call " if step.call else "say ") + step.words)]


def place(messages: Sequence[Json], *, collapse: bool) -> bytes:
    """A conversation without its ids; with what a client that rebuilds it leaves of it."""
    if collapse:
        messages = rebuilt(messages, lambda: "")
    said = []
    for message in messages:
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        said.append([message["role"], message["content"] or "", calls])
    return orjson.dumps(said)


def steps(**kinds: st.SearchStrategy[bool]) -> st.SearchStrategy[list[Step]]:
    step = st.builds(
        Step,
        which=st.integers(0, 20),
        words=st.sampled_from(["xx", "xy", "yy"]),
        call=st.booleans(),
        edit=st.sampled_from([False, False, False, True]),
        **kinds,
    )
    return st.lists(step, min_size=2, max_size=14)


@given(steps(rebuild=st.just(False)))
def test_a_thought_stays_in_its_conversation(walk: list[Step]) -> None:
    world = World()
    for step in walk:
        world.go(step)


@given(steps(rebuild=st.just(True)))
def test_rebuilding_the_history_loses_no_thought_and_mixes_none(walk: list[Step]) -> None:
    world = World()
    for step in walk:
        world.go(step)


def test_the_check_sees_a_thought_in_a_wrong_place() -> None:
    world = World()
    world.go(Step(0, "xx", call=True, edit=False))
    world.places["thought 1"] = ("b", world.places["thought 1"][1])
    with pytest.raises(AssertionError):
        world.go(Step(2, "xx", call=False, edit=False))
