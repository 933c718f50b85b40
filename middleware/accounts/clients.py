"""Who calls: by the key of a request, which is known by its digest alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from middleware.accounts.limits import ClientLimits, limits_of
from middleware.config import ClientConfig, Config

_DEFAULT = "default"


class Client(NamedTuple):
    """Somebody who may call."""

    name: str = _DEFAULT
    """For limits, ledger, log and metrics; `default` where [clients] does not name it."""
    owner: str = ""
    """Digest under which memories are kept: of the name where it has one, so that a new key loses
    none of them, else of the key.
    """
    said: ClientConfig | None = None
    """None: it may do everything, without limits."""
    limits: ClientLimits | None = None
    """None: it has none."""

    @property
    def admin(self) -> bool:
        return self.said is not None and self.said.admin

    def may_ask(self, model: str) -> bool:
        return self.said is None or not self.said.models or _fits(model, self.said.models)

    def may_play(self, cassette: str) -> bool:
        """Whether it may name this cassette: those hold what others asked."""
        return self.said is None or self.said.admin or _fits(cassette, self.said.cassettes)


def clients_by_key(config: Config) -> Mapping[str, Client]:
    """Digest of the key → whose it is."""
    keys = [key.value.encode() for key in config.server.keys]
    found = {digest(key): Client(owner=digest(key)) for key in keys}
    for said in config.clients.values():
        owner = digest(b"client " + said.id.encode())
        found[digest(said.key.value.encode())] = Client(said.id, owner, said, limits_of(said))
    return found


def digest(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


def _fits(name: str, patterns: Iterable[str]) -> bool:
    """A `*` stands for any text."""
    return any(_fits_one(name, pattern.split("*")) for pattern in patterns)


def _fits_one(name: str, parts: list[str]) -> bool:
    first, *between = parts
    if not between:
        return name == first
    last = between.pop()
    if not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in between:
        at = name.find(part, at, max(at, end))
        if at < 0:
            return False
        at += len(part)
    return at <= end
