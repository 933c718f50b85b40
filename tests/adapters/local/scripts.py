"""The scripts and the model that the tests of the embedded model share."""

from __future__ import annotations

from adapters.protocol import ChatRequest
from adapters.wire.http import Link, Transport
from tests.support.dialogue import user

LINK = Link("local", "", Transport())
HELLO = ChatRequest("local", (user("hello"),))
