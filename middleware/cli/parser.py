"""The parser of all commands, and the command it finds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from middleware import __version__
from middleware.cli.command import WRONG, Failed, complain

Add = Callable[[Any, argparse.ArgumentParser], None]
_ABOUT = """\
Makes every model a first-class OpenAI chat-completions endpoint with tools.

Clients speak OpenAI's, Anthropic's or Ollama's protocol to it; it speaks to Claude, DeepSeek,
Ollama and every OpenAI-compatible server, and says of each request what was changed on the way.
"""
_EXAMPLES = """\
examples:
  usetool serve                                 with config.toml of this folder, if there is one
  usetool init                                  write a config.toml to change
  usetool serve --config my.toml --port 9000
  usetool run codex                             a client, with a gateway of its own beside it
  usetool check                                 before a restart: mistakes, missing keys
  usetool check --live                          asks every upstream, says what to write
  usetool explain --model sonnet request.json   what would be sent, and what would be lost
  usetool last ID --curl                        what was sent, as commands that repeat it
  usetool usage --by client                     requests, tokens and USD
  usetool tools                                 what the gateway runs itself, and what it lacks
  usetool chat --model sonnet                   talk to a model, with three example tools
  usetool import litellm proxy.yaml -o my.toml  come from LiteLLM's proxy
  eval "$(usetool completion bash)"             complete commands in this shell
"""


def _parted(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What stands behind -- is another command, for those that run one."""
    if "--" not in arguments or arguments[0] not in ("record", "replay"):
        return arguments, ()
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def run(arguments: Sequence[str] | None) -> int:
    own, child = _parted(sys.argv[1:] if arguments is None else arguments)
    read = parser(_add_serve if own[:1] == ["serve"] else _add_all)
    options = read.parse_args(own, argparse.Namespace(child=child))
    from middleware.config import ConfigError

    try:
        code: int = options.command(options)
    except Failed as error:
        complain(error)
        return error.code
    except ConfigError as error:
        complain(error)
        return WRONG
    return code


def _add_all(commands: Any, parser: argparse.ArgumentParser) -> None:
    from middleware.cli import (
        chat,
        check,
        completion,
        explain,
        importers,
        init,
        last,
        launch,
        pull,
        serve,
        tools,
        usage,
    )
    from middleware.cli.cassettes import cassette, record, replay

    own = (serve, launch, check, explain, last, usage, tools, chat, init, importers, pull)
    for command in (*own, record, replay, cassette):
        command.add(commands)
    completion.add(commands, parser)


def _add_serve(commands: Any, _: argparse.ArgumentParser) -> None:
    """Whoever waits for a gateway to start waits for no other command."""
    from middleware.cli import serve

    serve.add(commands)


def parser(add: Add = _add_all) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "usetool",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"usetool {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add(commands, parser)
    return parser
