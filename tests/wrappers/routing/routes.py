"""Routes of a config, and what a leaf behind them is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.protocol import (
    ChatRequest,
    Planned,
)
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.routing import Routes

HELLO = ({"role": "user", "content": "hello"},)
HEAD = '[upstreams.up]\nkind = "compatible"\nbase_url = "http://127.0.0.1:1/v1"\n'


def routes(text: str, environment: Mapping[str, str] | None = None) -> Routes:
    return build(config.parse(HEAD + text, environment=environment or {}), Transport())


def asked(model: str = "m", **params: Any) -> ChatRequest:
    return ChatRequest(model, HELLO, params=params)


def planned(found: Routes, request: ChatRequest) -> Planned:
    (only,) = found.find(request.model).plan(request)
    return only


# What stands around models whose servers read calls out of text.
NET = ("Automatic", "LeakRescue")
