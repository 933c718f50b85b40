"""An upstream of the config → the way to it: address, headers, keys, patience."""

from __future__ import annotations

from typing import NamedTuple

from adapters.wire.http import Link, Timeouts, Transport
from middleware import __version__
from middleware.config import UpstreamConfig
from middleware.wrappers.key_ring import KeyRing
from middleware.wrappers.retry import Budget

TRY_IT = "`usetool check --live` tries it."
_KEYS = frozenset({"api_key", "authorization", "x-api-key", "api-key"})
# Shorter ones are stand-ins, and blotting them out would blot out words.
_SHORTEST_SECRET = 6


class Connected(NamedTuple):
    """An upstream with what its models share."""

    config: UpstreamConfig
    link: Link
    budget: Budget
    ring: KeyRing


def link_to(upstream: UpstreamConfig, transport: Transport) -> Link:
    secrets = (secret.value for secret in upstream.secrets())
    return Link(
        name=upstream.id,
        base_url=upstream.base_url,
        transport=transport,
        headers=_headers(upstream),
        timeouts=Timeouts(**upstream.timeouts),
        proxy=upstream.proxy.value if upstream.proxy else None,
        secrets=tuple(secret for secret in secrets if len(secret) >= _SHORTEST_SECRET),
        key_from=_key_from(upstream),
        opened_by=upstream.auth if upstream.of_client or upstream.rotation else "",
    )


def _key_from(upstream: UpstreamConfig) -> str:
    """Where to look when it refuses the key; never the key."""
    if upstream.of_client:
        return "The key is the one that the client sent."
    if upstream.rotation:
        variables = [f"env:{key.variable}" for key in upstream.rotation if key.variable]
        where = ", ".join(variables) or f"api_key under [upstreams.{upstream.id}]"
        return f"The key is one of several: {where}. {TRY_IT}"
    named = {"api_key": upstream.api_key, **upstream.headers}
    for name, secret in named.items():
        if secret is not None and name.lower() in _KEYS:
            where = f"env:{secret.variable}" if secret.variable else f"'{name}' in the config"
            return f"The key comes from {where}. {TRY_IT}"
    if upstream.language.finds_keys:
        return ""
    return f'No key is sent: write api_key = "env:NAME" under [upstreams.{upstream.id}].'


def _headers(upstream: UpstreamConfig) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        # An answer that arrives compressed could be a bomb.
        "accept-encoding": "identity",
        "user-agent": f"usetool/{__version__}",
    }
    # Of several this is for small questions; a call has the one whose turn it is.
    key = next((key.value for key in upstream.api_keys if key.value), "")
    if key and upstream.auth == "x-api-key":
        headers["x-api-key"] = key
    elif key:
        headers["authorization"] = f"Bearer {key}"
    configured = {name.lower(): secret.value for name, secret in upstream.headers.items()}
    return {**headers, **configured}
