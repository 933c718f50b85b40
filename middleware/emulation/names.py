"""Which declared tool a model means by the name it wrote."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

_DRESS = " \t\r\n\"'`*_[]<>“”‘’「」#.,;:!?。，；："
_NOTHING_UNDERLINED = _DRESS.replace("_", "")
_CALL = re.compile(r"([^\s(]+)\s*\(.*\)", re.DOTALL)
_PREFIX = re.compile(r"(?:functions|tools?)[.:](?=.)", re.IGNORECASE)
_LONGEST = 200
_NEAR, _MARGIN, _NEAR_LENGTH = 0.85, 0.1, 6


def plain(name: str) -> str:
    """The letters and digits of a name, in one width and case."""
    folded = unicodedata.normalize("NFKC", name).lower()
    return "".join(letter for letter in folded if letter.isalnum())


class Names:
    """The names that may come out; `known` are the withdrawn ones the conversation has seen."""

    def __init__(self, declared: Iterable[str], known: Iterable[str] = ()) -> None:
        self.declared = tuple(dict.fromkeys(declared))
        self._exact = frozenset(self.declared)
        self._withdrawn = frozenset(known) - self._exact
        self._plain: dict[str, str | None] = {}
        for name in self.declared:
            self._plain[plain(name)] = None if plain(name) in self._plain else name

    def exact(self, said: str) -> bool:
        return said in self._exact

    def find(self, said: str) -> str | None:
        """The declared name that is meant; None: unknown."""
        if said in self._exact:
            return said
        said = said[:_LONGEST]
        for bare in (said.strip(_NOTHING_UNDERLINED), said.strip(_DRESS)):
            if name := self._undressed(bare):
                return name
        return self._as_word(said) or self._near(plain(said))

    def _undressed(self, bare: str) -> str | None:
        for form in (bare, _PREFIX.sub("", bare, count=1)):
            if form in self._exact:
                return form
            call = _CALL.fullmatch(form)
            if call and call[1] in self._exact:
                return call[1]
            if form not in self._withdrawn and (name := self._plain.get(plain(form))):
                return name
        return None

    def _as_word(self, said: str) -> str | None:
        """The one tool whose name occurs as a word."""
        found = [
            name
            for name in self.declared
            if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", said, re.IGNORECASE)
        ]
        return found[0] if len(found) == 1 else None

    def _near(self, said: str) -> str | None:
        """The one tool that differs by a slip of the pen."""
        if len(said) < _NEAR_LENGTH or said in {plain(name) for name in self._withdrawn}:
            return None
        ranked = sorted(
            ((SequenceMatcher(None, said, plain(name)).ratio(), name) for name in self.declared),
            reverse=True,
        )
        second = ranked[1][0] if len(ranked) > 1 else 0.0
        best, name = ranked[0] if ranked else (0.0, "")
        clear = best >= _NEAR and best - second >= _MARGIN and len(plain(name)) >= _NEAR_LENGTH
        return name if clear else None
