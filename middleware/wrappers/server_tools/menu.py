"""Which tools a request has: the client's, and beside them those that are run here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from adapters.protocol import ChatRequest, Json
from adapters.receipts import Note, Receipt
from adapters.shared.carriers import with_search
from middleware.tools.tool import Offer, Say, ToolContext, ToolResult

Steps = bool | str
"""Whether clients see what tools do, or "reasoning"."""
_WANTS_ITS_OWN = frozenset({"required", "any"})


class ToolSource(Protocol):
    """Where tools are, and what runs them: `middleware.tools.shelf.ToolShelf`."""

    def offers(self, patterns: Sequence[str], client: str) -> Mapping[str, Offer]: ...

    def taken(
        self, takeover: Collection[str], declared: Collection[str], client: str
    ) -> Mapping[str, Offer]: ...

    def context(self, request: ChatRequest, model: str) -> ToolContext: ...

    async def run(
        self, offer: Offer, arguments: str, context: ToolContext, say: Say | None = None
    ) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class ServerToolSettings:
    """What the config says of a model's server tools."""

    model: str
    """Its public name."""
    patterns: tuple[str, ...] = ()
    takeover: tuple[str, ...] = ()
    """Tools that clients may declare and that are run here all the same."""
    max_rounds: int = 8
    steps: Steps = False
    """How runs of tools are shown to clients."""


@dataclass(frozen=True, slots=True)
class Menu:
    """The tools of one request."""

    request: ChatRequest
    """With all of them."""
    run_here: Mapping[str, Offer]
    """By the names the model sees."""
    of_client: frozenset[str]
    asked: ChatRequest
    """With what the client declared alone."""
    receipt: Receipt = ()
    known: tuple[Json, ...] = ()
    """What a recording needs of all that the client may have, whether offered now or not."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*sorted(self.of_client), *self.run_here)

    def without_choice(self) -> ChatRequest:
        """For the rounds behind the first: a call that was forced has been made."""
        choice = self.request.tool_choice
        return replace(self.request, tool_choice=None) if _is_forced(choice) else self.request

    def of_client_alone(self) -> Menu:
        """Where nothing may be run here any more: what the client declared, it runs itself."""
        declared = frozenset(map(_name, self.asked.tools))
        return Menu(self.asked, {}, declared, self.asked, known=self.known)

    def without_tools(self) -> ChatRequest:
        return replace(self.request, tools=(), tool_choice=None)


def menu_of(request: ChatRequest, shelf: ToolSource, settings: ServerToolSettings) -> Menu:
    declared = [_name(tool) for tool in request.tools]
    client, choice = request.call.client, request.tool_choice
    own, taken = shelf.offers(settings.patterns, client), _taken(request, shelf, settings)
    searches: Mapping[str, Offer] = {}
    if request.native is not None and request.native.search:
        searches = _searches({**own, **shelf.taken(settings.takeover, settings.takeover, client)})
    known = (*map(_recorded, {**own, **searches}.values()), *_only_taken(own, taken))
    if choice == "none":
        return Menu(request, {}, frozenset(declared), request, known=known)
    if searches and request.native is not None:
        request = replace(request, native=with_search(request.native))
    own = {**({} if _is_forced(choice) else own), **searches}
    added = {name: offer for name, offer in own.items() if name not in declared}
    shadowed = own.keys() - added.keys() - taken.keys()
    return Menu(
        _with_tools(request, added) if added else request,
        {**taken, **added},
        frozenset(declared) - taken.keys(),
        request,
        tuple(_shadowed(own[name]) for name in sorted(shadowed)),
        known,
    )


def _recorded(offer: Offer) -> Json:
    return {**offer.declaration, "id": offer.tool.id}


def _only_taken(own: Mapping[str, Offer], taken: Mapping[str, Offer]) -> Iterator[Json]:
    """The client says what they look like."""
    for name in taken:
        if name not in own:
            said = {"type": "function", "function": {"name": name}, "id": taken[name].tool.id}
            yield {**said, "takeover": True}


def _with_tools(request: ChatRequest, added: Mapping[str, Offer]) -> ChatRequest:
    more = tuple(offer.declaration for offer in added.values())
    choice = _widened(request.tool_choice, added)
    return replace(request, tools=(*request.tools, *more), tool_choice=choice)


def _name(tool: Json) -> str:
    name: str = tool[tool.get("type", "function")]["name"]
    return name


def _is_forced(choice: str | Json | None) -> bool:
    """Whether the client wants a call of its own tools."""
    if isinstance(choice, dict):
        allowed = choice["type"] == "allowed_tools"
        return not allowed or bool(choice["allowed_tools"]["mode"] == "required")
    return choice in _WANTS_ITS_OWN


def _widened(choice: str | Json | None, added: Mapping[str, Offer]) -> Any:
    """What a client allows is said of its own tools."""
    if not isinstance(choice, dict):
        return choice
    allowed = choice["allowed_tools"]
    more = [{"type": "function", "function": {"name": name}} for name in added]
    return {**choice, "allowed_tools": {**allowed, "tools": [*allowed["tools"], *more]}}


def _taken(
    request: ChatRequest, shelf: ToolSource, settings: ServerToolSettings
) -> Mapping[str, Offer]:
    """What the client declares and is run here."""
    if not settings.takeover:
        return {}
    functions = [_name(tool) for tool in request.tools if "function" in tool]
    return shelf.taken(settings.takeover, functions, request.call.client)


def _searches(every: Mapping[str, Offer]) -> Mapping[str, Offer]:
    return {name: offer for name, offer in every.items() if offer.tool.searches}


def _shadowed(offer: Offer) -> Note:
    text = f"the client has a tool '{offer.name}' of its own: that one counts"
    return Note("tool_shadowed", f"tools.{offer.table}", text)
