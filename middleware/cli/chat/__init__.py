"""`usetool chat`: a conversation on the terminal."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

from middleware.cli.command import FINE, add_configured

_ABOUT = """\
A chat on this terminal: text as it streams in, thoughts dim, tool calls and their results. The
model gets three example tools: a weather that is made up, a calculator and a clock.

Talks to the gateway of the config if it runs, else runs that config inside the chat.
"""


def add(commands: Any) -> None:
    chat = add_configured(commands, "chat", "talk to a model on the terminal", _ABOUT, run)
    chat.add_argument("--model", help="public name of the model; the first that can answer")
    chat.add_argument("--url", help="address of another gateway, instead of the config's")
    chat.add_argument("--key", default="", help="key for --url")
    chat.add_argument("--no-tools", action="store_true", help="without the example tools")


def run(options: argparse.Namespace) -> int:
    from middleware.cli.chat.gateway import running
    from middleware.cli.chat.screen import Screen
    from middleware.cli.chat.session import chat
    from middleware.cli.chat.tools import example_tools
    from middleware.cli.endpoint import GatewayAddress, address
    from middleware.config import load

    with suppress(ImportError):  # not on Windows; it makes input() remember and edit lines
        import_module("readline")
    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    screen = Screen(_print_now, colours)
    tools = () if options.no_tools else example_tools()
    if options.url:
        endpoint = GatewayAddress(address(options.url), options.key)
        chat(endpoint, options.model, tools, input, screen)
        return FINE
    with running(load(options.config), screen.note) as endpoint:
        chat(endpoint, options.model, tools, input, screen)
    return FINE


def _print_now(text: str) -> None:
    print(text, end="", flush=True)
