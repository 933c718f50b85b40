"""Spans of requests, as a collector gets them; and a collector that is stuck, or away."""

from __future__ import annotations

import threading
import time

import pytest

from middleware.server.visits import Visit
from middleware.telemetry.spans import SpanSender
from middleware.telemetry.traces import Tracer
from tests.linear.measuring import without_collector
from tests.telemetry.collector import CLIENT, ERROR, SERVER, Collector, collecting
from tests.telemetry.visits import NOW, call, visit, vocabulary

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def tracer(collector: Collector, said: list[str]) -> Tracer:
    sender = SpanSender(collector.url, "here", vocabulary(), seconds=1.0)
    return Tracer(sender, said.append)


def told(*visits: Visit) -> Collector:
    with collecting() as collector:
        tracing = tracer(collector, [])
        for one in visits:
            tracing.ended(one, NOW)
        tracing.stop(10)
    return collector


def test_a_request_is_a_span_and_so_is_each_call_of_it() -> None:
    collector = told(visit((call("opus", "claude", "overloaded"), call()), traceparent=PARENT))
    assert collector.paths == {"/v1/traces"}
    (server,), (failed, answered) = collector.kinds(SERVER), collector.kinds(CLIENT)
    assert (server.name, server.trace, server.parent) == ("chat m", PARENT[3:35], PARENT[36:52])
    assert server.attributes["http.response.status_code"] == 200
    assert server.attributes["usetool.route"] == ["opus=overloaded", "m=ok"]
    assert server.attributes["usetool.client"] == "alpha"
    assert {one.service for one in collector.spans} == {"here"}
    assert {one.trace for one in collector.spans} == {server.trace}
    assert failed.parent == answered.parent == server.id
    assert server.ended == pytest.approx(time.time(), abs=30)
    assert server.ended - server.began == pytest.approx(2.0, abs=0.001)
    assert (failed.status, failed.attributes["error.type"]) == (ERROR, "overloaded")
    assert failed.attributes["gen_ai.provider.name"] == "anthropic"
    assert answered.name == "chat demo-1"
    assert answered.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "demo-1",
        "gen_ai.response.model": "demo-1-0613",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 50,
        "server.address": "up.test",
        "server.port": 8123,
        "usetool.upstream": "up",
        "usetool.model": "m",
    }


@pytest.mark.parametrize("header", ["", "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
def test_without_a_parent_it_is_the_first(header: str) -> None:
    (server,) = told(visit(traceparent=header)).spans
    assert server.parent == ""


def test_what_the_client_does_not_trace_is_not_told() -> None:
    assert told(visit((call(),), traceparent=PARENT[:-2] + "00")).spans == []


def test_a_client_that_left_is_no_error() -> None:
    (server,) = told(visit(gone=True, status=200)).spans
    assert (server.status, server.attributes["http.response.status_code"]) == (0, 499)


def test_a_collector_that_is_stuck_delays_nothing_and_the_row_is_bounded() -> None:
    with collecting() as collector:
        collector.free.clear()
        tracing = tracer(collector, [])
        tracing.ended(visit(), NOW)
        assert collector.asked.wait(10)
        begun = time.monotonic()
        with without_collector():
            for _ in range(3000):
                tracing.ended(visit((call(),)), NOW)
        assert time.monotonic() - begun < 1
        assert 800 < tracing.dropped < 1000
        tracing.stop(0.1)
        assert time.monotonic() - begun < 3
    for thread in threading.enumerate():  # what is under way ends with its time limit
        if thread.name == "traces":
            thread.join(5)
            assert not thread.is_alive()


def test_an_absent_collector_is_told_of_once_and_its_return_too() -> None:
    said: list[str] = []
    with collecting() as collector:
        collector.statuses = [400, 400]
        tracing = tracer(collector, said)
        for _ in range(2 * 128 + 1):
            tracing.ended(visit(), NOW)
        tracing.stop(10)
    assert len(collector.spans) == 1
    assert len(said) == 2
    assert "256 requests were not told" in said[1]
