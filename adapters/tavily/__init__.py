"""Tavily: searches the web for pipelines, before a model thinks."""

from __future__ import annotations

import re
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from adapters.errors import GatewayError
from adapters.kind import Kind, Service
from adapters.protocol import Json
from adapters.shared.search import Finding, SearchFailure
from adapters.wire.http import Link
from adapters.wire.json_text import objects_in

_WORD = re.compile(r"\w+")
_LONGEST_QUERY = 400
"""More the service refuses."""


@dataclass(frozen=True, slots=True)
class Bounds:
    seconds: float = 8.0
    """How long a thought waits for its search."""
    results: int = 5
    excerpt: int = 500
    """Characters of each result."""
    total: int = 4000
    """Characters of all of them."""
    fresh: float = 900.0
    """Seconds a finding is used again."""
    kept: int = 256
    """Queries remembered."""


@dataclass(slots=True)
class Tavily:
    """Answers queries, the same or nearly the same from memory."""

    link: Link | None
    """None: there is no key."""
    bounds: Bounds = Bounds()
    clock: Callable[[], float] = time.monotonic
    _known: OrderedDict[bytes, tuple[float, tuple[Finding, ...]]] = field(
        default_factory=OrderedDict
    )

    async def search(self, query: str) -> tuple[Finding, ...]:
        if self.link is None:
            raise SearchFailure("there is no key for the search")
        words = plain_words(query)
        if not words:
            return ()
        key = blake2b(words.encode(errors="replace"), digest_size=16).digest()
        if (known := self._known.get(key)) and self.clock() - known[0] < self.bounds.fresh:
            return known[1]
        findings = read(await self._ask(self.link, shortened(query)), self.bounds)
        self._known[key] = (self.clock(), findings)
        self._known.move_to_end(key)
        if len(self._known) > self.bounds.kept:
            self._known.popitem(last=False)
        return findings

    async def _ask(self, link: Link, query: str) -> Any:
        question = orjson.dumps({"query": query, "max_results": self.bounds.results})
        try:
            return await link.fetch("POST", "/search", question, self.bounds.seconds)
        except GatewayError as error:
            raise SearchFailure(error.message) from error


def plain_words(query: str) -> str:
    """The words of a query, whatever their case, width and punctuation."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", query).casefold()))


def shortened(query: str) -> str:
    query = " ".join(query.split())
    return query if len(query) <= _LONGEST_QUERY else query[:_LONGEST_QUERY].rsplit(" ", 1)[0]


def read(answer: Any, bounds: Bounds) -> tuple[Finding, ...]:
    """Take what is there of an answer: only `results` is certain to be."""
    results = answer.get("results") if isinstance(answer, dict) else None
    findings = [_finding(result, bounds) for result in objects_in(results)]
    findings = [finding for finding in findings if finding.address]
    best = sorted(findings, key=lambda finding: -finding.score)
    return _within(best[: bounds.results], bounds.total)


def _finding(result: Json, bounds: Bounds) -> Finding:
    score = result.get("score")
    return Finding(
        title=_line(result.get("title")) or _line(result.get("url")),
        address=_line(result.get("url")),
        excerpt=_line(result.get("content"))[: bounds.excerpt],
        score=score if isinstance(score, int | float) else 0.0,
    )


def _line(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _within(findings: Sequence[Finding], total: int) -> tuple[Finding, ...]:
    """As many as fit, the last one cut."""
    kept: list[Finding] = []
    for finding in findings:
        room = total - sum(len(other.title + other.address + other.excerpt) for other in kept)
        room -= len(finding.title + finding.address)
        if room <= 0:
            break
        kept.append(finding._replace(excerpt=finding.excerpt[:room]))
    return tuple(kept)


KIND = Kind(
    name="tavily",
    about="No model: it searches the web for pipelines.",
    search=Tavily,
    base_url="https://api.tavily.com",
    endings=("/search",),
    services={"tavily": Service("tavily", variable="TAVILY_API_KEY")},
)
