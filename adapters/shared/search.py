"""What a search found, whoever searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from adapters.protocol import Json


class Finding(NamedTuple):
    title: str
    address: str
    excerpt: str
    score: float = 0.0


class SearchFailure(Exception):
    """The search brought nothing; why, in words for a receipt."""


class Searcher(Protocol):
    """What searches for a pipeline."""

    async def search(self, query: str) -> tuple[Finding, ...]:
        """Return the findings, best first; raise `SearchFailure`."""
        ...


def as_text(findings: Sequence[Finding]) -> str:
    return "\n\n".join(
        f"[{number}] {finding.title}\n{finding.address}\n{finding.excerpt}"
        for number, finding in enumerate(findings, 1)
    )


def as_annotations(findings: Sequence[Finding]) -> list[Json]:
    """Findings as OpenAI's annotations: of the answer as a whole, so without a place in it."""
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "url": finding.address,
                "title": finding.title,
                "start_index": 0,
                "end_index": 0,
            },
        }
        for finding in findings
    ]
