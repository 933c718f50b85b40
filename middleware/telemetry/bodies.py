"""Requests and answers in the log, where [telemetry] log_bodies wants them."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.types import Message, Receive, Send

from adapters.protocol import Json
from middleware.server.last import Scrubber

_MOST = 64 << 10
"""Bytes of each that are kept."""


@dataclass(slots=True)
class Bodies:
    """What a client said, and was answered."""

    _asked: bytearray = field(default_factory=bytearray)
    _answered: bytearray = field(default_factory=bytearray)

    def heard(self, receive: Receive) -> Receive:
        async def hear() -> Message:
            message = await receive()
            _keep(self._asked, message)
            return message

        return hear

    def told(self, send: Send) -> Send:
        async def tell(message: Message) -> None:
            _keep(self._answered, message)
            await send(message)

        return tell

    def line(self, scrubber: Scrubber) -> Json:
        """What the log says of them; without secrets, as far as they can be known."""
        return {
            "request": scrubber.text(self._asked.decode("utf-8", "replace")),
            "answer": scrubber.text(self._answered.decode("utf-8", "replace")),
        }


def _keep(kept: bytearray, message: Message) -> None:
    for piece in message.get("pieces") or (message.get("body", b""),):
        kept += piece[: _MOST - len(kept)]
