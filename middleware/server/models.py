"""The model list: names that clients can use, what each can do, and whether it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from adapters.errors import GatewayError
from adapters.protocol import Json
from adapters.shared.traits import Traits
from middleware.config import Config
from middleware.routing import ModelEntry, Routes
from middleware.server import catalog

_CREATED = 1_763_424_000
"""Of every entry: OpenAI's clients want a number, and it must not move."""
_FRESH, _FAILED = 60.0, 5.0
"""Seconds an upstream's list serves, and its failure."""
_ANSWER_WITHIN = 4.0
"""Seconds for everything that is asked; what comes later is in the next list."""
AWAY = ("upstream_unreachable", "upstream_timeout")
"""Codes of an upstream where nothing answers."""


class Inventory(NamedTuple):
    """What an upstream has; empty with the reason if it did not say."""

    models: Mapping[str, Traits]
    reason: str = ""
    away: bool = False
    """Nothing answers there: its models cannot either."""


class Status(NamedTuple):
    """What a line of the config comes to."""

    entry: ModelEntry
    names: Mapping[str, Traits]
    """The names clients can use; none for a wildcard whose upstream does not say."""
    reason: str
    """Why it cannot answer; empty: it can, as far as is known."""


@dataclass(slots=True)
class _Cached:
    """One answer for everybody who asks while it is fresh; one question at a time."""

    until: float = 0.0
    asking: asyncio.Task[Inventory] | None = None


@dataclass(slots=True)
class ModelList:
    config: Config
    routes: Routes
    _cached: dict[str, _Cached] = field(default_factory=dict)

    async def entries(self, opens: Callable[[str], bool], everything: bool = False) -> list[Json]:
        """`/v1/models`: what can answer, wildcards as their upstreams fill them; or all lines."""
        statuses = await self.statuses()
        rows: list[tuple[ModelEntry, str, Traits, str]] = [
            (status.entry, public, traits, status.reason)
            for status in statuses
            if not status.reason
            for public, traits in status.names.items()
        ]
        if everything:
            rows += [
                (status.entry, status.entry.id, Traits(), status.reason)
                for status in statuses
                if status.reason or not status.names
            ]
        described = [self._described(*row) for row in rows if opens(row[1])]
        return list(await asyncio.gather(*described))

    async def statuses(self, only_local: bool = False) -> list[Status]:
        """What each line of the config comes to; `only_local` asks no service that is far away."""
        entries = self.routes.listing()
        asked = [entry for entry in entries if self._is_asked(entry, only_local)]
        lists = await asyncio.gather(*[self.listed(entry.id) for entry in asked])
        found = {entry.id: listed for entry, listed in zip(asked, lists, strict=True)}
        taken = {entry.id for entry in entries}
        alone = [self._status(entry, found.get(entry.id), taken) for entry in entries]
        reasons = {status.entry.id: status.reason for status in alone}
        return [self._with_others(status, reasons) for status in alone]

    def _with_others(self, status: Status, reasons: Mapping[str, str]) -> Status:
        """A model that others answer for can answer while one of them can."""
        model = self.config.models[status.entry.id]
        others = (*model.choices, *model.fallback)
        whys = [reasons[self.routes.line(name)] for name in others]
        if not (others and status.entry.available) or (status.reason and all(whys)):
            return status
        if model.choices and all(whys):
            told = "; ".join(f"{name}: {why}" for name, why in zip(others, whys, strict=True))
            return status._replace(reason=told)
        return status._replace(reason="")

    def _is_asked(self, entry: ModelEntry, only_local: bool) -> bool:
        """A wildcard's upstream has its names."""
        wanted = "*" in entry.id and not only_local
        return entry.available and (wanted or self._is_local(entry))

    def _is_local(self, entry: ModelEntry) -> bool:
        """A server that is told what to get knows what it has, at no cost."""
        upstream = self.config.upstreams.get(entry.upstream)
        return upstream is not None and bool(upstream.language.fetch_command)

    def _status(self, entry: ModelEntry, listed: Inventory | None, taken: set[str]) -> Status:
        if listed is None:
            return Status(entry, {} if "*" in entry.id else {entry.id: Traits()}, entry.reason)
        if "*" not in entry.id:
            return Status(entry, {entry.id: Traits()}, self._lacks(entry, listed))
        names = self._names(entry, listed, taken)
        taken |= names.keys()
        reason = listed.reason
        if not (listed.models or reason) and self._is_local(entry):
            reason = f"no model was found at {self.config.upstreams[entry.upstream].base_url}"
        return Status(entry, names, reason)

    def _lacks(self, entry: ModelEntry, listed: Inventory) -> str:
        """Why a model with a name of its own cannot answer."""
        name = self.config.models[entry.id].name
        if listed.away:
            return listed.reason
        language = self.config.upstreams[entry.upstream].language
        if listed.reason or language.has_model(listed.models.keys(), name):
            return ""
        how = f"{language.fetch_command} {name}"
        return f"upstream '{entry.upstream}' does not have '{name}': get it with {how}"

    async def names(self, wildcard: str) -> list[str]:
        """What a wildcard stands for, as far as its upstream says."""
        entry = next(one for one in self.routes.listing() if one.id == wildcard)
        return list(self._names(entry, await self.listed(wildcard), set()))

    async def entry(self, model: str) -> Json:
        """`/v1/models/ID`, for every name that would be answered."""
        entry = self.routes.entry(model)
        return await self._described(entry, model, Traits(), entry.reason)

    async def listed(self, model: str) -> Inventory:
        """What the upstream of a model has."""
        upstream = self.config.models[model].upstream
        cached = self._cached.setdefault(upstream, _Cached())
        if cached.asking is None or (
            cached.asking.done() and cached.until <= asyncio.get_running_loop().time()
        ):
            cached.asking = asyncio.create_task(self._ask(model, cached))
        return await asyncio.shield(cached.asking)

    async def _ask(self, model: str, cached: _Cached) -> Inventory:
        loop = asyncio.get_running_loop()
        _, leaf = self.routes.leaf(model)  # a wildcard's own name fits it too
        if self.config.upstreams[self.config.models[model].upstream].of_client:
            cached.until = loop.time() + _FRESH
            return Inventory({})
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                found = Inventory(await leaf.models())
        except GatewayError as error:
            found = Inventory({}, error.message, away=error.code in AWAY)
        except TimeoutError:
            found = Inventory({}, "its upstream did not say in time what models it has", away=True)
        cached.until = loop.time() + (_FAILED if found.reason else _FRESH)
        return found

    def _names(self, entry: ModelEntry, listed: Inventory, taken: Set[str]) -> dict[str, Traits]:
        """The names a wildcard stands for; a name that stands in the config itself is not its."""
        before, star, after = self.config.models[entry.id].name.partition("*")
        names: dict[str, Traits] = {}
        for found, traits in listed.models.items():
            if star and not (found.startswith(before) and found.endswith(after)):
                continue
            carried = found[len(before) : len(found) - len(after)] if star else found
            public = entry.id.replace("*", carried)
            if carried and public not in taken:
                names[public] = traits
        return names

    async def _described(self, entry: ModelEntry, public: str, listed: Traits, reason: str) -> Json:
        traits = await self.traits(entry, public, listed)
        said: Json = {
            "id": public,
            "object": "model",
            "created": _CREATED,
            "owned_by": entry.owned_by,
        }
        if traits.context_length:
            # The second name is vLLM's, which many clients read.
            said |= dict.fromkeys(("context_length", "max_model_len"), traits.context_length)
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
        if model.choices:
            inner = _of_any([self.known(self.routes.entry(name)) for name in model.choices])
            return catalog.configured(model).over(inner)
        if upstream is None or "*" in model.name:
            return catalog.configured(model)
        known = catalog.known(upstream.language, model.name)
        if entry.available:
            known = self.routes.leaf(entry.id)[1].known(model.name).over(known)
        return catalog.configured(model).over(known)

    async def traits(self, entry: ModelEntry, public: str, listed: Traits) -> Traits:
        """The config outranks the upstream, which outranks the catalogue."""
        model = self.config.models[entry.id]
        if model.pipeline:
            answerer = model.pipeline["answerer"]
            inner = await self.traits(self.routes.entry(answerer), answerer, Traits())
            return Traits(reasoning=True).over(inner)
        if model.choices:
            found = [self.traits(self.routes.entry(each), each, Traits()) for each in model.choices]
            inner = _of_any(await asyncio.gather(*found))
            return catalog.configured(model).over(inner)
        upstream = self.config.upstreams.get(model.upstream)
        if upstream is None or "*" in public:
            return catalog.configured(model)
        name = self._upstreams_name(entry, public)
        known = listed.over(catalog.known(upstream.language, name))
        # Without its key it cannot be asked, but it is the same model.
        if entry.available:
            leaf = self.routes.leaf(public)[1]
            told = leaf.known(name)
            with suppress(TimeoutError):
                async with asyncio.timeout(_ANSWER_WITHIN):
                    told = await leaf.traits(name)
            known = told.over(known)
        return catalog.configured(model).over(known)

    def _upstreams_name(self, entry: ModelEntry, public: str) -> str:
        before, _, after = entry.id.partition("*")
        carried = public[len(before) : len(public) - len(after)]
        return self.config.models[entry.id].name.replace("*", carried)

    def tools(self, entry: ModelEntry, traits: Traits) -> str:
        """Who makes tool calls; what nobody knows is asked natively first."""
        model = self.config.models[entry.id]
        if model.tools != "auto":
            return model.tools
        return "emulated" if traits.tools is False else "native"


def _of_any(found: Sequence[Traits]) -> Traits:
    """What one of several can do: who cannot is passed over."""

    def either(flags: Sequence[bool | None]) -> bool | None:
        return True if True in flags else None if None in flags else False

    return Traits(
        context_length=max([one.context_length or 0 for one in found]) or None,
        max_output=max([one.max_output or 0 for one in found]) or None,
        tools=either([one.tools for one in found]),
        parallel=either([one.parallel for one in found]),
        vision=either([one.vision for one in found]),
        reasoning=either([one.reasoning for one in found]),
        json_schema=either([one.json_schema for one in found]),
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
