"""Who may use the gateway, and at whose cost: what the config must say about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from middleware.config.hints import suggest
from middleware.config.public_names import PublicNames
from middleware.config.shape import ClientConfig, Config, Secret, Server, UpstreamConfig

Path = tuple[str, ...]
_KEYS: Path = ("server", "keys")


def unset_keys(server: Server) -> Iterator[tuple[Path, str]]:
    for secret in server.keys:
        if not secret.value:
            yield (
                _KEYS,
                f"The environment variable {secret.variable} is not set: set it, or remove "
                f'"env:{secret.variable}" from the list.{meant_variable(secret)}',
            )


def meant_variable(secret: Secret) -> str:
    return f" Did you mean {secret.alike}, which is set?" if secret.alike else ""


def clients_mistakes(
    server: Server, clients: Mapping[str, ClientConfig], models: Collection[str]
) -> Iterator[tuple[Path, str]]:
    """A key says who calls, so no two may have the same."""
    seen = {secret.value: "[server] keys" for secret in server.keys}
    for client in clients.values():
        path, key = ("clients", client.id, "key"), client.key
        if client.id == "default":
            yield path[:2], "is the name of whoever has one of [server] keys: take another."
        if key.variable and not key.value:
            yield path, f"The environment variable {key.variable} is not set.{meant_variable(key)}"
        elif key.value and key.value in seen:
            yield path, f"is the same as the key of {seen[key.value]}: give each its own."
        seen.setdefault(key.value, f"[clients.{client.id}]")
        for name in _nobodys(client.models, models):
            hint = suggest(name, models)
            path = ("clients", client.id, "models")
            yield path, f"has '{name}', but there is no such model here.{hint}"


def _nobodys(named: Iterable[str], models: Collection[str]) -> Iterator[str]:
    """Names that open nothing; a pattern may be of models that come."""
    names = PublicNames(models)
    return (name for name in named if "*" not in name and models and not names.meant(name))


def open_doors(
    host: str, asked: Sequence[Secret], upstreams: Mapping[str, UpstreamConfig]
) -> Iterator[tuple[Path, str]]:
    """Refuse to let strangers spend the owner's money."""
    at_their_own_cost = bool(upstreams) and all(
        upstream.of_client or upstream.language.free for upstream in upstreams.values()
    )
    if not (asked or is_loopback(host) or at_their_own_cost):
        yield (
            _KEYS,
            f"There are none, but host '{host}' can be reached from other machines, "
            'which could then use your upstream keys: set keys = ["env:USETOOL_KEY"], write a '
            '[clients.NAME], or set host = "127.0.0.1".',
        )


def two_keys(
    asked: Sequence[Secret], upstreams: Mapping[str, UpstreamConfig]
) -> Iterator[tuple[Path, str]]:
    """A request carries one key: it opens the gateway or the upstream."""
    for upstream in upstreams.values():
        if upstream.of_client and asked:
            yield (
                ("upstreams", upstream.id, "api_key"),
                'is "client", but clients are asked for a key of the gateway too ([server] keys, '
                "[clients]), and a request carries "
                "one key. Remove the keys, or write the upstream's own key here.",
            )


def of_one_process(config: Config) -> Iterator[tuple[Path, str]]:
    """What several workers cannot have together."""
    count = config.server.workers
    if count == 1:
        return
    told = f"but [server] workers is {count}: write 1 there, or"
    if config.cassettes is not None:
        yield ("cassettes",), f"needs one process that counts its turns, {told} remove this."
    if config.state.url == "memory:":
        yield ("state", "url"), f'is "memory:", {told} name a file or Redis here.'
    if config.recall.store == "memory":
        yield ("recall", "store"), f'is "memory", {told} write "state", "file" or "off".'
    for upstream in config.upstreams.values():
        if upstream.language.embedded:
            path = ("upstreams", upstream.id, "kind")
            yield path, f"is a model that each process would load, {told} have a server load it."


def is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
