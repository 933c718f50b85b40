"""Whatever a model calls, and whatever its client makes of it: calls reach whom they are for, once,
and in each turn the model reads what it said and was told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from adapters.protocol import Event, Json
from adapters.shared.history import canonical
from middleware.tools.tool import Say, ToolContext, ToolResult
from middleware.wrappers.recall import MemoryStore
from tests.support.adapters import FakeAdapter
from tests.support.fold import Answer, fold
from tests.support.tools import FakeShelf
from tests.wrappers.server_tools.rounds import (
    CLIENT_TOOL,
    Call,
    asked,
    calling,
    echo,
    saying,
    wrapped,
)

HERE, THERE, NOWHERE = "now", "mine", "strange"
Scripted = tuple[tuple[Event, ...], list[Call]]
"""What the model answers, and the calls in it."""


@dataclass(frozen=True)
class Said:
    """One answer of the model."""

    text: str
    calls: tuple[str, ...]

    @property
    def ends(self) -> bool:
        """Whether it is the client's turn."""
        return not self.calls or THERE in self.calls


@dataclass(frozen=True)
class Manners:
    """What a client does to a turn before it sends it back."""

    mints: bool
    """Its calls get ids of its own."""
    drops: bool
    """Text beside calls is lost."""


SAID = st.builds(
    Said,
    st.sampled_from(["", "Wait.", "So."]),
    st.lists(st.sampled_from([HERE, THERE, NOWHERE]), max_size=3).map(tuple),
).filter(lambda said: bool(said.text or said.calls))
ANSWERS = st.lists(SAID, min_size=1, max_size=7)
MANNERS = st.builds(Manners, st.booleans(), st.booleans())


@dataclass
class Talk:
    """Plays model, client and tool; `truth` is what the model has to read in the next request."""

    answers: list[Said]
    manners: Manners
    store: MemoryStore = field(default_factory=MemoryStore)
    messages: list[Json] = field(default_factory=list)
    truth: list[Json] = field(default_factory=list)
    count: int = 0
    ran: list[str] = field(default_factory=list)

    def play(self) -> None:
        self._hear({"role": "user", "content": "what is it like?"})
        while self.answers:
            request = [*self._of_one_request()]
            scripts = [self._script(said) for said in request]
            model = FakeAdapter(*(events for events, _ in scripts))
            before = len(self.ran)
            got = asyncio.run(self._asked(model))
            assert list(model.asked[0].messages) == self.truth
            assert len(model.asked) == len(request)
            for later, (said, (_, made)) in enumerate(zip(request, scripts, strict=True), 1):
                if later < len(request):
                    reads = model.asked[later].messages[len(self.truth) :]
                    assert _names(reads)[-1 - len(made) :] == ["assistant", *map(str, said.calls)]
            own = [call for _, made in scripts for call in made if call[1] == HERE]
            assert sorted(self.ran[before:]) == sorted(arguments for _, _, arguments in own)
            self._check_client_s(got, request, scripts[-1][1])
            self._go_on(got, request, scripts)

    def _of_one_request(self) -> Iterator[Said]:
        while True:
            said = self.answers.pop(0) if self.answers else Said("The end.", ())
            yield said
            if said.ends:
                return

    def _script(self, said: Said) -> Scripted:
        made: list[Call] = []
        for name in said.calls:
            self.count += 1
            made.append((f"c{self.count}", name, f'{{"n":{self.count}}}'))
        events = calling(*made, text=said.text) if made else saying(said.text)
        return events, made

    async def _asked(self, model: FakeAdapter) -> Answer:
        async def run(arguments: str, _context: ToolContext, _say: Say | None) -> ToolResult:
            self.ran.append(arguments)
            return ToolResult(f"gave {arguments}")

        adapter = wrapped(model, FakeShelf(w__now=run), self.store)
        return await fold(adapter.stream(asked(*self.messages, tools=(CLIENT_TOOL,))))

    def _check_client_s(self, got: Answer, request: Sequence[Said], made: Sequence[Call]) -> None:
        assert got.error is None
        assert got.text == "\n\n".join(said.text for said in request if said.text)
        own = [(identity, name, "function", text) for identity, name, text in made if name == THERE]
        assert got.calls == own
        assert got.reason == ("tool_calls" if own else "stop")

    def _go_on(self, got: Answer, request: Sequence[Said], scripts: Sequence[Scripted]) -> None:
        """The client sends the turn back, with results or another question."""
        turn = echo(got)
        if self.manners.drops and got.calls:
            turn["content"] = None
        renamed = {}
        for call in turn.get("tool_calls", ()):
            renamed[call["id"]] = f"own{call['id']}" if self.manners.mints else call["id"]
            call["id"] = renamed[call["id"]]
        sent = [turn, *map(_client_s_result, renamed.values())]
        if not renamed:
            sent.append({"role": "user", "content": "and now?"})
        self.messages += sent
        if all(name == THERE for said in request for name in said.calls):
            self.truth += sent
            return
        for said, (_, made) in zip(request, scripts, strict=True):
            self.truth.append(_turn(said, made))
            self.truth += (_result(call, renamed) for call in made)
        if not renamed:
            self.truth.append(sent[-1])

    def _hear(self, message: Json) -> None:
        self.messages.append(message)
        self.truth.append(message)


def _client_s_result(identity: str) -> Json:
    return {"role": "tool", "tool_call_id": identity, "content": f"of {identity}"}


def _turn(said: Said, made: Sequence[Call]) -> Json:
    calls = [
        {"id": one, "type": "function", "function": {"name": name, "arguments": canonical(text)}}
        for one, name, text in made
    ]
    if not calls:
        return {"role": "assistant", "content": said.text}
    return {"role": "assistant", "content": said.text or None, "tool_calls": calls}


def _result(call: Call, renamed: dict[str, str]) -> Json:
    identity, name, arguments = call
    message: Json = {"role": "tool", "tool_call_id": identity}
    if name == HERE:
        return {**message, "content": f"gave {arguments}"}
    if name == THERE:
        return _client_s_result(renamed[identity]) | message
    told = "Error: there is no tool 'strange'. There are: mine, now."
    return {**message, "content": told, "is_error": True}


def _names(messages: Sequence[Json]) -> list[str]:
    """Roles; of results the names of their tools."""
    calls = [call for one in messages for call in one.get("tool_calls") or ()]
    names = {call["id"]: call["function"]["name"] for call in calls}
    return [
        names[one["tool_call_id"]] if one["role"] == "tool" else one["role"] for one in messages
    ]


@given(answers=ANSWERS, manners=MANNERS)
def test_the_model_reads_what_it_said_and_was_told(answers: list[Said], manners: Manners) -> None:
    Talk([*answers], manners).play()
