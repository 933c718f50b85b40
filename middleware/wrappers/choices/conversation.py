"""Which conversation a request belongs to, and at which place it was last."""

from __future__ import annotations

import time
from dataclasses import dataclass

from adapters.protocol import ChatRequest
from middleware.state.store import Mark, State
from middleware.wrappers.choices.needs import beginning
from middleware.wrappers.recall.fingerprint import digest

_REMEMBERED = 3600.0


def conversation_of(request: ChatRequest) -> str:
    """The client's own name for it, or all that stays the same in each of its turns."""
    named = request.params.get("prompt_cache_key")
    said = [named] if named else beginning(request.messages)
    return digest(request.call.owner, request.model, said).hex()


@dataclass(slots=True)
class LastPlace:
    """The place of one conversation, where that is not what the pick says by itself."""

    state: State
    request: ChatRequest
    conversation: str = ""
    """Found out when somebody has to know."""
    mark: Mark | None = None

    @property
    def place(self) -> str:
        return self.mark.text if self.mark else ""

    async def look(self) -> None:
        self.mark = (await self.state.read([self._name()]))[0]

    async def remember(self, place: str) -> None:
        """Not written again before half of the time is over."""
        mark = self.mark
        if mark is None or mark.text != place or mark.until - time.time() < _REMEMBERED / 2:
            await self.state.mark(self._name(), place, _REMEMBERED)

    def _name(self) -> str:
        self.conversation = self.conversation or conversation_of(self.request)
        return f"conversation:{self.conversation}"
