"""The model list: names that clients can use, what each can do, and whether it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from adapters.errors import GatewayError
from adapters.protocol import Json
from adapters.traits import Traits
from middleware import catalog
from middleware.config import Config, ModelConfig
from middleware.routing import ModelEntry, Routes

_CREATED = 1_763_424_000
"""Of every entry: OpenAI's clients want a number, and it must not move."""
_FRESH, _FAILED = 60.0, 5.0
"""Seconds an upstream's list serves, and its failure."""
_ANSWER_WITHIN = 4.0
"""Seconds for everything that is asked; what comes later is in the next list."""


class Listed(NamedTuple):
    """What an upstream has; empty with the reason if it did not say."""

    models: Mapping[str, Traits]
    reason: str = ""


@dataclass(slots=True)
class _Cached:
    """One answer for everybody who asks while it is fresh; one question at a time."""

    until: float = 0.0
    asking: asyncio.Task[Listed] | None = None


@dataclass(slots=True)
class ModelList:
    config: Config
    routes: Routes
    _cached: dict[str, _Cached] = field(default_factory=dict)

    async def entries(self) -> list[Json]:
        """`/v1/models`: wildcards as their upstreams fill them."""
        entries = self.routes.listing()
        wildcards = [entry for entry in entries if "*" in entry.id and entry.available]
        lists = await asyncio.gather(*[self.listed(entry.id) for entry in wildcards])
        found = {entry.id: listed for entry, listed in zip(wildcards, lists, strict=True)}
        taken = {entry.id for entry in entries}
        rows = [row for entry in entries for row in self._rows(entry, found.get(entry.id), taken)]
        return list(await asyncio.gather(*[self._described(*row) for row in rows]))

    async def names(self, wildcard: str) -> list[str]:
        """What a wildcard stands for, as far as its upstream says."""
        entry = next(one for one in self.routes.listing() if one.id == wildcard)
        listed = await self.listed(wildcard)
        return [public for _, public, _, _ in self._rows(entry, listed, set()) if "*" not in public]

    async def present(self) -> tuple[ModelEntry, ...]:
        """The lines of the config; an Ollama is asked whether it runs, as keys tell nothing."""
        entries = self.routes.listing()
        asked = [entry for entry in entries if entry.available and self._is_ollama(entry)]
        lists = await asyncio.gather(*[self.listed(entry.id) for entry in asked])
        away = {entry.id: found.reason for entry, found in zip(asked, lists, strict=True)}
        return tuple(
            entry._replace(available=False, reason=why) if (why := away.get(entry.id)) else entry
            for entry in entries
        )

    def _is_ollama(self, entry: ModelEntry) -> bool:
        upstream = self.config.upstreams.get(entry.upstream)
        return upstream is not None and upstream.kind == "ollama"

    async def entry(self, model: str) -> Json:
        """`/v1/models/ID`, for every name that would be answered."""
        self.routes.find(model)
        shown = next(
            entry
            for entry in self.routes.listing()
            if entry.id == model or ("*" in entry.id and self._pattern(entry, model))
        )
        return await self._described(shown, model, Traits(), "")

    def _pattern(self, entry: ModelEntry, model: str) -> bool:
        before, _, after = entry.id.partition("*")
        return model.startswith(before) and model.endswith(after)

    async def listed(self, model: str) -> Listed:
        """What the upstream of a model has."""
        upstream = self.config.models[model].upstream
        cached = self._cached.setdefault(upstream, _Cached())
        if cached.asking is None or (
            cached.asking.done() and cached.until <= asyncio.get_running_loop().time()
        ):
            cached.asking = asyncio.create_task(self._ask(model, cached))
        return await asyncio.shield(cached.asking)

    async def _ask(self, model: str, cached: _Cached) -> Listed:
        loop = asyncio.get_running_loop()
        _, leaf = self.routes.leaf(model.replace("*", "x"))
        ask = getattr(leaf, "models", None)
        if ask is None or self.config.upstreams[self.config.models[model].upstream].of_client:
            cached.until = loop.time() + _FRESH
            return Listed({})
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                found = Listed(await ask())
        except GatewayError as error:
            found = Listed({}, error.message)
        except TimeoutError:
            found = Listed({}, "its upstream did not say in time what models it has")
        cached.until = loop.time() + (_FAILED if found.reason else _FRESH)
        return found

    def _rows(
        self, entry: ModelEntry, listed: Listed | None, taken: set[str]
    ) -> Iterator[tuple[ModelEntry, str, Traits, str]]:
        """The names a line of the config stands for."""
        if listed is None or not listed.models:
            yield entry, entry.id, Traits(), listed.reason if listed else ""
            return
        name = self.config.models[entry.id].name
        before, star, after = name.partition("*")
        for found, traits in listed.models.items():
            if star and not (found.startswith(before) and found.endswith(after)):
                continue
            carried = found[len(before) : len(found) - len(after)] if star else found
            public = entry.id.replace("*", carried)
            if carried and public not in taken:
                taken.add(public)
                yield entry, public, traits, ""

    async def _described(
        self, entry: ModelEntry, public: str, listed: Traits, unreachable: str
    ) -> Json:
        reason = entry.reason or unreachable
        traits = await self.traits(entry, public, listed)
        said: Json = {
            "id": public,
            "object": "model",
            "created": _CREATED,
            "owned_by": entry.owned_by,
        }
        if traits.context_length:
            # The second name is vLLM's, which many clients read.
            said |= {
                "context_length": traits.context_length,
                "max_model_len": traits.context_length,
            }
        if traits.max_output:
            said["max_output_tokens"] = traits.max_output
        ours: Json = {"available": not reason, "upstream": entry.upstream}
        if reason:
            ours["reason"] = reason
        if "*" not in public:
            family = catalog.family(self._upstreams_name(entry, public))
            ours |= abilities(traits, self.tools(entry, traits), family)
        return {**said, "x_usetool": ours}

    def known(self, entry: ModelEntry) -> Traits:
        """What can be said of a model without asking anybody."""
        model = self.config.models[entry.id]
        upstream = self.config.upstreams.get(model.upstream)
        if upstream is None or "*" in model.name:
            return _configured(model)
        return _configured(model).over(catalog.known(upstream.kind, model.name))

    async def traits(self, entry: ModelEntry, public: str, listed: Traits) -> Traits:
        """The config outranks the upstream, which outranks the catalogue."""
        model = self.config.models[entry.id]
        if model.pipeline:
            answerer = model.pipeline["answerer"]
            inner = next(one for one in self.routes.listing() if self._is(one, answerer))
            thinking = Traits(reasoning=True)
            return thinking.over(await self.traits(inner, answerer, Traits()))
        upstream = self.config.upstreams.get(model.upstream)
        if upstream is None or "*" in public:
            return _configured(model)
        name = self._upstreams_name(entry, public)
        known = listed.over(catalog.known(upstream.kind, name))
        # Without its key it cannot be asked, but it is the same model.
        ask = getattr(self.routes.leaf(public)[1], "traits", None) if entry.available else None
        if ask is not None:
            try:
                async with asyncio.timeout(_ANSWER_WITHIN):
                    known = (await ask(name)).over(known)
            except TimeoutError:
                pass
        return _configured(model).over(known)

    def _upstreams_name(self, entry: ModelEntry, public: str) -> str:
        if entry.available:
            return self.routes.leaf(public)[0]
        before, _, after = entry.id.partition("*")
        return self.config.models[entry.id].name.replace(
            "*", public[len(before) : len(public) - len(after)]
        )

    def _is(self, entry: ModelEntry, name: str) -> bool:
        return entry.id == name or ("*" in entry.id and self._pattern(entry, name))

    def tools(self, entry: ModelEntry, traits: Traits) -> str:
        """Who makes tool calls; what nobody knows is asked natively first."""
        model = self.config.models[entry.id]
        if model.tools != "auto":
            return model.tools
        return "emulated" if traits.tools is False else "native"


def _configured(model: ModelConfig) -> Traits:
    said: Mapping[str, Any] = model.abilities
    thinking = said.get("thinking")
    return Traits(
        context_length=model.options.get("num_ctx"),
        max_output=None,
        tools=said.get("tools"),
        vision=said.get("vision"),
        reasoning=None if thinking is None else thinking not in (False, "off"),
        json_schema=said.get("json_schema"),
    )


def abilities(traits: Traits, tools: str, family: str) -> Json:
    """What a model can do through this gateway; `model_info` is AutoGen's, ready to paste."""
    can: Json = {
        "tools": tools,
        "parallel": traits.parallel is not False or tools == "emulated",
        "vision": traits.vision is True,
        "reasoning": traits.reasoning is True,
        "json_schema": traits.json_schema is True,
        "multiple_system_messages": True,
        "family": traits.family or family,
    }
    info: Json = {
        "vision": can["vision"],
        "function_calling": True,
        "json_output": True,
        "family": family,
        "structured_output": can["json_schema"],
        "multiple_system_messages": True,
    }
    return {"abilities": can, "model_info": info}
