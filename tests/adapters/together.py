"""What is heard of an answer whose frames come together, or one by one."""

from __future__ import annotations

from typing import Any

from adapters.protocol import Event, Noted, Opened
from adapters.receipts import Receipt
from adapters.wire.exchange import Exchange, Listener
from adapters.wire.http import Link, Transport

Heard = tuple[list[Event], Receipt, str, str]
"""What is said, what is noted (with the opening where that comes later), what broke it, and whether
asking again may help.
"""


def listener_of(exchange: Exchange[Any]) -> Listener[Any]:
    return Listener(Link("up", "", Transport()), exchange, {})


def heard_of(exchange: Exchange[Any], *pieces: bytes) -> Heard:
    listener = listener_of(exchange)
    events: list[Event] = []
    for piece in (*pieces, b""):
        if not listener.over:
            events += listener.feed(piece)
    told = [event for event in events if isinstance(event, Opened | Noted)]
    notes = tuple(note for event in told for note in event.receipt)
    said: list[Event] = [event for event in events if not isinstance(event, Opened | Noted)]
    failure = listener.failure
    return said, notes, str(failure), "" if failure is None else failure.again
