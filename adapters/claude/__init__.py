"""Anthropic Messages: Claude, and every server that speaks its language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import orjson

from adapters.claude.capabilities import Capability, capabilities, traits_of
from adapters.claude.decode import State, close, decode, decode_answer
from adapters.claude.encode import Options, Profile, encode, must_stream
from adapters.claude.parameters import Betas, betas_of
from adapters.claude.tools import box_of
from adapters.errors import GatewayError
from adapters.kind import Kind, Service, Settings
from adapters.leaf import Leaf
from adapters.protocol import ChatRequest, Events, Planned
from adapters.shared.model_list import Listed, models_at
from adapters.shared.traits import Traits
from adapters.shared.usage import figure
from adapters.wire.exchange import Exchange, converse
from adapters.wire.framing import Sse
from adapters.wire.http import Link

PATH = "/v1/messages"
API_VERSION = "2023-06-01"
LANGUAGE = "anthropic"
_COUNTED = frozenset(
    {
        *("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"),
        *("cache_control", "context_management", "mcp_servers"),
    }
)


@dataclass(frozen=True, slots=True)
class Claude(Leaf):
    settings: Settings[Options]
    capability: Callable[[str], Capability] = field(compare=False, repr=False)

    def stream(self, request: ChatRequest) -> Events:
        betas = self._betas(request)
        exchange = self._exchange(request, betas, kept=True)
        return converse(self._link(betas), exchange, request.call)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        link, exchange = self.settings.link, self._exchange(request, self._betas(request))
        return (Planned(link.name, link.url(PATH), exchange.body, exchange.receipt),)

    async def models(self) -> Listed:
        return await models_at(self.settings.link, "/v1/models?limit=1000")

    def known(self, model: str) -> Traits:
        return traits_of(model, self.settings.abilities)

    def may_think(self, request: ChatRequest) -> bool:
        able = self.capability(request.model)
        if able.unasked or able.thinking == "always" or "thinking" in request.extra:
            return True
        return request.params.get("reasoning_effort") not in (None, "none")

    async def count_tokens(self, request: ChatRequest) -> int | None:
        betas = self._betas(request)
        link, exchange = self._link(betas), self._exchange(request, betas, kept=True)
        body = {name: said for name, said in exchange.body.items() if name in _COUNTED}
        if link.opened_by:
            link = link.opened_with(request.call.key)
        try:
            told = await link.ask(f"{PATH}/count_tokens", orjson.dumps(body))
        except GatewayError:
            return None
        return figure(told.get("input_tokens")) if isinstance(told, dict) else None

    def _betas(self, request: ChatRequest) -> Betas:
        return betas_of(request.call, self.settings.options.betas, self.settings.link)

    def _link(self, betas: Betas) -> Link:
        link = self.settings.link
        return replace(link, headers={**link.headers, **betas.headers}) if betas.passed else link

    def _exchange(self, request: ChatRequest, betas: Betas, kept: bool = False) -> Exchange[State]:
        settings = self.settings
        able = self.capability(request.model)
        version = settings.api_version or API_VERSION
        profile = Profile(able, version, settings.options, betas)
        box = box_of(request, able)
        body, receipt = encode(request, box, profile, kept)
        streamed = request.call.streamed or must_stream(body, able)
        if streamed:
            body["stream"] = True
        state = State(box.calls(request.call.id))
        state.own = request.native is not None
        return Exchange(PATH, body, receipt, state, streamed, Sse, decode, close, decode_answer)


def connect(settings: Settings[Options]) -> Claude:
    """Make the adapter; a base_url may end in `/v1` or not."""
    version = settings.api_version or API_VERSION
    link = replace(
        settings.link,
        base_url=settings.link.base_url.rstrip("/").removesuffix("/v1"),
        headers={**settings.link.headers, "anthropic-version": version},
    )
    settings = replace(settings, link=link, api_version=version)
    return Claude(settings, capabilities(settings.abilities))


KIND = Kind(
    name="claude",
    about="Anthropic Messages: Claude, and every server that speaks its language.",
    connect=connect,
    options=Options,
    abilities=Capability,
    base_url="https://api.anthropic.com",
    endings=("/v1/messages", "/v1"),
    beginnings=("", "/anthropic", "/api/anthropic"),
    auth="x-api-key",
    api_version=API_VERSION,
    known_by_name=lambda model: traits_of(model, {}),
    catalog=("", "anthropic/"),
    services={"anthropic": Service("claude", variable="ANTHROPIC_API_KEY", aliases=("claude3",))},
    provider="anthropic",
    language=LANGUAGE,
)
