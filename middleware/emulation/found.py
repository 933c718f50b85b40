"""What a reader found in the text, before it is known to be a call."""

from __future__ import annotations

from typing import NamedTuple

from adapters.protocol import Json
from middleware.emulation.arguments import Pairs


class Found(NamedTuple):
    """Something written as a call."""

    name: str
    arguments: str | Pairs | Json | None
    whole: bool = True
    """False: the text ended inside it."""
    bare: bool = False
    """An object that names a tool and gives no arguments at all."""
    unfinished: bool = False
    """Its closer never came, and parameters may be missing."""
