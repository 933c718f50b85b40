"""How long a client's answers from a model are, as a guess at the next one."""

from __future__ import annotations

_UNKNOWN = 256
_WEIGHT = 0.3
"""Of the last answer."""
_MOST = 4096


class AnswerLengths:
    """In tokens, by client and model; those that were asked for long ago go first."""

    def __init__(self) -> None:
        self._lengths: dict[tuple[str, str], float] = {}

    def of(self, client: str, model: str) -> int:
        return round(self._lengths.get((client, model), _UNKNOWN))

    def learn(self, client: str, model: str, tokens: int) -> None:
        key = client, model
        before = self._lengths.pop(key, float(tokens))
        self._lengths[key] = before + _WEIGHT * (tokens - before)
        if len(self._lengths) > _MOST:
            del self._lengths[next(iter(self._lengths))]
