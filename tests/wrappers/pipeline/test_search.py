"""A search before a thought: what is asked, what is made of the answer, what failures become."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.shared.search import Finding, SearchFailure, as_annotations, as_text
from adapters.tavily import Bounds, Tavily, plain_words, read, shortened
from tests.support.upstreams.loopback import Loopback, Peer, loopback

FOUND = {
    "query": "沈阳天气",
    "answer": "晴",
    "results": [
        {"title": "Low", "url": "http://low", "content": "b", "score": 0.1},
        {"title": "High", "url": "http://high", "content": "晴 5℃\n风", "score": 0.9},
        {"title": "None", "url": "http://none", "content": "c"},
    ],
}


def searched(
    answer: bytes, queries: list[str], status: str = "200 OK", wait: float = 0
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Ask a scripted Tavily; what came of each query, and what it was asked."""
    asked: list[dict[str, Any]] = []

    async def behave(peer: Peer) -> None:
        while True:
            _, body = await peer.request()
            asked.append(orjson.loads(body))
            await asyncio.sleep(wait)
            await peer.answer(answer, status=status)

    async def run(use: Callable[[Loopback], Awaitable[list[Any]]]) -> list[Any]:
        async with loopback(behave) as upstream:
            return await use(upstream)

    async def use(upstream: Loopback) -> list[Any]:
        search = Tavily(upstream.link, Bounds(seconds=0.2))
        outcomes: list[Any] = []
        for query in queries:
            try:
                outcomes.append(await search.search(query))
            except SearchFailure as failure:
                outcomes.append(failure)
        return outcomes

    return asyncio.run(run(use)), asked


def test_findings_are_ordered_by_score() -> None:
    (found,), asked = searched(orjson.dumps(FOUND), ["沈阳天气"])
    assert [one.title for one in found] == ["High", "Low", "None"]
    assert found[0] == Finding("High", "http://high", "晴 5℃ 风", 0.9)
    assert asked == [{"query": "沈阳天气", "max_results": 5}]


def test_nearly_equal_queries_are_asked_once() -> None:
    queries = ["Weather, Shenyang?", "weather shenyang", " WEATHER  Shenyang! ", "weather dalian"]
    outcomes, asked = searched(orjson.dumps(FOUND), queries)
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b'{"detail":{"error":"Unauthorized: missing or invalid API key."}}', "401 Unauthorized"),
        (b'{"detail":{"error":"plan limit"}}', "432 Plan Limit"),
        (b"<html>", "502 Bad Gateway"),
        (b"not json", "200 OK"),
    ],
)
def test_a_failing_search_is_a_failure_by_name_and_asked_again(answer: bytes, status: str) -> None:
    outcomes, asked = searched(answer, ["a", "a"], status)
    assert all(isinstance(outcome, SearchFailure) and str(outcome) for outcome in outcomes)
    assert len(asked) == 2


def test_a_slow_search_is_left() -> None:
    (outcome,), _ = searched(orjson.dumps(FOUND), ["a"], wait=1.0)
    assert isinstance(outcome, SearchFailure)


def test_without_a_key_nothing_is_asked() -> None:
    with pytest.raises(SearchFailure, match="no key"):
        asyncio.run(Tavily(None).search("a"))


def test_a_query_without_words_finds_nothing() -> None:
    assert searched(b"", ["  ?! "]) == ([()], [])


def test_memory_is_bounded_and_ages() -> None:
    asked: list[bytes] = []
    now = 0.0

    async def behave(peer: Peer) -> None:
        while True:
            asked.append((await peer.request())[1])
            await peer.answer(orjson.dumps(FOUND))

    async def run() -> None:
        nonlocal now
        async with loopback(behave) as upstream:
            search = Tavily(upstream.link, Bounds(kept=2, fresh=10), lambda: now)
            for query in ("a", "b", "c", "c", "a"):
                await search.search(query)
            assert len(asked) == 4
            now = 11
            await search.search("c")
            assert len(asked) == 5

    asyncio.run(run())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
RESULT = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("title", "url", "content", "score"), JSON)
)


@example({"results": 5})
@given(JSON | st.fixed_dictionaries({"results": st.lists(RESULT, max_size=5) | JSON}))
def test_any_answer_is_read_within_the_bounds(answer: Any) -> None:
    bounds = Bounds(results=3, excerpt=20, total=80)
    found = read(answer, bounds)
    assert len(found) <= 3
    assert sum(len(one.title + one.address + one.excerpt) for one in found) <= 80
    assert all(one.address and len(one.excerpt) <= 20 for one in found)


def test_a_long_question_is_cut_between_words() -> None:
    query = shortened("word " * 200)
    assert len(query) <= 400
    assert query.endswith("word")


def test_nearly_ignores_case_width_and_punctuation() -> None:
    assert plain_words("Ｈｅｌｌｏ, 沈阳！") == plain_words("hello 沈阳")


def test_findings_are_told_and_cited() -> None:
    found = [Finding("T", "http://a", "text", 1.0)]
    assert as_text(found) == "[1] T\nhttp://a\ntext"
    assert as_text([]) == ""
    (annotation,) = as_annotations(found)
    assert annotation["type"] == "url_citation"
    assert annotation["url_citation"]["url"] == "http://a"


def test_a_long_query_is_remembered_by_its_digest() -> None:
    async def behave(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.answer(orjson.dumps(FOUND))

    async def run() -> None:
        async with loopback(behave) as upstream:
            search = Tavily(upstream.link)
            for number in range(3):
                found = await search.search(f"{number} {'word ' * 100_000}")
                assert await search.search(f"{number} {'word ' * 100_000}") is found
            assert sum(len(key) for key in search._known) == 3 * 16

    asyncio.run(run())
