"""The stream of Claude's that the tests of its answers share."""

from __future__ import annotations

from adapters.protocol import Json
from tests.support.upstreams.claude_wire import (
    begin,
    call,
    end,
    sse,
    text,
    thought,
)

PING: Json = {"type": "ping"}
SHENYANG, DALIAN = '{"city":"沈阳"}', '{"city": "大连", "days": 1.0}'
PARALLEL = sse(
    begin(cache_read_input_tokens=90, cache_creation_input_tokens=5),
    *thought(0, "Two ", "cities: 沈阳", signature="EqQB"),
    PING,
    *text(1, "Looking ", "", "up 🌦"),
    *call(2, "toolu_1", "get_weather", "", '{"city":', '"沈阳"}'),
    *call(3, "toolu_2", "get_weather", *DALIAN),
    *end("tool_use", output_tokens=61, output_tokens_details={"thinking_tokens": 20}),
)
