"""`usetool check --live`: asks each upstream something tiny, and finds the line that is missing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlsplit

from adapters.errors import GatewayError, Refused
from adapters.kind import Auth
from adapters.leaf import Leaf
from adapters.protocol import ChatRequest, Finish, RequestContext
from adapters.wire.http import Transport
from middleware.building import build
from middleware.config import Config, ModelConfig, Secret, UpstreamConfig, suggest
from middleware.links import TRY_IT
from middleware.routing import Routes
from middleware.server.models import AWAY, ModelList
from middleware.wrappers.emulation.refusals import refuses_tools

PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")
_SECONDS, _ALTOGETHER = 120.0, 300.0
"""A model may have to be loaded; somebody waits at the terminal."""
_MOST_MODELS, _SIDE_BY_SIDE = 20, 4
"""Of one upstream."""
_OF_ALL = (*AWAY, "upstream_auth", "upstream_billing", "insufficient_quota")
"""Codes of what is wrong with an upstream, whatever model is asked."""
_MOST_REPAIRS = 3
_TOOL: Mapping[str, object] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "Tells the time",
        "parameters": {"type": "object", "properties": {}},
    },
}


class Diagnosis(NamedTuple):
    upstream: str
    model: str
    verdict: str
    """One line: it answers, or what is wrong."""
    advice: str = ""
    """What to do."""
    well: bool = False
    of_all: bool = False
    """It holds for all models of the upstream."""


class _Repair(NamedTuple):
    line: str
    """What to write under [upstreams.NAME]."""
    upstream: UpstreamConfig


async def probe(config: Config, environment: Mapping[str, str]) -> list[Diagnosis]:
    """Ask the models of every upstream that has what it needs, upstreams at the same time."""
    transport = Transport()
    recall = replace(config.recall, store="off")
    prober = _Prober(replace(config, recall=recall), environment, transport)
    try:
        probed = await asyncio.gather(*[prober.all_of(models) for models in prober.chosen()])
        return [finding for findings in probed for finding in findings]
    finally:
        await transport.close()


@dataclass(frozen=True, slots=True)
class _Prober:
    config: Config
    environment: Mapping[str, str]
    transport: Transport

    def chosen(self) -> Iterator[list[ModelConfig]]:
        """The models of each upstream: names first, then wildcards."""
        for upstream in self.config.upstreams.values():
            models = [each for each in self.config.models.values() if each.upstream == upstream.id]
            if models and not upstream.missing():
                yield sorted(models, key=lambda model: "*" in model.id)

    async def all_of(self, models: list[ModelConfig]) -> list[Diagnosis]:
        """One model first: what is wrong with its upstream is wrong with all of them."""
        until = asyncio.get_running_loop().time() + _ALTOGETHER
        first, rest, left = models[0], models[1:_MOST_MODELS], models[_MOST_MODELS:]
        upstream = self.config.upstreams[first.upstream]
        findings, asker = [], None
        for name, prober in self._of_each_key(upstream):
            found = await prober.find(first)
            findings.append(found._replace(upstream=name))
            asker = asker or (None if found.of_all else prober)
        if asker is None or not rest:
            return findings
        gate = asyncio.Semaphore(1 if upstream.language.loads else _SIDE_BY_SIDE)
        findings += await asyncio.gather(*[asker._in_turn(model, gate, until) for model in rest])
        if left:
            verdict = f"and {len(left)} more were not asked"
            findings.append(Diagnosis(upstream.id, left[0].id, verdict, well=True))
        return findings

    def _of_each_key(self, upstream: UpstreamConfig) -> Iterator[tuple[str, _Prober]]:
        """For each of several keys its name, and who asks with it alone."""
        for number, key in enumerate(upstream.rotation, 1):
            if key.value:
                alone = replace(upstream, api_keys=(key,))
                upstreams = {**self.config.upstreams, upstream.id: alone}
                config = replace(self.config, upstreams=upstreams)
                yield f"{upstream.id}#{number}", replace(self, config=config)
        if not upstream.rotation:
            yield upstream.id, self

    async def _in_turn(
        self, model: ModelConfig, gate: asyncio.Semaphore, until: float
    ) -> Diagnosis:
        try:
            async with asyncio.timeout_at(until), gate:
                return await self.find(model)
        except TimeoutError:
            return Diagnosis(model.upstream, model.id, f"not asked within {_ALTOGETHER:g} seconds")

    async def find(self, model: ModelConfig) -> Diagnosis:
        upstream = self.config.upstreams[model.upstream]
        if upstream.of_client:
            return Diagnosis(
                upstream.id, model.id, "is opened by clients' keys: not asked", "", True, True
            )
        routes = build(self.config, self.transport)
        name = model.id
        if "*" in name:
            name, why = await self._listed(model, routes)
            if not name:
                return Diagnosis(upstream.id, model.id, why[0], why[1])
        error = await _ask(routes, name)
        if error is None:
            return Diagnosis(upstream.id, name, "answers, and takes tools", well=True)
        if refuses_tools(error):
            return self._without_tools(model, name)
        if error.code == "model_not_found":
            return await self._not_found(model, name, routes, error)
        advice = await self._repaired(upstream, name, error) or self._advice(model, error)
        return Diagnosis(upstream.id, name, _verdict(error), advice, of_all=error.code in _OF_ALL)

    async def _listed(self, model: ModelConfig, routes: Routes) -> tuple[str, tuple[str, str]]:
        """A model a wildcard stands for, or why there is none."""
        listing, upstream = ModelList(self.config, routes), self.config.upstreams[model.upstream]
        if names := await listing.names(model.id):
            return names[0], ("", "")
        reason = (await listing.listed(model.id)).reason
        if not reason:
            return "", (
                "does not list its models",
                f'give one a name: [models.NAME] upstream = "{model.upstream}"',
            )
        advice = ""
        if "connection" in reason:
            advice = await self._repaired(upstream, model.id.replace("*", "x"), None)
        return "", (reason, advice or _start(upstream))

    async def _not_found(
        self, model: ModelConfig, public: str, routes: Routes, error: GatewayError
    ) -> Diagnosis:
        """Tell a 404 of a path from one of a model: who knows the path speaks of the model."""
        upstream = self.config.upstreams[model.upstream]
        name, leaf = routes.leaf(public)
        if not _speaks_of(error, name):
            advice = await self._repaired(upstream, public, error)
            if advice or not await _models_of(leaf):
                advice = advice or (
                    f"write the address that its documentation names under "
                    f"[upstreams.{upstream.id}]: base_url = (now {upstream.base_url})"
                )
                verdict = f"wrong path: {leaf.plan(_question(name))[0].url}: {error.message}"
                return Diagnosis(upstream.id, public, verdict, advice, of_all=True)
        advice = await self._other_names(model, public, routes)
        return Diagnosis(upstream.id, public, _verdict(error), advice)

    def _without_tools(self, model: ModelConfig, name: str) -> Diagnosis:
        if model.tools == "native":
            advice = f'write tools = "emulated" under [models."{model.id}"]'
            return Diagnosis(model.upstream, name, "answers, but does not support tools", advice)
        verdict = "answers; tools unsupported, so the gateway makes them by prompt"
        return Diagnosis(model.upstream, name, verdict, well=True)

    async def _repaired(
        self, upstream: UpstreamConfig, public: str, error: GatewayError | None
    ) -> str:
        """Try the lines that may be missing, one more as long as the failure changes."""
        lines: list[str] = []
        for _ in range(_MOST_REPAIRS):
            helped, error = await self._helping(upstream, public, error)
            if helped is None:
                break
            lines.append(helped.line)
            upstream = helped.upstream
            if error is None or error.code == "model_not_found":
                break
        written = " and ".join(lines)
        return f"write {written} under [upstreams.{upstream.id}]" if lines else ""

    async def _helping(
        self, upstream: UpstreamConfig, public: str, error: GatewayError | None
    ) -> tuple[_Repair | None, GatewayError | None]:
        """The first line with which the failure is gone, or at least another one."""
        for repair in self._repairs(upstream, error):
            upstreams = {**self.config.upstreams, upstream.id: repair.upstream}
            routes = build(replace(self.config, upstreams=upstreams), self.transport)
            left = await _ask(routes, public)
            if left is None or refuses_tools(left):
                return repair, None
            known = _speaks_of(left, routes.find(public).name)
            if known or left.code not in (*AWAY, error.code if error is not None else ""):
                return repair, left
        return None, error

    def _repairs(self, upstream: UpstreamConfig, error: GatewayError | None) -> Iterator[_Repair]:
        code = error.code if error is not None else "upstream_unreachable"
        if code in AWAY and upstream.proxy is None:
            for name in PROXIES:
                if address := self.environment.get(name):
                    proxy = Secret(address, name)
                    yield _Repair(f'proxy = "env:{name}"', replace(upstream, proxy=proxy))
        if code == "upstream_auth" and upstream.api_key is not None:
            other: Auth = "bearer" if upstream.auth == "x-api-key" else "x-api-key"
            yield _Repair(f'auth = "{other}"', replace(upstream, auth=other))
        if code in ("model_not_found", "upstream_bad_request", "upstream_not_json"):
            for address in _addresses(upstream):
                yield _Repair(f'base_url = "{address}"', replace(upstream, base_url=address))

    def _advice(self, model: ModelConfig, error: GatewayError) -> str:
        upstream = self.config.upstreams[model.upstream]
        if error.code == "upstream_auth":
            key = upstream.api_key
            if key is None:
                return f'write api_key = "env:NAME" under [upstreams.{upstream.id}]'
            where = f"the variable {key.variable}" if key.variable else "api_key"
            return f"put a key that is valid for {upstream.base_url or upstream.id} into {where}"
        return _start(upstream) if error.code in AWAY else ""

    async def _other_names(self, model: ModelConfig, name: str, routes: Routes) -> str:
        there = await _models_of(routes.leaf(name)[1])
        if not there:
            return f'write the upstream\'s own name for it: [models."{model.id}"] name = "…"'
        hint = suggest(model.name, there)
        shown = ", ".join(there[:8]) + (", …" if len(there) > 8 else "")
        return f'write another name under [models."{model.id}"].{hint} It has: {shown}'


def _addresses(upstream: UpstreamConfig) -> list[str]:
    """Where an API may begin if not at the address that is written."""
    address = upstream.base_url
    parts = urlsplit(address)
    origin = f"{parts.scheme}://{parts.netloc}"
    above = address.rpartition("/")[0] if parts.path.strip("/") else address
    begins = upstream.language.beginnings
    guesses = [f"{address}{beginning}" for beginning in begins[:1]]
    guesses += [above, *(f"{origin}{beginning}" for beginning in begins)]
    return [guess for guess in dict.fromkeys(guesses) if guess != address]


async def _models_of(leaf: Leaf) -> list[str]:
    """The upstream's own names, as far as it says."""
    try:
        return [*await leaf.models()]
    except GatewayError:
        return []


def _speaks_of(error: GatewayError, name: str) -> bool:
    words = error.message.partition(": ")[2].lower()
    return error.code == "model_not_found" and (
        name.lower() in words or bool(re.search(r"\bmodel\b", words))
    )


def _question(name: str) -> ChatRequest:
    messages = ({"role": "user", "content": "Say ok."},)
    call = RequestContext("req_check")
    return ChatRequest(name, messages, (dict(_TOOL),), params={"max_tokens": 16}, call=call)


async def _ask(routes: Routes, public: str) -> GatewayError | None:
    """Have a few words said; None: it did."""
    name, leaf = routes.leaf(public)
    try:
        stream = leaf.stream(_question(name))
        async with asyncio.timeout(_SECONDS), aclosing(stream) as events:
            async for batch in events:
                if type(batch[-1]) is Finish:
                    return None
    except GatewayError as error:
        return error
    except TimeoutError:
        return Refused("it did not answer in time", code="upstream_timeout")
    return None


def _verdict(error: GatewayError) -> str:
    kinds = {
        "upstream_unreachable": "unreachable",
        "upstream_timeout": "unreachable",
        "upstream_auth": "wrong key",
        "model_not_found": "unknown model",
        "upstream_billing": "no credit",
        "insufficient_quota": "no credit",
    }
    message = error.message.removesuffix(TRY_IT).rstrip()  # it was tried
    return f"{kinds.get(error.code or '', 'refuses')}: {message}"


def _start(upstream: UpstreamConfig) -> str:
    start = upstream.language.start_command
    where = f"or write where it is: base_url = (now {upstream.base_url})"
    return f"start it with `{start}`, {where}" if start else ""
