"""Requests as they are at their end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapters.errors import Busy
from adapters.outcomes import Outcome, PassedOver
from adapters.protocol import Finish, Journey, Opened, Upstream, UpstreamCall, Usage
from middleware import config
from middleware.server.visits import Visit
from middleware.telemetry.vocabulary import Vocabulary

CONFIG = """
[upstreams.up]
kind = "compatible"
base_url = "http://up.test:8123/v1"
[upstreams.claude]
kind = "claude"
api_key = "k"
[models.m]
upstream = "up"
name = "demo-1"
[models.opus]
upstream = "claude"
name = "claude-opus"
[models."open/*"]
upstream = "up"
name = "vendor/*"
"""
USED = Usage(100, 50, cached=40, cache_write=10, reasoning=5)
OPENED = Opened((), Upstream("up", "demo-1-0613"))
BEGAN, FIRST, NOW = 100.0, 100.3, 102.0


def vocabulary() -> Vocabulary:
    return Vocabulary(config.parse(CONFIG, environment={}))


def call(place: str = "m", upstream: str = "up", outcome: Outcome = "ok") -> UpstreamCall:
    made = UpstreamCall(place, upstream, "demo-1", BEGAN, outcome=outcome, ended=NOW)
    if outcome == "ok":
        made.opened, made.finish = OPENED, Finish("stop", USED)
    else:
        made.error = Busy("full of it")
    return made


def visit(steps: Sequence[UpstreamCall | PassedOver] = (), **fields: Any) -> Visit:
    said: dict[str, Any] = {
        "path": "/v1/chat/completions",
        "model": "m",
        "status": 200,
        "first_event": FIRST,
        "finish": Finish("stop", USED),
        "client": "alpha",
        "cost": 0.25,
        **fields,
    }
    return Visit("req_1", BEGAN, journey=Journey([*steps]), **said)
