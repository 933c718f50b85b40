"""The command line; everything heavy is imported by the command that needs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from middleware import __version__, pulling

if TYPE_CHECKING:
    from middleware.config import Config
    from middleware.routing import Routes

FINE, LACKING, WRONG = 0, 1, 2

_ABOUT = """\
Makes every model a first-class OpenAI chat-completions endpoint with tools.

Clients speak OpenAI to it; it speaks to Claude, DeepSeek, Ollama and every OpenAI-compatible
server, and says of each request what was changed on the way.
"""
_EXAMPLES = """\
examples:
  usetool serve                                 with config.toml of this folder
  usetool serve --config my.toml --port 9000
  usetool check                                 before a restart: mistakes, missing keys
  usetool check --live                          asks every upstream, says what to write
  usetool explain --model sonnet request.json   what would be sent, and what would be lost
  usetool last ID --curl                        what was sent, as commands that repeat it
  usetool chat --model sonnet                   talk to a model, with three example tools
  usetool import litellm proxy.yaml -o my.toml  come from LiteLLM's proxy
"""
_SERVE = """\
Listens until it is interrupted; requests that are being answered then get 30 seconds to end.
"""
_CHECK = """\
Reads the config as `serve` does, and says what it means: each model with its abilities and the
adapters a request walks through, and every environment variable it needs, found or missing. Asks
an Ollama whether it runs; with --live each upstream for a word, and says what is wrong.

Exit code: 0 all models can answer, 1 one of them lacks something, 2 the file has mistakes.
"""
_EXPLAIN = """\
Takes a request as a client would send it, and prints what would be sent upstream: address, body,
and a receipt of all that is not as the client said it. Sends nothing, and needs no keys. With --id
the request is one that the running gateway keeps (see `usetool last`).

Exit code: 0, or 1 if the request would be refused (with the reason), 2 if the config has mistakes.
"""
_LAST = """\
Asks the running gateway for the requests it keeps ([server] keep_last). Without an ID it lists
them; with one it prints the client's body, each upstream's body and answer, the receipt and the
times; with --curl the commands that repeat both sides. Secrets are never shown: commands take them
from the shell's variables.
"""
_MODELS = """\
Lists a config's models and what they lack. GET /v1/models also names those that a * stands for.
"""
_CHAT = """\
A chat on this terminal: text as it streams in, thoughts dim, tool calls and their results. The
model gets three example tools: a weather that is made up, a calculator and a clock.

Talks to the gateway of the config if it runs, else runs that config inside the chat.
"""
_IMPORT = """\
Writes a config.toml from another gateway's config, and lists on stderr what it could not carry,
with the reason. Keys stay in the environment: one that is written out in the file is not copied.

Exit code: 0 all was carried, 1 something was not, 2 nothing was written.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    from middleware.config import ConfigError

    try:
        return command(options)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return WRONG


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "usetool",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"usetool {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    serve = _add(commands, "serve", "run the gateway", _SERVE, _serve)
    serve.add_argument("--host", help="address to listen on, instead of the config's")
    serve.add_argument("--port", type=int, help="port to listen on, instead of the config's")
    serve.add_argument("--log-level", help="debug, info, warning or error")

    check = _add(commands, "check", "say what a config means and lacks", _CHECK, _check)
    check.add_argument("--live", action="store_true", help="ask each upstream something tiny")
    check.add_argument(
        "--from-docker", action="store_true", help="print the address for clients in containers"
    )

    explain = _add(commands, "explain", "show what a request becomes", _EXPLAIN, _explain)
    explain.add_argument("--model", help="public name of the model, instead of the request's")
    explain.add_argument("--stream", action="store_true", help="as a streamed request")
    explain.add_argument("--id", metavar="ID", help="a request the running gateway keeps")
    explain.add_argument(
        "request", nargs="?", help="file with the JSON body of a request; - is stdin"
    )

    last = _add(commands, "last", "show what was sent and answered", _LAST, _last)
    last.add_argument("id", nargs="?", metavar="ID", help="a request, as errors and logs name it")
    last.add_argument("--curl", action="store_true", help="print commands that repeat both sides")
    last.add_argument("--url", default="", help="address of another gateway than the config's")
    last.add_argument("--key", default="", help="a client's key, instead of the config's")

    _add(commands, "models", "list the models", _MODELS, _models)

    chat = _add(commands, "chat", "talk to a model on the terminal", _CHAT, _chat)
    chat.add_argument("--model", help="public name of the model; the first that can answer")
    chat.add_argument("--url", help="address of another gateway, instead of the config's")
    chat.add_argument("--key", default="", help="key for --url")
    chat.add_argument("--no-tools", action="store_true", help="without the example tools")

    came = _bare(commands, "import", "write a config from another gateway's", _IMPORT, _import)
    came.add_argument("format", choices=["litellm"], help="whose config it is")
    came.add_argument("file", help="the config of LiteLLM's proxy, in YAML")
    came.add_argument("-o", "--output", metavar="FILE", help="where to write; default: stdout")
    came.add_argument("--force", action="store_true", help="write over a file that is there")
    pulling.add(commands)
    return parser


def _add(
    commands: Any, name: str, summary: str, text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """A command that reads the config."""
    parser = _bare(commands, name, summary, text, run)
    parser.add_argument(
        "--config", default="config.toml", metavar="FILE", help="default: config.toml"
    )
    return parser


def _bare(
    commands: Any, name: str, summary: str, text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=run)
    return parser


def _serve(options: argparse.Namespace) -> int:
    from middleware.config import load

    names = ("host", "port", "log_level")
    asked = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    config = load(options.config, server=asked)
    from middleware.serving import AddressTaken, serve

    try:
        with suppress(KeyboardInterrupt):
            serve(config, asked)
    except AddressTaken as error:
        print(error, file=sys.stderr)
        return LACKING
    return FINE


def _check(options: argparse.Namespace) -> int:
    import asyncio

    from middleware import describe, probing
    from middleware.config import load
    from middleware.models import ModelList

    config = load(options.config)
    entries = probing.present(config)
    print(describe.check(config, ModelList(config, _routes(config)), entries, os.environ))
    well = all(entry.available for entry in entries)
    if options.from_docker:
        print("", describe.from_docker(config.server), sep="\n")
    if options.live:
        found = asyncio.run(probing.probe(config, os.environ))
        print("", describe.findings(found), sep="\n")
        well = well and all(one.well for one in found)
    return FINE if well else LACKING


def _last(options: argparse.Namespace) -> int:
    from middleware.chatting import Failed
    from middleware.config import load
    from middleware.last import looking

    gateway = looking.endpoints(load(options.config), options.url, options.key)
    try:
        if options.id is None:
            print(looking.listed(gateway))
        else:
            one = looking.fetched(gateway, options.id)
            print(looking.commands(one) if options.curl else looking.shown(one))
    except Failed as error:
        print(error, file=sys.stderr)
        return LACKING
    return FINE


def _models(options: argparse.Namespace) -> int:
    from middleware import describe, probing
    from middleware.config import load

    print(describe.models(probing.present(load(options.config))))
    return FINE


def _explain(options: argparse.Namespace) -> int:
    from adapters.errors import GatewayError
    from middleware import describe
    from middleware.chatting import Failed
    from middleware.doors.openai import parse

    config = _without_keys(options.config)
    try:
        body = _body(options)
    except Failed as error:
        print(error, file=sys.stderr)
        return LACKING
    except OSError as error:
        print(f"{options.request}: cannot be read: {error.strerror}", file=sys.stderr)
        return WRONG
    try:
        server = config.server
        asked = parse(body, repair=server.history_repair, strict=server.strict)
        planned = _routes(config).find(asked.request.model).plan(asked.request)
    except GatewayError as error:
        where = f" at {error.param}" if error.param else ""
        print(f"{error.status} {error.code}{where}: {error.message}", file=sys.stderr)
        return LACKING
    print(describe.plan(planned, asked.receipt))
    return FINE


def _chat(options: argparse.Namespace) -> int:
    from middleware import chatting
    from middleware.config import load

    with suppress(ImportError):  # not on Windows; it makes input() remember and edit lines
        import_module("readline")
    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    screen = chatting.Screen(_print_now, colours)
    tools = () if options.no_tools else chatting.example_tools()
    try:
        if options.url:
            endpoint = chatting.Endpoint(chatting.address(options.url), options.key)
            chatting.chat(endpoint, options.model, tools, input, screen)
            return FINE
        with chatting.running(load(options.config), screen.note) as endpoint:
            chatting.chat(endpoint, options.model, tools, input, screen)
    except chatting.Failed as error:
        print(error, file=sys.stderr)
        return LACKING
    return FINE


def _print_now(text: str) -> None:
    print(text, end="", flush=True)


def _import(options: argparse.Namespace) -> int:
    from middleware import importing

    output = Path(options.output) if options.output else None
    if output and output.exists() and not options.force:
        print(f"{output} is there already: choose another name, or --force.", file=sys.stderr)
        return WRONG
    try:
        found = importing.from_litellm_file(options.file, os.environ)
        if output:
            output.write_text(found.text, "utf-8")
        else:
            print(found.text, end="")
    except importing.Unreadable as error:
        print(error, file=sys.stderr)
        return WRONG
    except OSError as error:
        print(f"{error.filename or output}: {error.strerror}", file=sys.stderr)
        return WRONG
    print(f"{len(found.models)} models written to {output or 'stdout'}.", file=sys.stderr)
    if lost := importing.lost_lines(found.lost):
        print("Not carried:", *lost, sep="\n  ", file=sys.stderr)
    return LACKING if lost else FINE


def _without_keys(path: str) -> Config:
    """Read the config as if every key was there: nothing will be sent."""
    from middleware.config import load

    missing = {name for up in load(path).upstreams.values() for name in up.missing()}
    return load(path, environment={**os.environ, **dict.fromkeys(missing, "not-set")})


def _body(options: argparse.Namespace) -> bytes:
    """The request, with what the command line says of it."""
    import orjson

    body = _given(options)
    changes = {"model": options.model} if options.model else {}
    changes |= {"stream": True} if options.stream else {}
    with suppress(orjson.JSONDecodeError):  # the door says what is wrong with it
        data = orjson.loads(body)
        return orjson.dumps({**data, **changes}) if isinstance(data, dict) else body
    return body


def _given(options: argparse.Namespace) -> bytes:
    if options.id:
        from middleware.config import load
        from middleware.last import looking

        gateway = looking.endpoints(load(options.config), "", "")
        body: str = looking.fetched(gateway, options.id)["body"]
        return body.encode()
    if options.request in (None, "-"):
        return sys.stdin.buffer.read()
    return Path(options.request).read_bytes()


def _routes(config: Config) -> Routes:
    from adapters.http import Transport
    from middleware.routing import build

    return build(config, Transport())


if __name__ == "__main__":
    sys.exit(main())
