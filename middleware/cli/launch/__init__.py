"""`usetool run`: a client with a gateway of its own beside it."""

from __future__ import annotations

import argparse
import os
from typing import Any

from middleware.cli.command import Failed, add_configured, complain

_ABOUT = """\
Starts a gateway on a free port and a client that asks it, and ends with the client's exit code;
then the gateway is gone too. codex and claude are told all that they need; any other command finds
the gateway in its environment (OPENAI_BASE_URL, ANTHROPIC_BASE_URL, OLLAMA_HOST). What the config
has (models, server tools, the ledger) is used; no key is asked.

  usetool run --model sonnet codex exec "mend the failing test"
  usetool run claude

Exit code: the client's own; 127 if there is none, 1 if no model can answer.
"""


def add(commands: Any) -> None:
    parser = add_configured(commands, "run", "run a client with its own gateway", _ABOUT, run)
    parser.add_argument(
        "--model", help="the model it asks unless it says another; default: the first"
    )
    parser.add_argument("client", metavar="CLIENT", help="codex, claude, or any other command")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="its own")


def run(options: argparse.Namespace) -> int:
    from middleware.cli.endpoint import GatewayAddress, models
    from middleware.cli.launch.child import code_of
    from middleware.cli.launch.clients import launched
    from middleware.cli.launch.gateway import private_gateway
    from middleware.config import load

    config = load(options.config)
    with open(os.devnull, "w") as log, private_gateway(config, log=log) as base:
        model = options.model or next(iter(models(GatewayAddress(f"{base}/v1"))), "")
        if not model:
            raise Failed("No model can answer: `usetool check` says what is missing.")
        complain(f"{options.client} asks the gateway at {base}, model '{model}'.")
        command, environment = launched(options.client, base, model, os.environ)
        return code_of([*command, *options.arguments], environment)
