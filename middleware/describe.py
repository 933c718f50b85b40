"""What the command line tells people: plain text from a config, its models and their plans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import orjson

from adapters.protocol import Planned, Receipt
from middleware import __version__
from middleware.config import Config, Server, is_loopback
from middleware.routing import ModelEntry

_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


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


def banner(config: Config, entries: Sequence[ModelEntry]) -> str:
    """The first lines of a server: where it is, what it has, what is missing, what to try."""
    server = config.server
    there = [entry.id for entry in entries if entry.available]
    rows = [("models", ", ".join(there) or "none that could answer")]
    rows += [("missing", f"{names}: {why}") for why, names in _missing(entries).items()]
    rows += [("keys", _keys(server)), ("try", _try(server, there))]
    return f"usetool {__version__} on {address(server)}/v1 ({config.source})\n{columns(rows)}"


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


def _try(server: Server, there: Sequence[str]) -> str:
    model = next((name for name in there if "*" not in name), "MODEL")
    body = orjson.dumps({"model": model, "messages": [{"role": "user", "content": "Hello"}]})
    key = " -H 'authorization: Bearer KEY'" if server.keys else ""
    url = f"{address(server)}/v1/chat/completions"
    return f"curl {url} -H 'content-type: application/json'{key} -d '{body.decode()}'"


def check(config: Config, entries: Sequence[ModelEntry], environment: Mapping[str, str]) -> str:
    """Everything a config means, and what it lacks."""
    count = sum(entry.available for entry in entries)
    parts = [
        f"{config.source}: no mistakes; {count} of {len(entries)} models available.",
        f"server\n{columns([(address(config.server), _keys(config.server))])}",
        f"models\n{columns(_model_rows(entries))}",
    ]
    if secrets := _secret_rows(config):
        parts.append(f"secrets\n{columns(secrets)}")
    if hint := _unused_proxy(config, environment):
        parts.append(hint)
    return "\n\n".join(parts)


def _model_rows(entries: Sequence[ModelEntry]) -> list[tuple[str, str, str]]:
    return [
        (
            entry.id,
            entry.upstream or "-",
            " › ".join(entry.nesting) if entry.available else f"not available: {entry.reason}",
        )
        for entry in entries
    ]


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
    found = next(
        (name for upper in _PROXIES for name in (upper, upper.lower()) if environment.get(name)), ""
    )
    if not found or all(upstream.proxy for upstream in config.upstreams.values()):
        return ""
    return (
        f"{found} is set, but proxies of the environment are not used: an upstream that needs one "
        f'has proxy = "env:{found}" under [upstreams.NAME].'
    )


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
