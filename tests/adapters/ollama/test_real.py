"""What an Ollama with a real model said: its own words, its grammar, and a call it did not see."""

from __future__ import annotations

from dataclasses import asdict

import orjson
import pytest

from adapters.protocol import Adapter
from adapters.wire.http import Link
from middleware.wrappers.emulation.rescue import LeakRescue
from tests.support.cuts import each_byte, halves
from tests.support.recordings import REAL, REAL_CASES, Stream, Upstream, play_once


class Rescued(Upstream):
    def connect(self, link: Link) -> Adapter:
        return LeakRescue(super().connect(link))


RESCUED = Rescued(**asdict(REAL))


@pytest.mark.parametrize("case", REAL_CASES)
def test_what_is_sent_is_what_was_recorded_and_the_stream_says_the_same(case: str) -> None:
    played = play_once(REAL, case, REAL.path(case))
    assert played.plain.error is None
    assert (played.plain.text, played.plain.reason) == (played.streamed.text, "stop")
    assert played.plain.usage == played.streamed.usage


def test_its_grammar_keeps_to_the_schema() -> None:
    played = play_once(REAL, "structured_output", REAL.path("structured_output"))
    assert orjson.loads(played.plain.text) == {"city": "沈阳", "degrees": -12}


def test_a_call_that_the_server_took_for_text_is_found() -> None:
    stream = Stream(RESCUED, "parallel_calls")
    assert "<tool_call>" in play_once(REAL, stream.case, REAL.path(stream.case)).plain.text
    deliveries = [each_byte(stream.body), *halves(stream.body)]
    for answer in stream.read(deliveries):
        assert (answer.text, answer.reason) == ("", "tool_calls")
        ((_, name, _, arguments),) = answer.calls
        assert (name, arguments) == ("get_weather", '{"city":"Olsen"}')
