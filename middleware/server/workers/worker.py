"""Where a serving process begins; all that it needs to know it reads from its input."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from middleware.cli.command import WRONG, Failed, complain
from middleware.config import ConfigError, parse
from middleware.server.transport.serving import serve_on, tell_of_work
from middleware.server.workers.member import Member, Seat


def work(said: Mapping[str, Any]) -> int:
    """Serve, and return the exit code. The config is as it was when the gateway started, so that
    what takes a restart is the same in all workers; what has changed since is then loaded again.
    """
    try:
        config = parse(said["text"], source=said["source"], server=said["asked"])
        config = replace(config, stamp=tuple(said["stamp"]) if said["stamp"] else None)
        tell_of_work(config.server.log_level)
        line, door = (socket.socket(fileno=said[name]) for name in ("line", "door"))
        seat = Seat(said["number"], config.server.workers, said["begins"])
        with suppress(KeyboardInterrupt):
            serve_on([], config, said["asked"], member=Member(seat, line, door, config))
    except Failed as error:
        complain(error)
        return error.code
    except ConfigError as error:
        complain(error)
        return WRONG
    finally:
        sys.stderr.flush()
    return 0
