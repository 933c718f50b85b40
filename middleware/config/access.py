"""Who may use the gateway, and at whose cost: what the config must say about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from middleware.config.shape import Secret, Server, UpstreamConfig

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


def open_doors(
    server: Server, upstreams: Mapping[str, UpstreamConfig]
) -> Iterator[tuple[Path, str]]:
    """Refuse to let strangers spend the owner's money."""
    at_their_own_cost = bool(upstreams) and all(
        upstream.of_client or upstream.language.free for upstream in upstreams.values()
    )
    if not (server.keys or is_loopback(server.host) or at_their_own_cost):
        yield (
            _KEYS,
            f"There are none, but host '{server.host}' can be reached from other machines, "
            'which could then use your upstream keys: set keys = ["env:USETOOL_KEY"], or '
            'host = "127.0.0.1".',
        )


def two_keys(server: Server, upstreams: Mapping[str, UpstreamConfig]) -> Iterator[tuple[Path, str]]:
    """A request carries one key: it opens the gateway or the upstream."""
    for upstream in upstreams.values():
        if upstream.of_client and server.keys:
            yield (
                ("upstreams", upstream.id, "api_key"),
                'is "client", but [server] keys are asked of clients too, and a request carries '
                "one key. Remove the keys, or write the upstream's own key here.",
            )


def is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
