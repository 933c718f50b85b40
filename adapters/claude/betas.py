"""Betas that a client asks for, as far as the upstream knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from adapters.protocol import Json, RequestContext
from adapters.receipts import Note, Receipt
from adapters.wire.http import Link

HEADER = "anthropic-beta"
_MOST = 64
# Members of a request that a beta brought: without it they are refused.
_BROUGHT_BY: Mapping[str, str] = {
    "context_management": "context-management-",
    "mcp_servers": "mcp-client-",
    "speed": "fast-mode-",
    "output_format": "structured-outputs-",
}


class Betas(NamedTuple):
    passed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def headers(self) -> Mapping[str, str]:
        return {HEADER: ",".join(self.passed)} if self.passed else {}

    def receipt(self) -> Receipt:
        if not self.dropped:
            return ()
        text = f"not sent, as the upstream may refuse them: {', '.join(self.dropped)[:500]}"
        return (Note("beta_dropped", "", text),)

    def without_theirs(self, own: Json) -> Json:
        """The client's members but for those of betas that were dropped."""
        lost = {
            name
            for name, beta in _BROUGHT_BY.items()
            if any(one.startswith(beta) for one in self.dropped)
        }
        return {name: value for name, value in own.items() if name not in lost}


def betas_of(call: RequestContext, allowed: Sequence[str] | None, link: Link) -> Betas:
    """Anthropic itself knows them all; elsewhere those that the config allows."""
    asked = _names(call.headers.get(HEADER, ""))
    if not asked:
        return Betas()
    own = _names(link.headers.get(HEADER, ""))
    known = {*asked} if allowed is None and _is_anthropics(link.base_url) else {*(allowed or ())}
    passed = tuple(beta for beta in asked if beta in known and beta not in own)
    dropped = tuple(beta for beta in asked if beta not in known and beta not in own)
    return Betas((*own, *passed), dropped)


def _names(header: str) -> list[str]:
    named = (one.strip() for one in header.split(","))
    return [*dict.fromkeys(filter(None, named))][:_MOST]


def _is_anthropics(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return host == "anthropic.com" or host.endswith(".anthropic.com")
