"""What stands around every leaf: Breaker › Queue › Rotation, of which only the first always."""

from __future__ import annotations

from adapters.leaf import Leaf
from middleware.config import ModelConfig
from middleware.wrappers.breaker import Breaker
from middleware.wrappers.calls import Guarded
from middleware.wrappers.key_ring import KeyRing
from middleware.wrappers.keys import Rotation
from middleware.wrappers.queue import Queue


def guard(leaf: Leaf, model: ModelConfig, ring: KeyRing) -> Breaker:
    inner: Guarded = leaf
    if ring.secrets:
        inner = Rotation(inner, ring)
    if ring.secrets or ring.limit or ring.counting:
        inner = Queue(inner, ring)
    return Breaker(inner, ring, model.id, model.name)
