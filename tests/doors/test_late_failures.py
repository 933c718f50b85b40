"""A failure that comes too late for a status, behind a heartbeat: told in each door's own words."""

from __future__ import annotations

import orjson
import pytest

from adapters.errors import RateLimited
from adapters.protocol import Json
from tests.server.app.playing import TINY, play
from tests.support.adapters import repeating
from tests.support.door import Heard, door

SAID = [{"role": "user", "content": "hi"}]
SLOW = "Send less."
BODIES: dict[str, Json] = {
    "/v1/chat/completions": {"messages": SAID, "stream": True},
    "/v1/responses": {"input": "hi", "stream": True},
    "/v1/messages": {"messages": SAID, "max_tokens": 9, "stream": True},
    "/api/chat": {"messages": SAID},
    "/api/generate": {"prompt": "hi"},
}
CODES = {
    "/v1/chat/completions": ("error", "code", "rate_limit_exceeded"),
    "/v1/responses": ("response", "error", "code", "rate_limit_exceeded"),
    "/v1/messages": ("error", "type", "rate_limit_error"),
}


def failed(path: str) -> Heard:
    async def script() -> Heard:
        model = repeating(0.1, RateLimited(SLOW, retry_after="7"))
        return await door(model, TINY).ask({"model": "m", **BODIES[path]}, path=path)

    heard: Heard = play(script)
    return heard


@pytest.mark.parametrize("path", BODIES)
def test_the_last_frame_says_which_it_is(path: str) -> None:
    heard = failed(path)
    assert heard.status == 200
    last = heard.body.strip().splitlines()[-1].removeprefix(b"data: ")
    said = orjson.loads(last)
    assert SLOW in last.decode()
    if path.startswith("/api"):
        assert (type(said["error"]), "done" in said) == (str, False)
        return
    *where, code = CODES[path]
    for name in where:
        said = said[name]
    assert said == code


def test_codex_is_told_how_long_to_wait() -> None:
    """It reads that in the words."""
    assert b"Please try again in 7s." in failed("/v1/responses").body
