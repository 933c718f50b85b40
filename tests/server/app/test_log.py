"""What the app writes down of a request, and what it never does."""

from __future__ import annotations

import pytest

from adapters.errors import (
    GatewayError,
    Truncated,
)
from adapters.protocol import (
    Event,
    Json,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from tests.server.app.playing import FULL, SECRET, play
from tests.support.adapters import repeating
from tests.support.door import ANSWER, END, OPENED, TEXT, chat, door


@pytest.mark.parametrize("stream", [False, True])
def test_the_log_tells_of_an_answer(stream: bool) -> None:
    async def script() -> None:
        there = door(repeating((FULL, TEXT, END)))
        await there.chat(stream=stream)
        (line,) = there.lines()
        told = {name: line[name] for name in ("model", "status", "stream", "finish", "usage")}
        assert told == {
            "model": "m",
            "status": 200,
            "stream": stream,
            "finish": "stop",
            "usage": [1, 2],
        }
        assert (line["upstream"], line["upstream_model"]) == ("up", "claude-x")
        assert line["warnings"] == ["temperature_dropped: temperature: the model has none"]

    play(script)


WORDS = "my medical history"
TELLING: tuple[tuple[tuple[Event, ...] | GatewayError, Json], ...] = (
    ((OPENED, TextDelta(f"about {WORDS}"), END), {}),
    ((OPENED, ToolCallStart(0, "a", "f"), ToolCallDelta(0, f'{{"a":"{WORDS}"}}'), END), {}),
    (Truncated("cut"), {}),
    (ANSWER, {"temperature": WORDS}),
    (ANSWER, {"messages": WORDS}),
    (ANSWER, {"messages": [{"role": "user", "content": {"text": WORDS}}]}),
)


@pytest.mark.parametrize(("step", "fields"), TELLING, ids=range(len(TELLING)))
@pytest.mark.parametrize("stream", [False, True])
def test_the_log_has_a_line_for_every_request_without_prompt_answer_or_key(
    step: tuple[Event, ...] | GatewayError, fields: Json, stream: bool
) -> None:
    async def script() -> None:
        there = door(repeating(step), f'keys = ["{SECRET}"]')
        said = {"messages": [{"role": "user", "content": WORDS}], "stream": stream, **fields}
        await there.ask(chat(**said), headers=[("authorization", f"Bearer {SECRET}")])
        text = there.log.getvalue()
        (line,) = there.lines()
        assert line["id"].startswith("req_")
        text = there.log.getvalue()
        assert WORDS not in text
        assert SECRET not in text

    play(script)
