"""A turn is redacted as one: what its client asked, what was sent and heard, what was answered."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware.cassettes.cassette import (
    Cassette,
    CassetteTurn,
    ExchangeFailure,
    RecordedAnswer,
    RecordedExchange,
)
from middleware.cassettes.secrets.blotter import Blotter, Redaction
from middleware.cassettes.secrets.redact import blotted, redacted


def turn(value: str, number: int = 1) -> CassetteTurn:
    """One that says a value wherever it can."""
    deltas = [f'data: {{"d":{json.dumps(part)}}}\n\n' for part in (value[:2], value[2:], " end")]
    body = "".join(deltas).encode()
    return CassetteTurn(
        number,
        {"model": "m", "messages": [{"role": "user", "content": f"I am {value}"}]},
        RecordedAnswer(
            message={"role": "assistant", "content": value},
            error={"message": f"no {value}"},
            body={"data": [value]},
        ),
        headers={"user-agent": value},
        exchanges=(
            RecordedExchange(
                "up",
                f"/v1/chat?who={value}",
                json.dumps({"messages": [value]}).encode(),
                headers={"x-request-id": value},
                body=body,
                pieces=((410, len(body) - 3), (20, 3)),
                failure=ExchangeFailure("c", 500, "same", f"no {value}"),
            ),
        ),
    )


@given(st.text('ab"\\ é中', min_size=4, max_size=8).map(lambda it: f"Q{it}Q"), st.booleans())
def test_nothing_of_a_value_is_left(value: str, by_pattern: bool) -> None:
    pattern = "Q[^Q]*Q"
    redaction = Redaction(patterns=(pattern,)) if by_pattern else Redaction(values=(value,))
    cassette = Cassette((turn(value), turn("nobody", 2)), facts=({"answer": value},))
    new = redacted(cassette, redaction)
    one = new.turns[0]
    assert "Q" not in repr(new).replace("RecordedExchange", "")
    assert (
        b"".join(
            json.loads(it[6:])["d"].encode() for it in one.exchanges[0].body.split(b"\n\n")[:-1]
        )
        == b"[secret:redacted] end"
    )
    assert sum(size for _, size in one.exchanges[0].pieces) == len(one.exchanges[0].body)
    assert [ms for ms, _ in one.exchanges[0].pieces] == [410, 20]
    assert (one.redacted, new.turns[1]) == (True, cassette.turns[1])
    assert one.body["messages"][0]["content"] == "I am [secret:redacted]"
    assert redacted(new, redaction) is new


def test_what_a_path_leads_to_is_taken_out_of_every_turn() -> None:
    cassette = Cassette((turn("Miller"), turn("Miller", 2), turn("Smith", 3)))
    one, two, three = redacted(cassette, Redaction(paths=("messages[0].content",))).turns
    assert [it.body["messages"][0]["content"] for it in (one, two, three)] == [
        "[secret:redacted]",
        "[secret:redacted]",
        "[secret:redacted#2]",
    ]
    assert one.answer.message == {"role": "assistant", "content": "Miller"}


def test_what_a_path_leads_to_later_is_taken_out_before() -> None:
    later = CassetteTurn(2, {"metadata": {"who": "Miller"}}, RecordedAnswer())
    one, _ = redacted(Cassette((turn("Miller"), later)), Redaction(paths=("metadata",))).turns
    assert "Miller" not in repr(one)
    assert one.redacted


@pytest.mark.parametrize("redaction", [Redaction(), Redaction(values=("nobody",))])
def test_what_is_in_no_turn_changes_nothing(redaction: Redaction) -> None:
    cassette = Cassette((turn("sk-abcdefgh12"),))
    assert redacted(cassette, redaction) is cassette


def test_a_recorded_turn_has_no_secrets() -> None:
    key = "sk-abcdefgh12"
    new = blotted(turn(key), Blotter({key: "A_KEY"}).turn())
    assert key not in repr(new)
    assert not new.redacted
    assert new.exchanges[0].path == "/v1/chat?who=[secret:A_KEY]"
