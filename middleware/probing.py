"""`usetool check --live`: asks each upstream something tiny, and finds the line that is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple

from adapters.errors import GatewayError, Refused
from adapters.http import Transport
from adapters.protocol import Adapter, Call, ChatRequest, Finish
from middleware.config import Config, ModelConfig, Secret, UpstreamConfig, suggest
from middleware.config.shape import Auth
from middleware.emulation import refuses_tools
from middleware.models import ModelList
from middleware.routing import TRY_IT, ModelEntry, Routes, build

PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")
_SECONDS = 120.0
"""A model may have to be loaded; somebody waits at the terminal."""
_MOST_REPAIRS = 3
_AWAY = ("upstream_unreachable", "upstream_timeout")
_TOOL: Mapping[str, object] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "Tells the time",
        "parameters": {"type": "object", "properties": {}},
    },
}


class Finding(NamedTuple):
    upstream: str
    model: str
    verdict: str
    """One line: it answers, or what is wrong."""
    advice: str = ""
    """What to do."""
    well: bool = False


class _Repair(NamedTuple):
    line: str
    """What to write under [upstreams.NAME]."""
    upstream: UpstreamConfig


async def probe(config: Config, environment: Mapping[str, str]) -> list[Finding]:
    """Ask every upstream that has what it needs, at the same time."""
    transport = Transport()
    recall = replace(config.recall, store="off")
    prober = _Prober(replace(config, recall=recall), environment, transport)
    try:
        models = [*prober.chosen()]
        return list(await asyncio.gather(*[prober.find(model) for model in models]))
    finally:
        await transport.close()


def present(config: Config) -> tuple[ModelEntry, ...]:
    """The models of a config, those of an Ollama that does not run as not available."""
    return asyncio.run(_present(config))


async def _present(config: Config) -> tuple[ModelEntry, ...]:
    transport = Transport()
    try:
        routes = build(replace(config, recall=replace(config.recall, store="off")), transport)
        return await ModelList(config, routes).present()
    finally:
        await transport.close()


@dataclass(frozen=True, slots=True)
class _Prober:
    config: Config
    environment: Mapping[str, str]
    transport: Transport

    def chosen(self) -> Iterator[ModelConfig]:
        """One model an upstream: a name if there is one, else a wildcard."""
        for upstream in self.config.upstreams.values():
            served = [one for one in self.config.models.values() if one.upstream == upstream.id]
            if served and not upstream.missing():
                yield min(served, key=lambda one: "*" in one.id)

    async def find(self, model: ModelConfig) -> Finding:
        upstream = self.config.upstreams[model.upstream]
        if upstream.of_client:
            return Finding(
                upstream.id, model.id, "is opened by clients' keys: not asked", well=True
            )
        routes = build(self.config, self.transport)
        name = model.id
        if "*" in name:
            name, why = await self._listed(model, routes)
            if not name:
                return Finding(upstream.id, model.id, why[0], why[1])
        error = await self._ask(routes, name)
        if error is None:
            return Finding(upstream.id, name, "answers, and takes tools", well=True)
        if refuses_tools(error):
            return self._without_tools(model, name)
        advice = await self._repaired(upstream, name, error) or await self._advice(
            model, name, routes, error
        )
        return Finding(upstream.id, name, _verdict(error), advice)

    async def _listed(self, model: ModelConfig, routes: Routes) -> tuple[str, tuple[str, str]]:
        """A model a wildcard stands for, or why there is none."""
        listing = ModelList(self.config, routes)
        found = await listing.names(model.id)
        if found:
            return found[0], ("", "")
        reason = (await listing.listed(model.id)).reason
        if not reason:
            return "", (
                "does not list its models",
                f'give one a name: [models.NAME] upstream = "{model.upstream}"',
            )
        advice = ""
        if _unreachable(reason):
            upstream = self.config.upstreams[model.upstream]
            advice = await self._repaired(upstream, model.id.replace("*", "x"), None)
        return "", (reason, advice or _start(self.config.upstreams[model.upstream]))

    def _without_tools(self, model: ModelConfig, name: str) -> Finding:
        if model.tools == "native":
            advice = f'write tools = "emulated" under [models."{model.id}"]'
            return Finding(model.upstream, name, "answers, but does not support tools", advice)
        verdict = "answers; tools unsupported, so the gateway makes them by prompt"
        return Finding(model.upstream, name, verdict, well=True)

    async def _ask(self, routes: Routes, public: str) -> GatewayError | None:
        name, leaf = routes.leaf(public)
        return await _answer(leaf, name)

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
            left = await self._ask(
                build(replace(self.config, upstreams=upstreams), self.transport), public
            )
            if left is None or refuses_tools(left):
                return repair, None
            if left.code not in (*_AWAY, error.code if error is not None else ""):
                return repair, left
        return None, error

    def _repairs(self, upstream: UpstreamConfig, error: GatewayError | None) -> Iterator[_Repair]:
        code = error.code if error is not None else "upstream_unreachable"
        if code in _AWAY and upstream.proxy is None:
            for name in PROXIES:
                if address := self.environment.get(name):
                    proxy = Secret(address, name)
                    yield _Repair(f'proxy = "env:{name}"', replace(upstream, proxy=proxy))
        if code == "upstream_auth" and upstream.api_key is not None:
            other: Auth = "bearer" if upstream.auth == "x-api-key" else "x-api-key"
            yield _Repair(f'auth = "{other}"', replace(upstream, auth=other))
        incomplete = upstream.kind == "compatible" and not upstream.base_url.endswith("/v1")
        if incomplete and code in ("model_not_found", "upstream_bad_request", "upstream_not_json"):
            address = f"{upstream.base_url}/v1"
            yield _Repair(f'base_url = "{address}"', replace(upstream, base_url=address))

    async def _advice(
        self, model: ModelConfig, name: str, routes: Routes, error: GatewayError
    ) -> str:
        upstream = self.config.upstreams[model.upstream]
        if error.code == "upstream_auth":
            key = upstream.api_key
            if key is None:
                return f'write api_key = "env:NAME" under [upstreams.{upstream.id}]'
            where = f"the variable {key.variable}" if key.variable else "api_key"
            return f"put a key that is valid for {upstream.base_url or upstream.id} into {where}"
        if error.code == "model_not_found":
            return await self._other_names(model, name, routes)
        return _start(upstream) if error.code in _AWAY else ""

    async def _other_names(self, model: ModelConfig, name: str, routes: Routes) -> str:
        _, leaf = routes.leaf(name)
        ask = getattr(leaf, "models", None)
        try:
            there = [*await ask()] if ask is not None else []
        except GatewayError:
            there = []
        if not there:
            return f'write the upstream\'s own name for it: [models."{model.id}"] name = "…"'
        hint = suggest(model.name, there)
        shown = ", ".join(there[:8]) + (", …" if len(there) > 8 else "")
        return f'write another name under [models."{model.id}"].{hint} It has: {shown}'


async def _answer(leaf: Adapter, name: str) -> GatewayError | None:
    """Have a few words said; None: it did."""
    messages = ({"role": "user", "content": "Say ok."},)
    request = ChatRequest(
        name, messages, (dict(_TOOL),), params={"max_tokens": 16}, call=Call("req_check")
    )
    try:
        async with asyncio.timeout(_SECONDS), aclosing(leaf.stream(request)) as events:
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
    if upstream.kind != "ollama":
        return ""
    return (
        f"start it with `ollama serve`, or write where it is: base_url = (now {upstream.base_url})"
    )


def _unreachable(reason: str) -> bool:
    return "connection" in reason
