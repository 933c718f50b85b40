"""What the tests of Claude's requests share: tools, models and what goes up for them."""

from __future__ import annotations

from adapters.protocol import Json
from tests.support.dialogue import assistant, result, user

KIMI = "kimi-k2"


def named(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


ROUND = (user("x"), assistant(None, ("a", "get_weather", "{}")), result("a", "5"))
