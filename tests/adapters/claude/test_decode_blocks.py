"""What OpenAI's shape cannot say of Claude's answers: kept for the next turn, or named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from adapters.protocol import Aside, Json, ReasoningDelta, ToolCallStart
from tests.adapters.claude.streams import PARALLEL, PING
from tests.support.upstreams.claude_wire import (
    begin,
    block,
    call,
    end,
    hear,
    sse,
    text,
    thought,
)


def content(turn: Json | None) -> list[Json]:
    assert turn is not None
    assert turn["role"] == "assistant"
    found: list[Json] = turn["content"]
    return found


def test_turn_keeps_claudes_own_blocks_in_order() -> None:
    redacted = {"type": "redacted_thinking", "data": "Ev8="}
    stream = sse(
        begin(),
        *thought(0, "a", signature="one"),
        *block(1, redacted),
        *text(2, "b", "c"),
        *call(3, "x", "f", '{"n": 1.10, "b": 1e2}'),
        *thought(4, signature="two"),
        *call(5, "y", "g"),
        *end("tool_use"),
    )
    answer = hear(stream)
    assert answer.reasoning == "a"
    assert content(answer.turn) == [
        {"type": "thinking", "thinking": "a", "signature": "one"},
        redacted,
        {"type": "text", "text": "bc"},
        {"type": "tool_use", "id": "x", "name": "f", "input": {"n": 1.1, "b": 100.0}},
        {"type": "thinking", "thinking": "", "signature": "two"},
        {"type": "tool_use", "id": "y", "name": "g", "input": {}},
    ]
    signed = ({"type": "thinking", "thinking": "a", "signature": "one"}, redacted,
              {"type": "thinking", "thinking": "", "signature": "two"})  # fmt: skip
    assert answer.asides == [("thinking_blocks", [block]) for block in signed]


def test_signed_thoughts_are_told_where_they_end() -> None:
    kinds = [type(event) for batch in hear(PARALLEL).batches for event in batch]
    assert kinds.index(Aside) < kinds.index(ToolCallStart)
    assert ReasoningDelta not in kinds[kinds.index(Aside) :]


def test_leading_thoughts_are_offered_for_echo() -> None:
    answer = hear(PARALLEL)
    signed = {"type": "thinking", "thinking": "Two cities: 沈阳", "signature": "EqQB"}
    assert answer.asides == [("thinking_blocks", [signed])]


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [*text(0, "a")],
        [*text(0, "a"), *call(1, "x", "f", "{}")],
        [*text(0, ""), *call(1, "x", "f", "{}")],
        [*thought(0, "cut before it was signed", signature="")],
        [*thought(0, "a"), *call(1, "x", "f", '{"broken')],
    ],
)
def test_no_turn_where_text_and_calls_say_it_all_or_claude_would_not_take_it_back(
    blocks: list[Json],
) -> None:
    assert hear(sse(begin(), *blocks, *end())).turn is None


def test_text_after_a_call_makes_a_turn() -> None:
    answer = hear(sse(begin(), *call(0, "x", "f", "{}"), *text(1, "a"), *end("tool_use")))
    assert [block["type"] for block in content(answer.turn)] == ["tool_use", "text"]


def test_thoughts_that_are_only_counted_say_nothing() -> None:
    start = {"type": "thinking", "thinking": "", "signature": ""}
    counted = {"type": "thinking_delta", "estimated_tokens": 128}
    signed = {"type": "signature_delta", "signature": "s"}
    answer = hear(sse(begin(), *block(0, start, counted, signed), *text(1, "hi"), *end()))
    assert (answer.error, answer.reasoning, answer.text) == (None, "", "hi")
    assert content(answer.turn)[0] == {"type": "thinking", "thinking": "", "signature": "s"}


def test_thought_of_a_signature_alone_says_nothing_and_is_kept() -> None:
    answer = hear(sse(begin(), *thought(0, signature="s"), *text(1, "a"), *end()))
    assert (answer.reasoning, answer.text) == ("", "a")
    assert content(answer.turn)[0] == {"type": "thinking", "thinking": "", "signature": "s"}


def test_server_tools_and_citations_stay_behind_by_name_and_cost_no_text() -> None:
    searched = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    query = {"type": "input_json_delta", "partial_json": '{"query":"x"}'}
    cited = {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "b"}}
    said = {"type": "text_delta", "text": "b"}
    stream = sse(
        begin(),
        *text(0, "a"),
        *block(1, searched, query),
        *block(2, found),
        *block(3, {"type": "text", "text": "", "citations": []}, said, cited),
        *block(4, found),
        *end(),
    )
    answer = hear(stream)
    assert (answer.text, answer.calls) == ("ab", [])
    assert answer.notes == ["block_not_shown"] * 2 + ["citations_dropped"]
    assert content(answer.turn)[1]["input"] == {"query": "x"}
    assert content(answer.turn)[3]["citations"] == [cited["citation"]]


def page(url: Any, title: Any = "T", **more: Any) -> Json:
    return {"type": "web_search_result_location", "url": url, "title": title, **more}


def cited(url: str, start: int, end: int, title: str = "T") -> Json:
    place = {"start_index": start, "end_index": end, "title": title, "url": url}
    return {"type": "url_citation", "url_citation": place}


def resting(index: int, said: str, *citations: Json) -> Iterator[Json]:
    """A streamed block of text and what it rests on."""
    words = {"type": "text_delta", "text": said}
    rests = [{"type": "citations_delta", "citation": citation} for citation in citations]
    return block(index, {"type": "text", "text": "", "citations": []}, *rests, words)


DOCUMENT: Json = {"type": "char_location", "document_index": 0, "document_title": "D"}


@pytest.mark.parametrize(
    ("citations", "expected", "notes"),
    [
        ([page("https://a")], [("https://a", "T")], []),
        ([page("https://a", cited_text="x"), page("https://a", cited_text="y")],
         [("https://a", "T")], []),
        ([page("https://a"), page("HTTP://b", None)], [("https://a", "T"), ("HTTP://b", "")], []),
        ([{"type": "search_result_location", "source": "https://s", "title": "S"}],
         [("https://s", "S")], []),
        ([{"type": "search_result_location", "source": "shelf 3"}], [], ["citations_dropped"]),
        ([DOCUMENT, DOCUMENT, page("https://a")], [("https://a", "T")], ["citations_dropped"]),
        ([page("javascript:alert(1)"), page(7)], [], ["citations_dropped"]),
    ],
)  # fmt: skip
def test_citations_with_an_address_are_annotations_and_others_are_named(
    citations: list[Json], expected: list[tuple[str, str]], notes: list[str]
) -> None:
    streamed = hear(
        sse(begin(), *text(0, "沈阳: "), *resting(1, "晴 5℃", *citations), *text(2, "."), *end())
    )
    blocks = [{"type": "text", "text": "沈阳: "},
              {"type": "text", "text": "晴 5℃", "citations": citations},
              {"type": "text", "text": "."}]  # fmt: skip
    whole = {**begin()["message"], "content": blocks, "stop_reason": "end_turn"}
    for answer in (streamed, hear(orjson.dumps(whole), streamed=False)):
        assert (answer.text, answer.error, answer.notes) == ("沈阳: 晴 5℃.", None, notes)
        (said,) = [value for _, value in answer.asides] or [[]]
        assert said == [cited(url, 4, 8, title) for url, title in expected]
        assert content(answer.turn)[1]["citations"] == citations  # Claude has its own back


def test_a_summary_of_what_was_before_is_kept_for_claude() -> None:
    pieces = [("Earlier ", "one"), (None, None), ("summed up", "two")]
    deltas = [
        {"type": "compaction_delta", "content": words, "encrypted_content": sealed}
        for words, sealed in pieces
    ]
    start = {"type": "compaction", "content": None, "encrypted_content": None}
    answer = hear(sse(begin(), *block(0, start, *deltas), *text(1, "hi"), *end()))
    assert (answer.text, answer.notes) == ("hi", ["block_not_shown"])
    assert content(answer.turn)[0] == {
        "type": "compaction",
        "content": "Earlier summed up",
        "encrypted_content": "two",
    }


def test_what_is_invented_later_is_skipped() -> None:
    strange = block(0, {"type": "hologram"}, {"type": "hologram_delta", "light": 1})
    news = {"type": "weather_report", "sunny": True}
    answer = hear(sse(begin(), PING, *strange, news, *text(1, "a"), PING, *end()))
    assert (answer.error, answer.text, answer.reason) == (None, "a", "stop")
