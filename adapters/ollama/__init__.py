"""Ollama's own API, `/api/chat`: its compatible endpoint loses tools, thoughts and errors."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace

import orjson

from adapters.errors import GatewayError, Refused
from adapters.kind import Kind, Service, Settings
from adapters.leaf import Leaf
from adapters.ollama.abilities import Abilities, AbilityCache
from adapters.ollama.decode import State, close, decode, decode_answer
from adapters.ollama.encode import Options, encode, is_call_forced
from adapters.ollama.window import MINIMUM, fitting, grown, needed, overflow
from adapters.protocol import ChatRequest, Events, Json, Planned
from adapters.shared.embeddings import EmbeddingRequest, answer
from adapters.shared.model_list import PATIENCE, Listed
from adapters.shared.think_tags import Splitter
from adapters.shared.toolbox import toolbox
from adapters.shared.traits import Traits
from adapters.wire.exchange import Exchange, converse
from adapters.wire.framing import Ndjson
from adapters.wire.http import Link
from adapters.wire.json_text import objects_in

PATH = "/api/chat"
_START = "ollama serve"
_ENDINGS = ("/api/chat", "/v1/chat/completions", "/api", "/v1")


def connect(settings: Settings[Options]) -> Ollama:
    address = settings.link.base_url.rstrip("/")
    for ending in _ENDINGS:
        address = address.removesuffix(ending)
    least = settings.options.min_num_ctx
    if type(least) is not int or least < 1:
        raise ValueError(f"min_num_ctx is {least!r}: write a number of tokens such as {MINIMUM}")
    link = replace(settings.link, base_url=address, started_by=_START)
    return Ollama(link, settings.options, AbilityCache(link, settings.abilities))


@dataclass(slots=True)
class Ollama(Leaf):
    link: Link
    options: Options
    asked: AbilityCache
    # State between requests, because the server has it: another window makes it load the model
    # again, so one size serves all requests and only grows.
    windows: dict[str, int] = field(default_factory=dict)

    async def stream(self, request: ChatRequest) -> Events:
        abilities = await self.asked.of(request.model)
        exchange, window = self._exchange(request, abilities, kept=True)
        # Only for models the server knows: clients must not fill the table with names.
        if abilities.context_length and window > self.windows.get(request.model, 0):
            self.windows[request.model] = window
        try:
            async with aclosing(converse(self.link, exchange, request.call)) as events:
                async for batch in events:
                    yield batch
        except Refused as error:
            if "does not support" in error.message:
                self.asked.forget(request.model)
            raise

    async def calls_tools(self, model: str) -> bool | None:
        """What `/api/show` or the config says; None: neither does."""
        return (await self.asked.of(model)).tools

    async def models(self) -> Listed:
        tags = await self.link.fetch("GET", "/api/tags", None, PATIENCE)
        listed = tags.get("models") if isinstance(tags, dict) else None
        names = [one.get("model") or one.get("name") for one in objects_in(listed)]
        return {name: Traits() for name in names if isinstance(name, str)}

    async def traits(self, model: str) -> Traits:
        with suppress(GatewayError):
            await self.asked.of(model)
        return self.known(model)

    def known(self, model: str) -> Traits:
        able = self.asked.known(model)
        return Traits(
            context_length=self.options.num_ctx or able.context_length,
            tools=able.tools,
            parallel=able.tools,
            vision=able.vision,
            reasoning=able.thinking,
            json_schema=True,
            family=able.family or None,
        )

    async def embed(self, request: EmbeddingRequest) -> Json:
        body: Json = {"model": request.model, "input": request.texts}
        if (size := request.params.get("dimensions")) is not None:
            body["dimensions"] = size
        link = self.link.opened_with(request.call.key)
        said = await link.ask("/api/embed", orjson.dumps(body), request.call.capture)
        said = said if isinstance(said, dict) else {}
        return answer(request, said.get("embeddings"), said.get("prompt_eval_count"))

    def may_think(self, request: ChatRequest) -> bool:
        return self.asked.known(request.model).thinking is not False

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        exchange, _ = self._exchange(request, self.asked.known(request.model))
        return (Planned(self.link.name, self.link.url(PATH), exchange.body, exchange.receipt),)

    def _exchange(
        self, request: ChatRequest, abilities: Abilities, kept: bool = False
    ) -> tuple[Exchange[State], int]:
        """Return also the window it chose to ask for, 0 where somebody said which."""
        box = toolbox(request)
        body, receipt, pictures = encode(request, box, abilities, self.options, kept)
        tokens, window, chosen = needed(body, pictures), body["options"].get("num_ctx"), 0
        if window is None:
            window = chosen = self._window(request.model, tokens, abilities.context_length)
            body = {**body, "options": {**body["options"], "num_ctx": window}}
        shaped = "tools" in body and "format" in body
        state = State(
            calls=box.calls(request.call.id),
            schemas={tool.name: tool.parameters for tool in box.offered},
            shaped=shaped,
            must_call=is_call_forced(box),
            thought=Splitter() if abilities.inline_think and not shaped else None,
            window=window if type(window) is int else None,
        )
        receipt += overflow(tokens, window)
        streamed = request.call.streamed
        return Exchange(
            PATH, body, receipt, state, streamed, Ndjson, decode, close, decode_answer
        ), chosen

    def _window(self, model: str, tokens: int, most: int | None) -> int:
        if held := self.windows.get(model):
            return grown(tokens, held, most)
        return fitting(tokens, self.options.min_num_ctx, most)


def _has_model(listed: Collection[str], name: str) -> bool:
    """A name without a tag is that of the latest; those "-cloud" run elsewhere, unlisted."""
    return name in listed or f"{name}:latest" in listed or name.endswith("cloud")


KIND = Kind(
    name="ollama",
    about="Ollama's own API, `/api/chat`.",
    connect=connect,
    options=Options,
    abilities=Abilities,
    base_url="http://127.0.0.1:11434",
    endings=_ENDINGS,
    # It loads a model in silence for minutes, and is healthy.
    timeouts={"first_event": 600, "idle": 300},
    leaks=True,
    loads=True,
    start_command=_START,
    fetch_command="ollama pull",
    has_model=_has_model,
    services={"ollama": Service("ollama", aliases=("ollamachat",))},
    language="ollama",
)
