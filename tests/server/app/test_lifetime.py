"""How long a gateway lives: FastAPI's caches keep the functions they were given."""

from __future__ import annotations

import gc
import io
import weakref

from middleware import config
from middleware.server.app import create

CONFIG = '[upstreams.script]\nkind = "scripted"\n[models.demo]\nupstream = "script"\n'


def test_a_gateway_that_nobody_holds_is_freed() -> None:
    gateway = create(config.parse(CONFIG, environment={}), io.StringIO())
    edge = weakref.ref(gateway.chat)
    del gateway
    gc.collect()
    assert edge() is None
