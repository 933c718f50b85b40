"""What the command line tells people: plain text from a config, its models and their plans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

import orjson

from adapters.protocol import Planned, Receipt
from middleware import __version__
from middleware.config import Config, Server, UpstreamConfig, is_loopback
from middleware.models import ModelList
from middleware.probing import PROXIES, Finding
from middleware.routing import ModelEntry


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


def models(entries: Sequence[ModelEntry]) -> str:
    return columns(
        (
            (entry.id, entry.upstream or "-", "available" if entry.available else entry.reason)
            for entry in entries
        ),
        indent="",
    )


def banner(
    config: Config, entries: Sequence[ModelEntry], found: Mapping[str, Sequence[str]] | None = None
) -> str:
    """The first lines of a server: where it is, what it has, what is missing, what to try.

    `found` has the models that wildcards stand for, as far as their upstreams were asked.
    """
    server = config.server
    found = found or {}
    empty = [name for name, names in found.items() if not names]
    there = [entry.id for entry in entries if entry.available and entry.id not in empty]
    rows = [("models", ", ".join(there) or "none that could answer")]
    rows += [("missing", f"{name}: no model was found{_at(config, name)}") for name in empty]
    rows += [("missing", f"{names}: {why}") for why, names in _missing(entries).items()]
    rows += [("loading", f"{name}: when it is first asked") for name in _embedded(config, there)]
    rows += [("keys", _keys(server)), ("try", _try(server, _first(there, found)))]
    return f"usetool {__version__} on {address(server)}/v1 ({config.source})\n{columns(rows)}"


def _at(config: Config, name: str) -> str:
    return f" at {config.upstreams[config.models[name].upstream].base_url}"


def _first(there: Sequence[str], found: Mapping[str, Sequence[str]]) -> str:
    """The model to try."""
    named = [found.get(name, ()) if "*" in name else (name,) for name in there]
    return next((name for names in named for name in names), "MODEL")


def _embedded(config: Config, names: Sequence[str]) -> list[str]:
    """Models that run on this machine, in a process of their own."""
    upstreams = [(name, config.upstreams.get(config.models[name].upstream)) for name in names]
    return [name for name, upstream in upstreams if upstream and upstream.kind == "local"]


def _missing(entries: Sequence[ModelEntry]) -> Mapping[str, str]:
    """Models that cannot answer, by what they lack."""
    found: dict[str, str] = {}
    for entry in entries:
        if not entry.available:
            names = found.get(entry.reason)
            found[entry.reason] = f"{names}, {entry.id}" if names else entry.id
    return found


def _keys(server: Server) -> str:
    if server.keys:
        return f"a client must send one of {len(server.keys)}"
    return "none asked, as only this machine can call" if is_loopback(server.host) else "none asked"


def _try(server: Server, model: str) -> str:
    body = orjson.dumps({"model": model, "messages": [{"role": "user", "content": "Hello"}]})
    key = " -H 'authorization: Bearer KEY'" if server.keys else ""
    url = f"{address(server)}/v1/chat/completions"
    return f"curl {url} -H 'content-type: application/json'{key} -d '{body.decode()}'"


def check(
    config: Config,
    models: ModelList,
    entries: Sequence[ModelEntry],
    environment: Mapping[str, str],
) -> str:
    """Everything a config means, and what it lacks."""
    count = sum(entry.available for entry in entries)
    parts = [
        f"{config.source}: no mistakes; {count} of {len(entries)} models available.",
        f"server\n{columns([(address(config.server), _keys(config.server))])}",
        f"models\n{columns(_model_rows(models, entries))}",
    ]
    if secrets := _secret_rows(config):
        parts.append(f"secrets\n{columns(secrets)}")
    if hint := _unused_proxy(config, environment):
        parts.append(hint)
    return "\n\n".join(parts)


def _model_rows(models: ModelList, entries: Sequence[ModelEntry]) -> list[tuple[str, ...]]:
    return [
        (
            entry.id,
            entry.upstream or "-",
            _abilities(models, entry),
            " › ".join(entry.nesting) if entry.available else f"not available: {entry.reason}",
        )
        for entry in entries
    ]


def _abilities(models: ModelList, entry: ModelEntry) -> str:
    """What is known of it without asking."""
    traits = models.known(entry)
    sure = traits.tools is not None or "*" not in entry.id
    said = [f"tools {models.tools(entry, traits)}" if sure else "tools as the upstream has them"]
    said += [name for name in ("vision", "reasoning", "json_schema") if getattr(traits, name)]
    said += [f"{traits.context_length} tokens"] if traits.context_length else []
    return ", ".join(said)


def _secret_rows(config: Config) -> list[tuple[str, str, str]]:
    """The environment variables a config names; never what they hold."""
    named = [(f"upstreams.{up.id}", up.secrets()) for up in config.upstreams.values()]
    named.append(("server.keys", config.server.keys))
    return [
        (secret.variable, "found" if secret.value else "missing", place)
        for place, secrets in named
        for secret in secrets
        if secret.variable
    ]


def _unused_proxy(config: Config, environment: Mapping[str, str]) -> str:
    found = next(filter(environment.get, PROXIES), "")
    called = [one for one in config.upstreams.values() if one.base_url]
    if not (found and called) or any(upstream.proxy for upstream in called):
        return ""
    outside = list(filter(_is_outside, called)) or called
    lines = "\n".join([f'  [upstreams.{one.id}]\n  proxy = "env:{found}"' for one in outside])
    return (
        f"{found} is set, but proxies of the environment are not used, and no upstream has one. "
        f"For those that need it, write:\n{lines}"
    )


def _is_outside(upstream: UpstreamConfig) -> bool:
    return not is_loopback(urlsplit(upstream.base_url).hostname or "")


def findings(found: Sequence[Finding]) -> str:
    """What each upstream said, with what to do about it."""
    lines = []
    for one in found:
        lines.append(f"  {one.upstream}  {one.model}  {one.verdict}")
        lines += [f"    → {one.advice}"] if one.advice else []
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


def plan(planned: Sequence[Planned], asked: Receipt) -> str:
    """The calls a request would make, and what they do not say as the client did."""
    parts = []
    for number, call in enumerate(planned, 1):
        body = json.dumps(json.loads(orjson.dumps(call.body)), indent=2, ensure_ascii=False)
        receipt = (*asked, *call.receipt) if number == 1 else call.receipt
        parts.append(f"{number}. {call.upstream}: POST {call.url}\n{body}\n{_receipt(receipt)}")
    return "\n\n".join(parts)


def _receipt(receipt: Receipt) -> str:
    if not receipt:
        return "receipt: nothing was changed or lost"
    return f"receipt\n{columns(receipt)}"
