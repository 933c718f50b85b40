"""Recordings of other tools become cassettes, whichever of their forms they have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from middleware.cassettes.file import cassette_text, parse_cassette
from middleware.cli.importers.recordings import from_recording
from tests.cassette.recordings import ANSWERED, ASKED, CHUNKS, interaction, one, recorded, vcrpy
from tests.support.cases import CASES
from tests.support.recordings import play


@pytest.mark.parametrize("case", sorted(CASES))
def test_an_imported_answer_is_what_the_gateway_reads(case: str) -> None:
    plain, streamed = from_recording(vcrpy(recorded(case)), "t.yaml").cassette.turns
    assert (plain.streamed, streamed.streamed) == (False, True)
    assert plain.answer == streamed.answer
    heard = play("compatible", case).plain
    if heard.error:
        assert plain.answer.error
        told = (plain.answer.status, plain.answer.error["code"], plain.answer.error["message"])
        assert told == (heard.error.status, heard.error.code, heard.error.message)
        assert plain.kept
        return
    message = plain.answer.message
    assert message
    calls = [
        (call["id"], call["function"]["name"], "function", call["function"]["arguments"])
        for call in message.get("tool_calls", ())
    ]
    assert (message["content"] or "", calls) == (heard.text, heard.calls)
    assert message.get("reasoning_content", "") == heard.reasoning
    assert plain.answer.finish_reason == heard.reason
    assert heard.usage
    assert plain.answer.usage
    assert plain.answer.usage["prompt_tokens"] == heard.usage.prompt


def test_only_what_is_on_the_list_is_kept() -> None:
    headers = {
        "Content-Type": ["application/json"],
        "Set-Cookie": ["session=secret"],
        "Retry-After": ["2"],
    }
    uri = "https://anna:secret@api.openai.com/v1/chat/completions?key=secret"
    turn = one(
        interaction(
            ASKED, {"error": {"message": "slow down"}}, headers=headers, uri=uri, status=429
        )
    )
    assert "secret" not in repr(turn)
    assert turn.exchanges[0].upstream == "api.openai.com"
    assert turn.exchanges[0].headers == {"content-type": "application/json", "retry-after": "2"}
    assert turn.answer.error
    assert (turn.answer.status, turn.answer.error["retry_after"]) == (429, "2")


def test_what_we_cannot_read_is_left_out_and_named() -> None:
    listed = [
        interaction(ASKED, ANSWERED, uri="https://api.anthropic.com/v1/messages"),
        interaction(ASKED, ANSWERED),
        {"request": {"uri": "https://x/v1/chat/completions"}},
        interaction({**ASKED, "n": 2}, ANSWERED),
        interaction({}, ANSWERED, uri="https://api.openai.com/v1/embeddings"),
        interaction("not kept", ANSWERED),
        {
            **interaction(ASKED, ANSWERED),
            "request": {"method": "GET", "uri": "http://x/chat/completions"},
        },
        interaction(ASKED, b"\x28\xb5\x2f\xfd", headers={"content-encoding": ["zstd"]}),
    ]
    cassette, remarks = from_recording(vcrpy({"interactions": listed}), "t.yaml")
    assert [turn.number for turn in cassette.turns] == [1]
    assert cassette.turns[0].answer.message == {"role": "assistant", "content": "imported!"}
    assert [remark.partition(" is left out: ")[0] for remark in remarks] == [
        f"interaction {position}" for position in (1, 3, 4, 5, 6, 7, 8)
    ]
    assert "POST https://api.anthropic.com/v1/messages is another language" in remarks[0]
    assert "no table 'response'" in remarks[1]
    assert "'n' greater than 1" in remarks[2]
    assert "GET http://x/chat/completions is another language" in remarks[5]
    assert "zstd" in remarks[6]


def test_a_stream_that_broke_off_keeps_what_was_said() -> None:
    turn = one(interaction({**ASKED, "stream": True}, CHUNKS))
    assert (turn.ended, turn.exchanges[0].ended, turn.kept) == ("cut", "cut", True)
    assert turn.exchanges[0].failure
    assert turn.exchanges[0].failure.code == "upstream_truncated"
    assert turn.answer.message
    assert turn.answer.message["content"] == "imported!"
    assert turn.answer.error
    assert (turn.answer.status, turn.answer.finish_reason) == (200, None)


def test_an_answer_that_is_none_is_the_error_a_client_would_get() -> None:
    turn = one(interaction(ASKED, b"ok", headers={"content-type": ["text/html"]}))
    assert turn.answer.message is None
    assert turn.answer.error
    assert (turn.answer.status, turn.answer.error["code"]) == (502, "upstream_not_json")


def test_calls_of_legacy_functions_are_kept_as_tool_calls() -> None:
    asked = {**ASKED, "functions": [{"name": "now", "parameters": {}}]}
    message = {"role": "assistant", "function_call": {"name": "now", "arguments": "{}"}}
    said = {**ANSWERED, "choices": [{"message": message, "finish_reason": "function_call"}]}
    turn = one(interaction(asked, said))
    assert turn.answer.message
    assert turn.answer.message["tool_calls"][0]["function"]["name"] == "now"
    assert turn.answer.finish_reason == "tool_calls"


@pytest.mark.parametrize("case", sorted(CASES))
def test_an_imported_cassette_is_written_and_read_again(case: str) -> None:
    cassette = from_recording(vcrpy(recorded(case)), "t.yaml").cassette
    again = parse_cassette(cassette_text(cassette).text, Path("t.yaml"))
    assert [replace(turn, line=0) for turn in again.turns] == list(cassette.turns)
    assert again.routes == cassette.routes
