"""How a chat looks: text as it comes, thoughts dim, calls and results on lines of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from middleware.server.terminal import visible

_DIM, _BOLD, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"
_SHOWN = 500


@dataclass(slots=True)
class Screen:
    out: Callable[[str], object]
    """Writes text as it is, at once."""
    colours: bool = False
    _at_start: bool = True
    _thinking: bool = False

    def text(self, piece: str) -> None:
        if self._thinking:
            self.end()
        self._write(visible(piece))

    def thought(self, piece: str) -> None:
        if not self._thinking:
            self.end()
            self._thinking = True
            self._write("" if self.colours else "(thinks) ")
        self._write(self._styled(_DIM, visible(piece)))

    def call(self, name: str, arguments: str) -> None:
        self._line(f"→ {self._styled(_BOLD, visible(name))} {_cut(arguments)}")

    def result(self, result: str) -> None:
        self._line(f"← {_cut(result)}")

    def note(self, text: str) -> None:
        self._line(self._styled(_DIM, visible(text)))

    def line(self, text: str) -> None:
        self._line(visible(text))

    def _line(self, text: str) -> None:
        self.end()
        self._write(f"{text}\n")

    def end(self) -> None:
        """Whatever comes next begins a line."""
        self._thinking = False
        if not self._at_start:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            self.out(text)
            self._at_start = text.removesuffix(_PLAIN).endswith("\n")

    def _styled(self, style: str, text: str) -> str:
        return f"{style}{text}{_PLAIN}" if self.colours else text


def _cut(text: str) -> str:
    text = visible(" ".join(text.split()))
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
