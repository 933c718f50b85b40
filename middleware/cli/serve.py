"""`usetool serve`: runs the gateway."""

from __future__ import annotations

import argparse
import gc
from contextlib import suppress
from typing import Any

from middleware.cli.cassettes.options import add_allow_live, heed_ci
from middleware.cli.command import FINE, add_configured

_ABOUT = """\
Listens until it is interrupted; requests that are being answered then get 25 seconds to end.
"""


def add(commands: Any) -> None:
    serve = add_configured(commands, "serve", "run the gateway", _ABOUT, run)
    serve.add_argument("--host", help="address to listen on, instead of the config's")
    serve.add_argument("--port", type=int, help="port to listen on, instead of the config's")
    add_allow_live(serve)
    serve.add_argument("--log-level", help="debug, info, warning or error")


def run(options: argparse.Namespace) -> int:
    gc.disable()  # looking for garbage is a tenth of a start, and finds none
    try:
        return _serve(options)
    finally:
        gc.enable()


def _serve(options: argparse.Namespace) -> int:
    from middleware.config import load

    given = {"host": options.host, "port": options.port, "log_level": options.log_level}
    given = {name: value for name, value in given.items() if value is not None}
    config = load(options.config, server=given)
    if config.cassettes is not None:
        from middleware.cassettes.setup import records

        if records(config):  # as [cassettes] or USETOOL_MODE says
            heed_ci(options)
    if config.server.workers > 1:
        from middleware.server.workers.supervisor import supervise

        gc.enable()
        return supervise(config, given)
    from middleware.server.transport.serving import serve

    with suppress(KeyboardInterrupt):
        serve(config, given)
    return FINE
