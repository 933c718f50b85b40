"""`ServerTools`: asks the model, runs what it calls here, and asks again until it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import orjson

from adapters.protocol import (
    Aside,
    ChatRequest,
    Event,
    Events,
    FinishReason,
    Journey,
    Json,
    Planned,
)
from adapters.receipts import Note, Receipt
from middleware.wrappers.base import Wrapper, noted, noting
from middleware.wrappers.recall import Store
from middleware.wrappers.server_tools.client_answer import ClientAnswer
from middleware.wrappers.server_tools.hidden import HiddenRounds
from middleware.wrappers.server_tools.menu import Menu, ServerToolSettings, ToolSource, menu_of
from middleware.wrappers.server_tools.passage import Passage
from middleware.wrappers.server_tools.round import Round, RoundCall
from middleware.wrappers.server_tools.runner import Runner


@dataclass(frozen=True, slots=True)
class ServerTools(Wrapper):
    shelf: ToolSource
    settings: ServerToolSettings
    store: Store | None = None
    """Keeps rounds that clients do not see."""
    thinks: Callable[[ChatRequest], bool] | None = None
    """Says which requests have thoughts that go up again; None: those are remembered elsewhere."""

    @property
    def tells_thoughts(self) -> bool:
        """Whether clients have to hold what of them upstreams want back."""
        return self.thinks is not None

    def stream(self, request: ChatRequest) -> Events:
        if request.call.journey is None:  # pins are of the whole request
            request = replace(request, call=replace(request.call, journey=Journey()))
        hidden = self._hidden(request)
        return self._from_afar(request, hidden) if hidden.is_far else self._answer(request, hidden)

    async def _from_afar(self, request: ChatRequest, hidden: HiddenRounds) -> Events:
        await hidden.bring_near()
        async with aclosing(self._answer(request, hidden)) as events:
            async for batch in events:
                yield batch

    def _answer(self, request: ChatRequest, hidden: HiddenRounds) -> Events:
        menu = self._menu(request, hidden)
        receipt = hidden.receipt() + menu.receipt
        if not menu.known:
            events = self.inner.stream(menu.request)
            return noting(events, receipt) if receipt else events
        if (capture := request.call.capture) is not None:
            capture.offer(menu.known)
        return _Conversation(self, request, menu, hidden, receipt).events()

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        hidden = self._hidden(request)
        found = self._menu(request, hidden)
        return noted(self.inner.plan(found.request), hidden.receipt() + found.receipt)

    def _hidden(self, request: ChatRequest) -> HiddenRounds:
        return HiddenRounds(request, self.store, self.settings.model)

    def _menu(self, request: ChatRequest, hidden: HiddenRounds) -> Menu:
        whole = hidden.request(steps_as_thoughts=self.settings.steps == "reasoning")
        return menu_of(whole, self.shelf, self.settings)

    def runner(self, request: ChatRequest, journey: Journey) -> Runner:
        context = self.shelf.context(request, self.settings.model)
        return Runner(self.shelf, context, journey, self.settings.steps, request.call.capture)


@dataclass(slots=True)
class _Conversation:
    """One request of a client: all of its rounds."""

    wrapper: ServerTools
    asked: ChatRequest
    menu: Menu
    hidden: HiddenRounds
    receipt: Receipt
    runner: Runner | None = None
    """Made for the first call."""
    said: list[Json] = field(default_factory=list)
    """What came since the client's last message."""
    taken: Round | None = None
    """The last round that is part of it."""
    sources: list[Json] = field(default_factory=list)
    left: int | None = field(init=False)
    """Calls that may still be run; None: as many as the rounds have."""

    def __post_init__(self) -> None:
        self.left = self.asked.call.most_calls

    async def events(self) -> Events:
        request, number, journey = self.menu.request, 0, self.asked.call.journey
        assert journey is not None
        client = ClientAnswer(self.receipt, _wants_json(request))
        while True:
            number += 1
            answer = Round(number, self.menu.of_client, self.left)
            journey.rounds = number
            passage = self._passage(answer, client)
            async with aclosing(self.wrapper.inner.stream(request)) as events:
                async for batch in events:
                    if told := passage.told(batch):
                        yield told
            if passage.untouched:
                return
            client.use(answer)
            if not answer.run_here or not self._may_run(number):
                break
            async with aclosing(self._run(answer, client, journey)) as steps:
                async for told in steps:
                    yield told
            if answer.has_client_calls:
                break
            client.next_round()
            request = await self._next(answer, journey)
        if last := tuple(await self._end(answer, client)):
            yield last

    def _passage(self, answer: Round, client: ClientAnswer) -> Passage:
        untouched = answer.number == 1 and not client.beside_json
        return Passage(answer, client, self.receipt, untouched, self.wrapper.tells_thoughts)

    async def _run(self, answer: Round, client: ClientAnswer, journey: Journey) -> Events:
        """Run the calls of a round; what is yielded is for the client."""
        self.runner = self.runner or self.wrapper.runner(self.asked, journey)
        async with aclosing(self.runner.run(self.menu, answer)) as steps:
            async for step in steps:
                yield tuple(client.tell((step,)))
        self._take(answer)
        if told := tuple(client.note(self._receipt(answer, answer.number))):
            yield told

    def _may_run(self, number: int) -> bool:
        """Whether tools are offered in this round."""
        return number <= self.wrapper.settings.max_rounds and self.left != 0

    def _take(self, answer: Round) -> None:
        """Add a round to what was said."""
        turn = answer.turn()
        if self.wrapper.thinks is not None and self.wrapper.thinks(self.menu.request):
            turn |= answer.own_thoughts()
        self.said += [turn, *answer.results()]
        self.taken = answer
        if self.left is not None:
            self.left -= len(answer.run_here)
        for call in answer.run_here:
            if call.result is not None:
                self.sources += call.result.sources

    async def _next(self, answer: Round, journey: Journey) -> ChatRequest:
        """What the model is asked in the next round."""
        if (before := journey.before_next_ask) is not None:
            waiting = before(len(orjson.dumps(self.said)))
            if waiting is not None:
                await waiting
        # A call that was forced has been made, unless it was of what nobody offered.
        obeyed = any(call.start.name in self.menu.run_here for call in answer.run_here)
        request = self.menu.without_choice() if obeyed else self.menu.request
        following = answer.number + 1
        if self.left == 0:
            self.menu = self.menu.of_client_alone()
            request = self.menu.without_choice()
        elif not self._may_run(following):
            request = self.menu.without_tools()
        # Ids that a leaf makes are made of this one.
        call = replace(request.call, id=f"{request.call.id}_{following}")
        return replace(request, messages=(*request.messages, *self.said), call=call)

    def _receipt(self, answer: Round, number: int) -> Receipt:
        cut = tuple(self._cut(call) for call in answer.run_here if call.result and call.result.cut)
        if answer.has_client_calls or self._may_run(number + 1):
            return cut
        if self.left == 0:
            text = f"after {self.asked.call.most_calls} calls the gateway offered no tools any more"
            return (*cut, Note("rounds_exhausted", "max_tool_calls", text))
        text = f"after {number} rounds the model was asked to answer without tools"
        return (*cut, Note("rounds_exhausted", "max_rounds", text))

    def _cut(self, call: RoundCall) -> Note:
        offer = self.menu.run_here[call.start.name]
        assert call.result is not None
        text = f"the result of '{offer.name}' had {call.result.characters} characters"
        return Note("result_cut", f"tools.{offer.table}", text)

    async def _end(self, answer: Round, client: ClientAnswer) -> Iterable[Event]:
        finish = answer.finish
        if finish is None:  # the stream broke, and the door says so
            return ()
        events = [*client.release()]
        if self.said:
            events += client.note(await self._keep(answer, client))
        elif self.wrapper.tells_thoughts:
            # Beside hidden rounds nobody could say to which of them they belong.
            events += client.tell(answer.asides)
        events += client.tell(self._members())
        return [*events, *client.end(finish, answer.number, _reason(answer, finish.reason))]

    def _members(self) -> Iterator[Event]:
        if self.sources:
            yield Aside("annotations", self.sources)
        if self.runner is not None and self.runner.done:
            yield Aside("steps", self.runner.done)

    async def _keep(self, answer: Round, client: ClientAnswer) -> Receipt:
        own = [call.call() for call in answer.calls if call.of_client]
        if self.taken is not answer:
            self.said.append(answer.turn())
        return await self.hidden.keep("".join(client.text), self.said, own)


def _reason(answer: Round, said: FinishReason) -> FinishReason:
    if said in ("length", "content_filter"):
        return said
    if answer.has_client_calls:
        return "tool_calls"
    # Else it called what it was not offered.
    return "stop" if said == "tool_calls" and answer.calls else said


def _wants_json(request: ChatRequest) -> bool:
    form = request.params.get("response_format") or {}
    return form.get("type") in ("json_object", "json_schema")
