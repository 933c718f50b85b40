"""The Redis that LiteLLM's proxies share → `[state]`."""

from __future__ import annotations

from adapters.options import Wrong
from middleware.cli.importers.collecting import (
    Table,
    Taking,
    is_reference,
    table_of,
    variable_of,
)
from middleware.config.values import STATE_URL

_VARIABLE = "REDIS_URL"
_CACHE = "answers are not cached here; its Redis, if it has one, is [state]"


def state_of(router: Taking, general: Taking, library: Taking) -> Table:
    found = [_nested(general, "coordination_redis"), _url(router, "redis_")]
    cache = table_of(library.left.get("cache_params"))
    if cache:
        found.append(
            _nested(library, "cache_params") if "redis" in str(cache.get("type")) else None
        )
    for key in ("cache", "cache_params"):
        if key in library.left:
            library.lose(key, _CACHE)
    urls = [*dict.fromkeys(filter(None, found))]
    if len(urls) > 1:
        router.lose("redis_url", f"one Redis is enough here: the first of {len(urls)} is taken")
    return {"url": urls[0]} if urls else {}


def _nested(section: Taking, key: str) -> str | None:
    given = table_of(section.take(key))
    inner = Taking("", f"{section.path}{key}.", given, section.around, section.lost)
    return _url(inner, "")


def _url(taking: Taking, before: str) -> str | None:
    given = taking.take(f"{before}url")
    if is_reference(given) and variable_of(given):
        return f"env:{variable_of(given)}"
    scheme = "rediss" if taking.take(f"{before}ssl") is True else "redis"
    at = _host_and_port(taking, before)
    secret = [taking.left.pop(f"{before}{name}", None) for name in ("username", "password")]
    url = str(given or (at and f"{scheme}://{at}"))
    if any(secret) or "@" in url:
        shown = f"{scheme}://:PASSWORD@{at or 'HOST:6379'}"
        why = f"is not copied: set the environment variable {_VARIABLE} to the address, {shown}"
        taking.lose(f"{before}password", why)
        return f"env:{_VARIABLE}"
    return _fitting(taking, f"{before}url", url) if url else None


def _host_and_port(taking: Taking, before: str) -> str:
    host, port = taking.text(f"{before}host"), taking.text(f"{before}port")
    return f"{host}:{port or 6379}" if host else ""


def _fitting(taking: Taking, key: str, url: str) -> str | None:
    try:
        STATE_URL.read(url, {})
    except Wrong:
        url = ""
    if url.startswith("redis"):
        return url
    taking.lose(key, "is no address of a Redis")
    return None
