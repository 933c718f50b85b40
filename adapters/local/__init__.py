"""The embedded model: a GGUF file, answered for by llama.cpp's own server code.

It runs in a process of its own (`worker`), which may die alone: what strangers make it compile can
end it, and while it loads it answers nobody. It speaks OpenAI's chunks, so they are read as any
compatible server's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from weakref import WeakValueDictionary

import orjson

from adapters.compatible import EncodedRequest, encode, exchange
from adapters.compatible.dialect import Dialect
from adapters.compatible.replay import RecordedCompletions
from adapters.kind import Kind, Settings
from adapters.leaf import Leaf
from adapters.local import limits
from adapters.local.engine import Engine, EngineAnswer, Heard
from adapters.local.files import INSTEAD, WINDOW, Model, find
from adapters.local.keeper import Keeper
from adapters.options import PATH, option, whole
from adapters.protocol import ChatRequest, Event, Events, Planned
from adapters.shared.fields import Fields
from adapters.shared.traits import Traits
from adapters.wire.clock import Clock
from adapters.wire.exchange import Listener, next_piece
from adapters.wire.framing import Ndjson
from adapters.wire.http import Link

_RUNTIME = "xllamacpp"
_LONGEST = 1024
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


@dataclass(frozen=True, slots=True)
class Options:
    max_tokens: int = option("Longest answer if the client does not say", whole(1), _LONGEST)
    num_ctx: int = option("Its context window", whole(1), WINDOW)
    path: str | None = option("A GGUF file; else what was pulled last, else the small model", PATH)
    threads: int | None = option(
        "Threads it computes with; one less than there are cores", whole(1)
    )


_TRAITS = Traits(tools=False, vision=False, json_schema=True)


@dataclass(frozen=True, slots=True)
class Local(Leaf):
    link: Link
    model: Model
    engine: Engine
    longest: int = _LONGEST

    @property
    def name(self) -> str:
        return Path(self.model.path).stem

    @property
    def described(self) -> str:
        """For people: which file it is."""
        return f"Local ({self.name})"

    async def stream(self, request: ChatRequest) -> Events:
        asking = replace(exchange(self._written(request), request.call), framing=Ndjson)
        # Plain requests too: what does not call back cannot be cancelled.
        asking = replace(asking, streamed=True)
        asking.state.model = self.name
        clock = Clock(self.link.timeouts, request.call.deadline, request.call.now)
        listener = Listener(self.link, asking, {})
        answer = EngineAnswer(self.link.name)
        source = self.link.tapped(answer, self._url, asking.body, request.call.capture)
        asked = self.engine.ask(orjson.dumps(asking.body), self._named(answer.hear))
        asked.add_done_callback(answer.over)
        events: Sequence[Event] = ()
        try:
            while not listener.over:
                data = await next_piece(source, clock, listener, events)
                if events := listener.feed(data):
                    yield events
                if listener.failure is not None:
                    raise listener.failure
        finally:
            answer.close(asked)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        written = self._written(request)
        return (Planned(self.link.name, self._url, written.body, written.receipt),)

    def _named(self, hear: Heard) -> Heard:
        """Chunks call the model by its path; where that is concerns no client and no recording."""
        path, name = (b'"model":' + orjson.dumps(one) for one in (self.model.path, self.name))
        return lambda chunk: hear(chunk.replace(path, name))

    @property
    def _url(self) -> str:
        return f"local:{self.name}"

    def known(self, _model: str) -> Traits:
        return replace(_TRAITS, context_length=self.model.window)

    def _written(self, request: ChatRequest) -> EncodedRequest:
        fields = Fields({**request.extra, **request.params})
        for name in _MEANING:
            fields.refuse(name, f"The embedded model has no '{name}'. Leave it out.")
        params = fields.take_all(name for name in request.params if name in _KNOWN)
        extra = fields.take_all(name for name in request.extra if name in _EXTRAS)
        spoken = Dialect(vision=False, longest=self.longest)
        call = replace(request.call, streamed=True)
        sent = replace(request, model=self.name, params=params, extra=extra, call=call)
        fields.name_rest("llama.cpp")
        written = encode(sent, spoken, fields.notes)
        limits.check(written.body)
        body = {**written.body, "return_progress": True}  # so that it calls back while it reads
        return EncodedRequest(body, written.receipt, written.box)


def connect(settings: Settings[Options]) -> Local:
    """Find the model; it is loaded when it is first asked."""
    options = settings.options
    if find_spec(_RUNTIME) is None:
        raise ImportError(
            f"the package '{_RUNTIME}' is missing, of which not every machine has a wheel: "
            f"{INSTEAD}"
        )
    model = Model(
        find(options.path),
        options.num_ctx,
        options.threads or max(1, _cores() - 1),
    )
    return Local(settings.link, model, _engine(model), options.max_tokens)


def _cores() -> int:
    """Of this process, where that can be known. Its threads spin: one too many halves the speed."""
    ours = getattr(os, "sched_getaffinity", None)
    return len(ours(0)) if ours else os.cpu_count() or 1


# What is loaded stays while a config is read anew, serves all models of one file, and goes with the
# last of them.
_ENGINES: WeakValueDictionary[Model, Engine] = WeakValueDictionary()


def _engine(model: Model) -> Engine:
    return _ENGINES.setdefault(model, Engine(Keeper(model).answer))


KIND = Kind(
    name="local",
    about="The embedded model: a GGUF file, answered for by llama.cpp's own server code.",
    connect=connect,
    recorded=lambda settings: RecordedCompletions(settings.link, Ndjson, always_streams=True),
    options=Options,
    needs_address=False,
    timeouts={"first_event": 600},
    remembers=False,
    native_tools=False,
    emulation={"constraint": "lark"},
    known_by_name=lambda _model: _TRAITS,
    loads=True,
    embedded=True,
)
