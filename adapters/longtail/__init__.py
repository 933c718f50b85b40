"""Every provider without a leaf of its own, through LiteLLM: imported at start, and only if used.

LiteLLM answers in OpenAI's shape, so its answers are read as any compatible server's. What it loses
on the way is lost: above all it may end a stream that broke off with a "stop" of its own, which
nobody behind it can tell from a true one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import orjson

from adapters import compatible
from adapters.compatible import EncodedRequest, exchange
from adapters.compatible.dialect import Dialect
from adapters.compatible.replay import RecordedCompletions
from adapters.compatible.vectors import read_vectors
from adapters.errors import GatewayError, from_words
from adapters.kind import Kind, Service, Settings
from adapters.leaf import Leaf
from adapters.options import TABLE, option
from adapters.protocol import ChatRequest, Event, Events, Json, Planned, RequestContext
from adapters.shared.embeddings import EmbeddingRequest
from adapters.shared.fields import Fields, unsupported
from adapters.wire.clock import Clock
from adapters.wire.exchange import Listener, next_piece
from adapters.wire.failures import timed_out
from adapters.wire.http import Link

# LiteLLM takes connection details, callbacks and file names from the same place as a model's own
# parameters, so of a client's further fields only these reach it.
_EXTRAS = frozenset({"min_p", "repetition_penalty", "thinking", "top_a", "top_k"})
# Without these the answer would mean something else; the rest only tunes it.
_MEANING = frozenset({"audio", "logprobs", "modalities", "response_format", "web_search_options"})
# It knows no custom tools and no choice among some; it hands thoughts back where they are wanted.
_SPOKEN = Dialect(extra_fields=False, reasoning_echo=True)

# There is one retry layer, and it is ours.
_ONCE: Mapping[str, int] = {"num_retries": 0, "max_retries": 0}
# What our own transport sets; LiteLLM has one of its own.
_TRANSPORT = ("accept-encoding", "content-type", "user-agent")

Complete = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Options:
    litellm: Mapping[str, Any] | None = option("Further arguments of LiteLLM's own", TABLE)


@dataclass(frozen=True, slots=True)
class Library:
    """What of LiteLLM is used."""

    complete: Complete
    """`litellm.acompletion`."""
    embed: Complete
    """`litellm.aembedding`."""
    supported: Callable[..., list[str] | None]
    """`litellm.get_supported_openai_params`; None: it does not know the model."""
    failures: tuple[type[Exception], ...] = ()
    """What it raises; each has the upstream's status."""


def encode(request: ChatRequest, supported: frozenset[str] | None) -> EncodedRequest:
    known = {name: value for name, value in request.extra.items() if name in _EXTRAS}
    foreign = {name: value for name, value in request.extra.items() if name not in _EXTRAS}
    fields = Fields(request.params)
    # LiteLLM keeps it for its own log.
    fields.lose("metadata", "it would not reach the model")
    if supported is not None:
        _require_supported(request, supported, fields)
    sent = replace(request, params=fields.take_all(request.params), extra=foreign)
    written = compatible.encode(sent, _SPOKEN, fields.notes)
    return EncodedRequest(written.body | known, written.receipt, written.box)


def _require_supported(request: ChatRequest, supported: frozenset[str], fields: Fields) -> None:
    """LiteLLM answers a parameter its provider lacks with a 400: the harmless ones are left out."""
    if request.tools and "tools" not in supported:
        raise unsupported("tools", "LiteLLM knows no tools for this model. Leave 'tools' out.")
    for name in request.params:
        if name in supported or name in ("n", "stream_options", "parallel_tool_calls"):
            continue
        if name in _MEANING:
            fields.refuse(name, f"LiteLLM has no '{name}' for this model. Leave it out.")
        fields.lose(name, "LiteLLM has nothing like it for this model")


@dataclass(frozen=True, slots=True)
class Longtail(Leaf):
    link: Link
    library: Library
    credentials: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Where it is, what opens it, and further arguments the config gives LiteLLM."""

    async def stream(self, request: ChatRequest) -> Events:
        written = self._written(request)
        link = self.link.opened_with(request.call.key)
        clock = Clock(self.link.timeouts, request.call.deadline, request.call.now)
        listener = Listener(link, exchange(written, request.call), {})
        opened = self._opened(request.call)
        answer = _Answer(
            partial(self.library.complete, **written.body, **opened, **_ONCE),
            replace(self, link=link)._within,
        )
        source = link.tapped(answer, _url(request.model), written.body, request.call.capture)
        events: Sequence[Event] = ()
        try:
            while not listener.over:
                data = await next_piece(source, clock, listener, events)
                if events := listener.feed(data):
                    yield events
                if listener.failure is not None:
                    raise listener.failure
        finally:
            await answer.close()

    async def embed(self, request: EmbeddingRequest) -> Json:
        asked = {"model": request.model, "input": request.texts, **request.params}
        answer = _Answer(
            partial(self.library.embed, **asked, **self._opened(request.call)), self._within
        )
        source = self.link.tapped(answer, _url(request.model), asked, request.call.capture)
        due = asyncio.get_running_loop().time() + self.link.timeouts.whole
        return read_vectors(orjson.loads(await source.read(due)), self.link)

    async def _within(self, waited: Awaitable[Any], due: float) -> Any:
        try:
            async with asyncio.timeout_at(due):
                return await waited
        except TimeoutError as error:
            raise timed_out(self.link.name, "did not answer in time") from error
        except self.library.failures as error:
            raise _failure(error, self.link) from error

    def _opened(self, call: RequestContext) -> Mapping[str, Any]:
        if not self.link.opened_by:
            return self.credentials
        self.link.opened_with(call.key)  # or says that there is none
        return {**self.credentials, "api_key": call.key} if call.key else self.credentials

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        written = self._written(request)
        return (Planned(self.link.name, _url(request.model), written.body, written.receipt),)

    def _written(self, request: ChatRequest) -> EncodedRequest:
        supported = self.library.supported(model=request.model)
        return encode(request, None if supported is None else frozenset(supported))


def _url(model: str) -> str:
    return f"litellm:{model}"


class _Answer:
    """LiteLLM's answer as the bytes a compatible server would have sent; the first read asks."""

    def __init__(
        self,
        ask: Callable[[], Awaitable[Any]],
        within: Callable[[Awaitable[Any], float], Awaitable[Any]],
    ) -> None:
        self._ask: Callable[[], Awaitable[Any]] | None = ask
        self._within = within
        """Waits for LiteLLM until then; its failures come as ours."""
        self._chunks: AsyncIterator[Any] | None = None

    async def read(self, due: float) -> bytes:
        if self._ask is not None:
            ask, self._ask = self._ask, None
            answer = await self._within(ask(), due)
            if not hasattr(answer, "__aiter__"):
                return orjson.dumps(answer.model_dump())
            self._chunks = aiter(answer)
        if self._chunks is None:
            return b""
        chunk = await self._within(anext(self._chunks, None), due)
        return b"data: %b\n\n" % orjson.dumps(chunk.model_dump()) if chunk is not None else b""

    async def close(self) -> None:
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()


def _failure(error: Exception, link: Link) -> GatewayError:
    status = getattr(error, "status_code", None)
    words = getattr(error, "message", None) or str(error)
    found = from_words(status if isinstance(status, int) else 500, words, link.name, link.secrets)
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    found.retry_after = headers.get("retry-after")
    return link.explained(found)


def connect(settings: Settings[Options]) -> Longtail:
    # Else it fetches its price list from the web while it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm
    import openai

    litellm.suppress_debug_info = True  # it prints advice to the console
    library = Library(
        complete=litellm.acompletion,
        embed=litellm.aembedding,
        supported=litellm.get_supported_openai_params,
        failures=(openai.OpenAIError,),
    )
    return Longtail(settings.link, library, _credentials(settings))


def _credentials(settings: Settings[Options]) -> Json:
    """From the config only: never from a client."""
    link, given = settings.link, dict(settings.options.litellm or {})
    headers = {name: value for name, value in link.headers.items() if name not in _TRANSPORT}
    key = headers.pop("authorization", "").removeprefix("Bearer ") or headers.pop("x-api-key", "")
    found = {"api_key": key, "api_base": link.base_url, "extra_headers": headers}
    return {name: value for name, value in found.items() if value} | given


_ALIASES = ("bedrock", "azure", "azureopenai", "vertex", "vertexai", "cohere")
KIND = Kind(
    name="longtail",
    about="LiteLLM, for providers without a kind of their own.",
    connect=connect,
    options=Options,
    needs_address=False,
    recorded=lambda settings: RecordedCompletions(settings.link),
    finds_keys=True,
    catalog=("",),
    services={"litellm": Service("longtail", aliases=_ALIASES)},
)
