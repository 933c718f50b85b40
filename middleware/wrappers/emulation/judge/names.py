"""Which declared tool a model means by the name it wrote: the same word, or no tool at all.

A name is the same where case, width or separators differ, two neighbouring letters changed places,
or one was written twice. Whatever lacks a letter or has a word, a prefix or a number more or other
(`unlock_door` for `lock_door`) is another tool, which the model is asked about and never given.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache

_DRESS = " \t\r\n\"'`*[]<>“”‘’「」#.,;:，；："
_UNDERLINED = _DRESS + "_"
_BEHIND = "!?。"
# What models put behind a name: its arguments once more, or a word about it.
_NOTE = re.compile(r"\(|\s#|\s//")
# Formats put these before every name: Kimi and Harmony, Llama, Gemini.
_NAMESPACE = re.compile(r"(?:functions|tools?|default_api)[.:](?=.)", re.IGNORECASE)
_SEPARATORS = re.compile(r"([^\W_])[\s_.:/\-]+(?=([^\W_]))")
_LONGEST = 200
_SHORTEST_SLIP = 6


@lru_cache(maxsize=1024)  # the same tools come with every turn
def plain(name: str) -> str:
    """A name in one width and case, without separators; between digits they tell numbers apart."""
    folded = unicodedata.normalize("NFKC", name).lower()
    return _SEPARATORS.sub(_joined, folded)


def _joined(letters: re.Match[str]) -> str:
    return letters[1] + ("_" if letters[1].isdigit() and letters[2].isdigit() else "")


def same(written: str, names: Iterable[str]) -> str | None:
    """The one name that is plainly this word; None where none is, or several are."""
    fitting = [name for name in names if plain(name) == plain(written)]
    return fitting[0] if len(fitting) == 1 else None


class Names:
    """The names that may come out; `known` are the withdrawn ones the conversation has seen."""

    def __init__(self, declared: Iterable[str], known: Iterable[str] = ()) -> None:
        self.declared = tuple(dict.fromkeys(declared))
        self._exact = frozenset(self.declared)
        self._known = known

    # Most answers name no tool, or name it as it was declared.
    @cached_property
    def _plain(self) -> Mapping[str, list[str]]:
        named: dict[str, list[str]] = {}
        for name in self.declared:
            named.setdefault(plain(name), []).append(name)
        for word in set(map(plain, frozenset(self._known) - self._exact)):
            named.setdefault(word, []).append("")  # a withdrawn tool is none
        return named

    @cached_property
    def initials(self) -> frozenset[str]:
        return frozenset(name[:1] for name in self.declared)

    def exact(self, written: str) -> bool:
        return written in self._exact

    def find(self, written: str) -> str | None:
        """The declared name that is meant; None: another tool, or more than one fits."""
        if written in self._exact:
            return written
        for form in _forms(written):
            if form in self._exact:
                return form
            word = plain(form)
            if fitting := self._plain.get(word) or self._slips(word):
                return fitting[0] or None if len(fitting) == 1 else None
        return None

    def _slips(self, word: str) -> list[str]:
        """The tools from whose names the word differs by a slip of the pen."""
        if len(word) < _SHORTEST_SLIP:
            return []
        meant = sorted({form for form in _unslipped(word) if form in self._plain})
        return [name for form in meant for name in self._plain[form]]


def _forms(written: str) -> Iterable[str]:
    """A name without what stands around it."""
    head = _NOTE.split(written[: _LONGEST + 1], maxsplit=1)[0]
    if len(head) > _LONGEST:
        return ()
    bare = head.strip(_DRESS).rstrip(_BEHIND).strip(_DRESS)
    forms = (bare, head.strip(_UNDERLINED), _NAMESPACE.sub("", bare, count=1))
    return dict.fromkeys(forms)


def _unslipped(word: str) -> Iterator[str]:
    """The words it may have been: two neighbouring letters swapped, or one of a pair gone."""
    for at in range(1, len(word)):
        first, second = word[at - 1], word[at]
        if _is_letter(first) and _is_letter(second):
            rest = word[at + 1 :]
            yield word[:at] + rest if first == second else word[: at - 1] + second + first + rest


def _is_letter(character: str) -> bool:
    """Of an alphabet: a digit, or a word that is one sign, is never a slip."""
    return character.lower() != character.upper()
