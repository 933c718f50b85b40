"""`Route`: from a model's public name to the upstream's, and what the config changes on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from adapters.errors import Busy
from adapters.leaf import Leaf
from adapters.protocol import Adapter, Carried, ChatRequest, Events, Json, Planned, renamed
from adapters.receipts import Note, Receipt
from adapters.shared.embeddings import EmbeddingRequest
from middleware.config import ModelConfig, public_name
from middleware.doors import FIELDS
from middleware.wrappers.base import Fork, Wrapper, noted, noting
from middleware.wrappers.calls import Guarded
from middleware.wrappers.carriers import Carriers

# Two names of one limit: whoever sets one of them has set both.
_LIMITS = frozenset({"max_tokens", "max_completion_tokens"})
# Fields that stand beside `params`; a choice means nothing without tools.
_CHOICE = frozenset({"tools", "tool_choice"})


class ModelUnavailable(Busy):
    """The config has the model, but something it needs is missing."""

    code, again = "model_unavailable", "elsewhere"


@dataclass(frozen=True, slots=True)
class Absent(Leaf):
    """Stands where an adapter could not be built, and says why."""

    name: str
    reason: str

    @property
    def leaf(self) -> Leaf:
        return self

    @property
    def guarded(self) -> Leaf:
        return self

    def stream(self, request: ChatRequest) -> Events:
        raise self.error()

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        raise self.error()

    async def embed(self, _request: EmbeddingRequest) -> Json:
        raise self.error()

    def error(self) -> ModelUnavailable:
        return ModelUnavailable(f"Model '{self.name}' is not available: {self.reason}.")


@dataclass(frozen=True, slots=True)
class Layers:
    """Fields of the config below and above those of the client."""

    defaults: Mapping[str, Any]
    override: Mapping[str, Any]

    def around(self, sent: Mapping[str, Any], drop: frozenset[str]) -> dict[str, Any]:
        kept = {
            name: value for name, value in sent.items() if value is not None and name not in drop
        }
        return _over(_over(self.defaults, kept), self.override)


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    if _LIMITS & above.keys():
        below = {name: value for name, value in below.items() if name not in _LIMITS}
    return {**below, **above}


@dataclass(frozen=True, slots=True)
class Changes:
    """What the config changes about every request of a model."""

    params: Layers
    extra: Layers
    drop: frozenset[str]

    def apply(self, request: ChatRequest) -> ChatRequest:
        params = self.params.around(request.params, self.drop)
        extra = self.extra.around(request.extra, self.drop)
        sent = (request.params.keys() | request.extra.keys()) - self.drop - request.configured
        sent -= self.params.override.keys() | self.extra.override.keys()
        return replace(
            request,
            tools=() if "tools" in self.drop else request.tools,
            tool_choice=None if self.drop & _CHOICE else request.tool_choice,
            params=params,
            extra=extra,
            configured=frozenset((params.keys() | extra.keys()) - sent),
            native=self._kept(request.native),
        )

    def _kept(self, native: Carried | None) -> Carried | None:
        """What the client says in its own language, without what the config drops."""
        if native is None or self.drop.isdisjoint(native.value or ()):
            return native
        kept = {name: said for name, said in native.value.items() if name not in self.drop}
        return replace(native, value=kept)

    def receipt(self, request: ChatRequest) -> Receipt:
        return tuple(
            Note("dropped_by_config", name, "the gateway's config drops it")
            for name in sorted(self.drop)
            if _sent(request, name)
        )


def _sent(request: ChatRequest, name: str) -> bool:
    if name in _CHOICE:
        return bool(getattr(request, name))
    own = (request.native.value if request.native else None) or ()
    return request.params.get(name, request.extra.get(name)) is not None or name in own


def changes(model: ModelConfig) -> Changes | None:
    if not (model.defaults or model.override or model.drop):
        return None
    params, extra = (
        Layers(_part(model.defaults, openai), _part(model.override, openai))
        for openai in (True, False)
    )
    return Changes(params, extra, frozenset(model.drop))


def _part(fields: Mapping[str, Any], openai: bool) -> Mapping[str, Any]:
    return {name: value for name, value in fields.items() if (name in FIELDS) is openai}


@dataclass(frozen=True, slots=True)
class Route(Wrapper):
    """From a public name to the upstream's; nothing more unless the config changes requests."""

    name: str
    """Empty: as it is asked."""
    changes: Changes | None = None
    leaf: Leaf | None = None
    """What speaks to its upstream; a pipeline has two."""
    guarded: Guarded | None = None
    """The same, with what stands around every call of it."""
    asked: str = ""
    """What it is asked by, where what stands for the `*` of that stands for the `*` of its name."""

    @property
    def nesting(self) -> tuple[str, ...]:
        """The names of all a request walks through, outermost first."""
        names: list[str] = []
        last: Adapter = self
        while (inner := _told(last, names)) is not None:
            last = inner
        if self.leaf is not None and not isinstance(last, Fork):
            names[-1] = self.leaf.described
        return tuple(names)

    def stream(self, request: ChatRequest) -> Events:
        changed, notes = self._changed(request)
        events = self.inner.stream(changed)
        return noting(events, notes) if notes else events

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        changed, notes = self._changed(request)
        return noted(self.inner.plan(changed), notes, changed.configured)

    def _changed(self, request: ChatRequest) -> tuple[ChatRequest, Receipt]:
        name = self.name or request.model
        if "*" in name and self.asked:
            name = public_name(name, self.asked, request.model)
        meant = request if name == request.model else renamed(request, name)
        if self.changes is None:
            return meant, ()
        return self.changes.apply(meant), self.changes.receipt(request)


def _told(adapter: Adapter, names: list[str]) -> Adapter | None:
    """Name an adapter; return what follows in the nesting."""
    if isinstance(adapter, Fork):
        names.append(adapter.described)
        return adapter.only
    if not isinstance(adapter, Carriers):  # which does nothing of its own
        names.append(type(adapter).__name__)
    return adapter.inner if isinstance(adapter, Wrapper) else None
