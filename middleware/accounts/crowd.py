"""`Crowd`: who has how many requests open. One client alone cannot keep the others out."""

from __future__ import annotations

from dataclasses import dataclass, field

from adapters.errors import Busy

_MOST = 2
"""However many clients come, so many times the limit is the end."""


@dataclass(slots=True)
class Crowd:
    _owners: dict[str, str] = field(default_factory=dict)
    """Request → who asked."""
    _open: dict[str, int] = field(default_factory=dict)

    def enter(self, request: str, owner: str, most: int) -> None:
        """Let a request in; once the gateway is full, a client may have its share open."""
        mine, all_open = self._open.get(owner, 0), len(self._owners)
        if all_open >= most:
            share = max(1, most // (len(self._open) + (mine == 0)))
            if mine >= share or all_open >= _MOST * most:
                raise Busy("The gateway is at its limit of open requests.", retry_after="1")
        self._owners[request] = owner
        self._open[owner] = mine + 1

    def leave(self, request: str) -> None:
        owner = self._owners.pop(request, None)
        if owner is None:
            return
        left = self._open[owner] - 1
        if left:
            self._open[owner] = left
        else:
            del self._open[owner]
