"""The environment of a command that is recorded or replayed: every client in it asks the gateway.

It is no sandbox: a program that brings its own address or key goes where it wants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from adapters.kind import all_kinds
from middleware.cassettes.cassette import Mode
from middleware.cli.launch.clients import ADDRESSES, OTHER_ADDRESSES, without_proxy

_OTHER_KEYS = (
    *("ANTHROPIC_AUTH_TOKEN", "AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
    *("COHERE_API_KEY", "GOOGLE_API_KEY", "PERPLEXITY_API_KEY"),
)
"""Keys of models under names that no kind of ours has."""


@dataclass(frozen=True, slots=True)
class ChildRun:
    """What a command is started for."""

    gateway: str
    """http://127.0.0.1:PORT"""
    cassette: str
    mode: Mode
    recorded: str = ""
    """When the cassette was; empty: it says no day."""


def child_environment(
    outer: Mapping[str, str], run: ChildRun, variables: Iterable[str] = ()
) -> dict[str, str]:
    """The outer one with our addresses; in replay without the keys of models.

    `variables` are those in which the config looks for keys, beside the well-known ones.
    """
    inner = {**outer, "USETOOL_CASSETTE": run.cassette, "USETOOL_RECORDED_AT": run.recorded}
    if not run.recorded:
        del inner["USETOOL_RECORDED_AT"]
    addresses = ADDRESSES
    if run.mode == "replay":
        # Only those that are there: some programs ask whatever service they find a key of. But
        # clients that are led here may not start without one.
        keys = {*_key_variables(), *_OTHER_KEYS, *variables} & outer.keys()
        inner |= dict.fromkeys(keys | {"ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY"}, "replayed")
        addresses = {**ADDRESSES, **OTHER_ADDRESSES}
    inner |= {name: address.format(run.gateway) for name, address in addresses.items()}
    inner["OPENAI_API_KEY"] = f"usetool~{quote(run.cassette, safe='/@')}"
    return without_proxy(inner, outer)


def _key_variables() -> set[str]:
    """Of services that answer chats: an app's own search runs for real, with its key."""
    chats = [kind for kind in all_kinds() if kind.connect is not None]
    return {one.variable for kind in chats for one in kind.services.values()}
