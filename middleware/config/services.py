"""What to write for a service people know by name, where its name stands for a kind."""

from __future__ import annotations

from adapters.kind import Service, all_kinds, known_kind
from middleware.config.hints import path_of


def meant(name: str) -> Service | None:
    """The service that somebody means who writes its name for a kind."""
    plain = _plain(name)
    for kind in all_kinds():
        for known, service in kind.services.items():
            if plain == _plain(known) or plain in service.aliases:
                return service
    return None


def usual_upstream(kind: str) -> dict[str, str]:
    """What an upstream of a kind says that needs no more than its key, if that."""
    service = known_kind(kind).services.get(kind)
    return {"kind": kind, **({"api_key": f"env:{service.variable}"} if service else {})}


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def stanza(upstream: str, service: Service) -> str:
    """What to write for it, line by line."""
    lines = [f"[{path_of('upstreams', upstream)}]", f'kind = "{service.kind}"']
    lines += [f'base_url = "{service.base_url}"'] if service.base_url else []
    lines += [f'api_key = "env:{service.variable}"'] if service.variable else []
    return "".join([f"\n  {line}" for line in lines])
