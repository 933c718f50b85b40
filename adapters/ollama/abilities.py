"""What a model on an Ollama server can do: `/api/show` says it, the config outranks it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from adapters.errors import GatewayError
from adapters.options import FLAG, TEXT, THINKS, option, overridden, whole
from adapters.wire.http import Link

_PATIENCE = 8.0
"""Seconds for a small question: longer than a connection may take, as it loads nothing."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """One model's abilities; None is not known, and then the request decides."""

    tools: bool | None = option("It calls tools", FLAG)
    thinking: bool | None = option("Whether it thinks", THINKS)
    vision: bool | None = option("It reads images", FLAG)
    audio: bool | None = option("It hears", FLAG)
    family: str = option("Its family, as the server calls it", TEXT, "")
    context_length: int | None = option("Its longest context window", whole(1))
    # No server says so, only the config.
    inline_think: bool = option(
        "It writes `<think>…</think>` at the start of its text", FLAG, False
    )


def read_abilities(answer: Any, overrides: Mapping[str, Any]) -> Abilities:
    """Read the answer of `/api/show`; an empty one says what is known without asking."""
    answer = answer if isinstance(answer, dict) else {}
    listed = answer.get("capabilities")
    details = answer.get("details")
    found = Abilities(
        family=str(details.get("family", "")) if isinstance(details, dict) else "",
        context_length=_context_length(answer.get("model_info")),
    )
    # Servers before 0.6.4 list no capabilities, which says nothing of their models.
    if isinstance(listed, list):
        found = replace(
            found,
            tools="tools" in listed,
            thinking="thinking" in listed,
            vision="vision" in listed,
            audio="audio" in listed,
        )
    return _overridden(found, overrides)


def _context_length(info: Any) -> int | None:
    if not isinstance(info, dict):
        return None
    length = info.get(f"{info.get('general.architecture')}.context_length")
    return length if type(length) is int and length > 0 else None


def _overridden(found: Abilities, overrides: Mapping[str, Any]) -> Abilities:
    if "thinking" in overrides:
        overrides = {**overrides, "thinking": overrides["thinking"] not in (False, "off")}
    return overridden(found, overrides)


@dataclass(slots=True)
class AbilityCache:
    """What one leaf was told of its models: an answer serves all requests for a while."""

    link: Link
    overrides: Mapping[str, Any]
    fresh: float = 300.0
    """Seconds an answer serves."""
    # Only models the server knows get in, so the names of clients cannot fill it.
    _known: dict[str, tuple[float, Abilities]] = field(default_factory=dict)
    _asking: dict[str, asyncio.Task[Abilities]] = field(default_factory=dict)

    def known(self, model: str) -> Abilities:
        """Say what is known so far, asking nobody."""
        found = self._known.get(model)
        return found[1] if found else read_abilities({}, self.overrides)

    async def of(self, model: str) -> Abilities:
        """Ask, unless a fresh answer is here; who comes meanwhile waits for the same answer."""
        found = self._known.get(model)
        if found and found[0] > asyncio.get_running_loop().time():
            return found[1]
        asking = self._asking.get(model)
        if asking is None:
            asking = asyncio.create_task(self._ask(model))
            self._asking[model] = asking
            asking.add_done_callback(lambda _: self._asking.pop(model, None))
        # Shielded: a client that leaves does not take the answer from the others.
        return await asyncio.shield(asking)

    def forget(self, model: str) -> None:
        self._known.pop(model, None)

    async def _ask(self, model: str) -> Abilities:
        body = orjson.dumps({"model": model})
        try:
            answer = await self.link.fetch("POST", "/api/show", body, _PATIENCE)
        except GatewayError as error:
            if error.code == "upstream_unreachable":
                raise  # the chat could not reach it either, and would wait as long again
            # The chat that follows says what is wrong, in its own words.
            return self.known(model)
        found = read_abilities(answer, self.overrides)
        self._known[model] = (asyncio.get_running_loop().time() + self.fresh, found)
        return found
