"""What a reader found in the text: what may be a call, one that is good, one that is not."""

from __future__ import annotations

from typing import Literal, NamedTuple

from adapters.protocol import Json
from middleware.wrappers.emulation.judge.arguments import Pairs

FaultKind = Literal["unknown_tool", "unreadable_arguments", "schema"]


class RawCall(NamedTuple):
    """Something written as a call."""

    name: str
    arguments: str | Pairs | Json | None
    whole: bool = True
    """False: the text ended inside it."""
    bare: bool = False
    """An object that names a tool and gives no arguments at all."""
    unfinished: bool = False
    """Its closer never came, and parameters may be missing."""


class Ready(NamedTuple):
    """A good call that waits behind one that is not."""

    name: str
    arguments: str


class Fault(NamedTuple):
    """A call that cannot be passed on as it is."""

    kind: FaultKind
    name: str
    detail: str
    """One line for the model: what was wrong."""
    best: Ready | None = None
    """The call as far as it could be read."""
    text: str = ""
    """What the model wrote, without the words of the protocol."""
