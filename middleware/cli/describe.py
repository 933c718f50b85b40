"""What the command line tells people: plain text from a config, its models and their plans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import orjson

from adapters.protocol import Planned
from adapters.receipts import Receipt
from middleware import __version__
from middleware.cli.default_config import OWN, built_in
from middleware.config import Config, Server, is_loopback
from middleware.config.access import meant_variable
from middleware.config.hints import meant
from middleware.config.shape import ClientConfig
from middleware.routing import ModelEntry
from middleware.server.models import ModelList, Status

if TYPE_CHECKING:  # loaded where upstreams are asked
    from middleware.cli.live_check import Diagnosis

_VERSIONED = ("chat", "responses")
"""Doors whose clients want a base URL with the version in it."""
_BUILT_IN = f"the built-in one, as no {OWN} is here: usetool init writes one to change"


def columns(rows: Iterable[Sequence[str]], indent: str = "  ") -> str:
    """Lines with their cells below each other; the last cell is free."""
    table = [tuple(row) for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)][:-1]
    lines = []
    for *cells, last in table:
        padded = [f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)]
        lines.append(indent + "  ".join([*padded, last]))
    return "\n".join(lines)


def address(server: Server) -> str:
    host = f"[{server.host}]" if ":" in server.host.strip("[]") else server.host
    return f"http://{host}:{server.port}"


def own_address(server: Server) -> str:
    """Where a gateway is called from its own machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.host.strip("[]"), server.host)
    return f"{address(replace(server, host=host))}/v1"


def doors(server: Server) -> list[tuple[str, str]]:
    """The base URLs of each protocol's clients."""
    versioned = [name for name in server.doors if name in _VERSIONED]
    bare = [name for name in server.doors if name not in _VERSIONED]
    rows = [("doors", f"{', '.join(versioned)}: {address(server)}/v1")] if versioned else []
    if bare:
        second = server.ollama_port and address(replace(server, port=server.ollama_port))
        rows.append(
            ("doors", f"{', '.join(bare)}: {address(server)}{(second and f' and {second}') or ''}")
        )
    return rows


def models(statuses: Iterable[Status]) -> str:
    rows = [
        (one.entry.id, one.entry.upstream or "-", one.reason or _available(one)) for one in statuses
    ]
    return columns(rows, indent="")


def _available(status: Status) -> str:
    names = ", ".join(status.names)
    return f"available: {names}" if "*" in status.entry.id and names else "available"


def banner(
    config: Config, statuses: Sequence[Status], cassettes: str = "", recorded: Sequence[str] = ()
) -> str:
    """The first lines of a server: where it is, what it has, what is missing, what to try.

    `cassettes`: their mode, where it is on; `recorded`: the models that they have instead.
    """
    server = config.server
    rows = [*_origin(config), *([("cassettes", cassettes)] if cassettes else [])]
    rows += [("models", ", ".join(recorded))] if recorded else _models_there(config, statuses)
    names = (name for status in statuses if not status.reason for name in status.names)
    first = next(chain(recorded, names), "MODEL")
    rows += [*doors(server), ("keys", _keys(config)), ("try", _try(config, first))]
    return f"usetool {__version__} on {address(server)}/v1 ({config.source})\n{columns(rows)}"


def _models_there(config: Config, statuses: Sequence[Status]) -> list[tuple[str, str]]:
    ids = [status.entry.id for status in statuses if not status.reason]
    rows = [("models", ", ".join(ids) or "none that could answer")]
    rows += [("missing", f"{names}: {why}") for why, names in _missing(statuses).items()]
    rows += [("missing", hint) for hint in _misspelt(config)]
    rows += [("loading", f"{name}: when it is first asked") for name in _embedded(config, ids)]
    return rows


def _origin(config: Config) -> list[tuple[str, str]]:
    return [("config", _BUILT_IN)] if Path(config.source) == built_in() else []


def _embedded(config: Config, names: Sequence[str]) -> list[str]:
    """Models that run on this machine, in a process of their own."""
    upstreams = [(name, config.upstreams.get(config.models[name].upstream)) for name in names]
    return [name for name, upstream in upstreams if upstream and upstream.language.embedded]


def _missing(statuses: Iterable[Status]) -> Mapping[str, str]:
    """Models that cannot answer, by what they lack."""
    models: dict[str, str] = {}
    for status in statuses:
        if why := status.reason:
            models[why] = f"{models[why]}, {status.entry.id}" if why in models else status.entry.id
    return models


def _misspelt(config: Config) -> list[str]:
    """Variables that are not set where one with nearly the same name is."""
    secrets = [secret for up in config.upstreams.values() for secret in up.secrets()]
    hints = [f"{each.variable}:{meant_variable(each)}" for each in secrets if each.alike]
    return [*dict.fromkeys(hints)]


def _keys(config: Config) -> str:
    if config.asks_keys:
        return f"a client must send one of {len(config.client_keys)}"
    own = is_loopback(config.server.host)
    return "none asked, as only this machine can call" if own else "none asked"


def _try(config: Config, model: str) -> str:
    body = orjson.dumps({"model": model, "messages": [{"role": "user", "content": "Hello"}]})
    key = " -H 'authorization: Bearer KEY'" if config.asks_keys else ""
    url = f"{address(config.server)}/v1/chat/completions"
    return f"curl {url} -H 'content-type: application/json'{key} -d '{body.decode()}'"


def check(
    config: Config, models: ModelList, statuses: Sequence[Status], environment: Mapping[str, str]
) -> str:
    server, count = config.server, sum(not status.reason for status in statuses)
    rows = [*_origin(config), ("address", address(server)), *doors(server)]
    rows.append(("keys", _keys(config)))
    parts = [
        f"{config.source}: no mistakes; {count} of {len(statuses)} models available.",
        f"server\n{columns(rows)}",
        f"models\n{columns(_model_row(models, status) for status in statuses)}",
    ]
    if config.clients:
        parts.insert(2, f"clients\n{columns(map(_client_row, config.clients.values()))}")
    if secrets := _secret_rows(config):
        parts.append(f"secrets\n{columns(secrets)}")
    if hints := [*_detours(config)]:
        parts.append("\n".join(["hints", *hints]))
    if hint := _unused_proxy(config, environment):
        parts.append(hint)
    return "\n\n".join(parts)


def _client_row(client: ClientConfig) -> tuple[str, str, str]:
    budget = client.budget
    said = (
        (client.requests_per_minute, "requests a minute"),
        (client.tokens_per_minute, "tokens a minute"),
        (client.concurrent, "at once"),
    )
    limits = [f"{count} {what}" for count, what in said if count]
    limits += [f"{budget.amount:g} USD/{budget.period}"] if budget else []
    told = ["admin"] * client.admin + (limits or ["no limits"])
    return client.id, ", ".join(client.models) or "all models", ", ".join(told)


def _detours(config: Config) -> Iterator[str]:
    """Models that are asked through LiteLLM although there is a kind for their provider."""
    for model in config.models.values():
        upstream = config.upstreams.get(model.upstream)
        if upstream is None or "litellm" not in upstream.language.services:
            continue
        provider, slash, name = model.name.partition("/")
        service = meant(provider) if slash else None
        if service and not service.base_url and service.kind != upstream.kind:
            yield (
                f'  {model.id}: write name = "{name}" and an upstream of kind = "{service.kind}". '
                "Through LiteLLM a forced tool or a JSON schema may be refused, and a stream that "
                "broke off looks whole."
            )


def _model_row(models: ModelList, status: Status) -> tuple[str, ...]:
    entry, why = status.entry, status.reason
    return (
        entry.id,
        entry.upstream or "-",
        _abilities(models, entry),
        f"not available: {why}" if why else " › ".join(entry.nesting),
    )


def _abilities(models: ModelList, entry: ModelEntry) -> str:
    """What is known of it without asking."""
    traits = models.known(entry)
    sure = traits.tools is not None or "*" not in entry.id
    tools = models.tools(entry, traits) if sure else "as the upstream has them"
    abilities = [f"tools {tools}"]
    abilities += [name for name in ("vision", "reasoning", "json_schema") if getattr(traits, name)]
    abilities += [f"{traits.context_length} tokens"] if traits.context_length else []
    return ", ".join(abilities)


def _secret_rows(config: Config) -> list[tuple[str, str, str]]:
    """The environment variables a config names; never what they hold."""
    named = [(f"upstreams.{up.id}", up.secrets()) for up in config.upstreams.values()]
    named.append(("server.keys", config.server.keys))
    named += [(f"clients.{one.id}", (one.key,)) for one in config.clients.values()]
    named += [("state.secret", (secret,)) for secret in (config.state.secret,) if secret]
    return [
        (
            secret.variable,
            "found" if secret.value else "missing",
            f"{place}{meant_variable(secret)}",
        )
        for place, secrets in named
        for secret in secrets
        if secret.variable
    ]


def _unused_proxy(config: Config, environment: Mapping[str, str]) -> str:
    from middleware.cli.live_check import PROXIES

    variable = next(filter(environment.get, PROXIES), "")
    called = [each for each in config.upstreams.values() if each.base_url]
    if not (variable and called) or any(upstream.proxy for upstream in called):
        return ""
    outside = [each for each in called if not is_loopback(urlsplit(each.base_url).hostname or "")]
    lines = "\n".join(
        [f'  [upstreams.{each.id}]\n  proxy = "env:{variable}"' for each in outside or called]
    )
    return (
        f"{variable} is set, but proxies of the environment are not used, and no upstream has one. "
        f"For those that need it, write:\n{lines}"
    )


def findings(probed: Sequence[Diagnosis]) -> str:
    """What each upstream said, with what to do about it."""
    lines = []
    for finding in probed:
        lines.append(f"  {finding.upstream}  {finding.model}  {finding.verdict}")
        lines += [f"    → {finding.advice}"] if finding.advice else []
    return "\n".join(["live", *(lines or ["  no upstream has what it needs to be asked"])])


def from_docker(server: Server) -> str:
    """The addresses under which other containers reach this gateway."""
    port = server.port
    rows = [
        ("Docker Desktop (Mac, Windows)", f"http://host.docker.internal:{port}/v1"),
        ("Docker on Linux", f"http://172.17.0.1:{port}/v1 (the address of docker0)"),
        ("in the same compose file", f"http://usetool:{port}/v1 (the name of its service)"),
        ("on another machine", f"http://THIS-MACHINE:{port}/v1"),
    ]
    text = f"from a container\n{columns(rows)}"
    if is_loopback(server.host):
        text += (
            f"\n  But it listens on {server.host} only, where containers on Linux cannot reach it. "
            'Under [server] write:\n  host = "0.0.0.0"\n  keys = ["env:USETOOL_KEY"]'
        )
    return text


def plan(planned: Sequence[Planned], of_door: Receipt) -> str:
    """The calls a request would make, and what they do not say as the client did."""
    parts = []
    for number, call in enumerate(planned, 1):
        body = json.dumps(json.loads(orjson.dumps(call.body)), indent=2, ensure_ascii=False)
        notes = (*of_door, *call.receipt) if number == 1 else call.receipt
        where = f"POST {call.url}" if "//" in call.url else f"no server is asked ({call.url})"
        parts.append(f"{number}. {call.upstream}: {where}\n{body}\n{receipt(notes)}")
    return "\n\n".join(parts)


def receipt(notes: Sequence[tuple[str, str, str]]) -> str:
    return f"receipt\n{columns(notes)}" if notes else "receipt: nothing was changed or lost"
