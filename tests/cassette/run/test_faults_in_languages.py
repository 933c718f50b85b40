"""What each language's reader makes of a fault: an error of the upstream, never an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from middleware.cassettes.cassette import RecordedExchange
from middleware.cassettes.replay.faults import applied, read_faults
from tests.support.recordings import Stream, streams

STREAMS = [stream for stream in streams() if stream.case == "text"]
PLAIN = [replace(stream, streamed=False) for stream in STREAMS]
FAULTS = [
    *[(stream, {"cut": {"after_event": 1}}, "upstream_truncated") for stream in STREAMS],
    *[(stream, {"empty": True}, "upstream_truncated") for stream in STREAMS],
    *[(stream, {"garbage": True}, "upstream_not_json") for stream in (*STREAMS, *PLAIN)],
]


@pytest.mark.parametrize(("stream", "value", "code"), FAULTS)
def test_a_fault_is_an_error_of_the_upstream(
    stream: Stream, value: dict[str, Any], code: str
) -> None:
    (rule,) = read_faults(value, "the header")
    found = applied(rule, (RecordedExchange("up", "/", b"{}", body=stream.body),))
    assert found is not None
    (answer,) = stream.read([[found.exchanges[0].body]])
    assert answer.error is not None
    assert (answer.error.code, answer.reason) == (code, "")
