"""How far it is: a bar on a terminal, else a line where something happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

_EVERY, _WIDTH = 0.2, 24


@dataclass(slots=True)
class Bar:
    out: TextIO
    now: Callable[[], float] = time.monotonic
    _size: int | None = None
    _have: int = 0
    _since: float = 0.0
    _from: int = 0
    _drawn: float = 0.0
    _open: bool = False
    """The cursor stands behind a bar."""

    def begin(self, name: str, size: int | None, have: int) -> None:
        of = f" ({size / 1e9:.2f} GB)" if size else ""
        self.note(f"{'going on with' if have else 'fetching'} {name}{of}")
        self._size, self._have, self._from, self._since = size, have, have, self.now()

    def more(self, count: int) -> None:
        self._have += count
        if self.out.isatty() and self.now() - self._drawn >= _EVERY:
            self._draw()

    def note(self, words: str) -> None:
        self.end()
        self.out.write(f"{words}\n")
        self.out.flush()

    def end(self) -> None:
        if self._open:
            self._draw()
            self.out.write("\n")
            self._open = False

    def _draw(self) -> None:
        self._drawn, self._open = self.now(), True
        speed = (self._have - self._from) / max(self._drawn - self._since, 1e-3)
        said = f"{self._have / 1e9:.2f} GB  {speed / 1e6:.1f} MB/s"
        if self._size:
            share = min(self._have / self._size, 1)
            done = "█" * int(share * _WIDTH)
            left = round((self._size - self._have) / max(speed, 1))
            said = f"{done:░<{_WIDTH}} {share:4.0%}  {said}  {left // 60}:{left % 60:02} left"
        self.out.write(f"\r{said}\x1b[K")
        self.out.flush()
