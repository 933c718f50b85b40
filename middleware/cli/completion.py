"""`usetool completion`: what makes a shell complete commands, written from the parser."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from middleware.cli import command
from middleware.cli.command import FINE

_ABOUT = """\
Prints the completion of commands, options and file names for a shell. Once for this shell, or in
the file it starts with:

  bash  eval "$(usetool completion bash)"        in ~/.bashrc
  zsh   eval "$(usetool completion zsh)"         in ~/.zshrc, behind compinit
  fish  usetool completion fish | source         in ~/.config/fish/config.fish
"""
Words = Mapping[str, tuple[str, ...]]
"""A command → what may follow it, beside files."""


def add(commands: Any, parser: argparse.ArgumentParser) -> None:
    summary = "print the completion for a shell"
    run = partial(_run, parser)
    completion = command.add(commands, "completion", summary, _ABOUT, run)
    completion.add_argument("shell", choices=sorted(_WRITERS), help="whose completion it is")


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    print(_WRITERS[options.shell](words(parser)), end="")
    return FINE


def words(parser: argparse.ArgumentParser) -> Words:
    (commands,) = [
        action.choices
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    return {name: _options(command) for name, command in commands.items()}


def _options(command: argparse.ArgumentParser) -> tuple[str, ...]:
    options: list[str] = []
    for action in command._actions:
        options += action.option_strings or map(str, action.choices or ())
    return tuple(options)


def _bash(words: Words) -> str:
    cases = "\n".join([f'    {name}) offered="{" ".join(of)}" ;;' for name, of in words.items()])
    return f"""\
_usetool() {{
  local offered word=${{COMP_WORDS[COMP_CWORD]}}
  case ${{COMP_WORDS[1]}} in
{cases}
    *) offered="" ;;
  esac
  [ "$COMP_CWORD" = 1 ] && offered="{" ".join(words)} --help --version"
  COMPREPLY=($(compgen -W "$offered" -- "$word"))
  [ "$COMP_CWORD" = 1 ] || COMPREPLY+=($(compgen -f -- "$word"))
}}
complete -o filenames -F _usetool usetool
"""


def _zsh(words: Words) -> str:
    cases = "\n".join([f"    {name}) offered=({' '.join(of)}) ;;" for name, of in words.items()])
    return f"""\
_usetool() {{
  local -a offered
  case $words[2] in
{cases}
  esac
  if (( CURRENT == 2 )); then
    offered=({" ".join(words)} --help --version)
    compadd -- $offered
  else
    compadd -- $offered
    _files
  fi
}}
compdef _usetool usetool
"""


def _fish(words: Words) -> str:
    lines = [
        f"complete -c usetool -n __fish_use_subcommand -f -a '{' '.join(words)} --help --version'"
    ]
    for name, of in words.items():
        known = f"complete -c usetool -n '__fish_seen_subcommand_from {name}' -a '{' '.join(of)}'"
        lines.append(known)
    return "\n".join(lines) + "\n"


_WRITERS: Mapping[str, Callable[[Words], str]] = {"bash": _bash, "fish": _fish, "zsh": _zsh}
