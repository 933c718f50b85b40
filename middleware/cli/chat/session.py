"""The lines a person types: words for the model, and a few commands for the chat itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from middleware.cli.chat.conversation import Dialogue
from middleware.cli.chat.screen import Screen
from middleware.cli.chat.tools import ChatTool
from middleware.cli.command import Failed
from middleware.cli.endpoint import GatewayAddress, models, require

Read = Callable[[str], str]
_HELP = "/model NAME  another model    /new  forget what was said    /tools  on or off    /quit"


def chat(
    endpoint: GatewayAddress,
    model: str | None,
    tools: tuple[ChatTool, ...],
    read: Read,
    screen: Screen,
) -> None:
    """Talk until the input ends; raises `Failed` if there is nothing to talk to."""
    names = models(endpoint)
    chosen = model or next(iter(names), None)
    if chosen is None:
        raise Failed(f"No model of {endpoint.url} can answer now; `usetool check` says why.")
    require(endpoint, chosen, names)
    screen.line(f"{chosen} at {endpoint.url} (all: {', '.join(names)})")
    screen.note(f"tools: {', '.join(tool.name for tool in tools) or 'none'}    {_HELP}")
    _talk(endpoint, Dialogue(endpoint.ask, chosen, screen, tools), tools, read)


def _talk(
    endpoint: GatewayAddress, talk: Dialogue, tools: tuple[ChatTool, ...], read: Read
) -> None:
    while (line := _line(read)) is not None:
        if line in ("/quit", "/exit"):
            return
        if line.startswith("/"):
            talk = _command(endpoint, talk, line, tools)
        elif line:
            say(talk, line)


def _line(read: Read) -> str | None:
    try:
        return read("> ").strip()
    except (EOFError, KeyboardInterrupt):
        return None


def say(talk: Dialogue, text: str) -> None:
    try:
        talk.say(text)
    except Failed as error:
        talk.screen.line(f"! {error}")
    except KeyboardInterrupt:
        talk.screen.note("(stopped)")


def _other(endpoint: GatewayAddress, talk: Dialogue, model: str) -> Dialogue:
    try:
        require(endpoint, model, models(endpoint))
    except Failed as error:
        talk.screen.line(f"! {error}")
        return talk
    talk.screen.note(f"{model} from here on")
    return replace(talk, model=model)


def _command(
    endpoint: GatewayAddress, talk: Dialogue, line: str, tools: tuple[ChatTool, ...]
) -> Dialogue:
    command, _, word = line.partition(" ")
    match command:
        case "/model" if word.strip():
            talk = _other(endpoint, talk, word.strip())
        case "/new":
            talk = replace(talk, messages=[])
            talk.screen.note("forgotten")
        case "/tools":
            talk = replace(talk, tools=() if talk.tools else tools)
            talk.screen.note("tools on" if talk.tools else "tools off")
        case _:
            talk.screen.note(_HELP)
    return talk
