"""Claude's citations as OpenAI's annotations: a text, and the address that it rests on."""

from __future__ import annotations

from adapters.protocol import Json
from adapters.wire.exchange import text_in


def cited(citations: list[Json], start: int, end: int) -> list[Json]:
    """One for each address that a text is cited from; the text stands at these characters.

    Passages of a document (`char_location`, `page_location`) have no address, and OpenAI's shape
    has no place for them.
    """
    found: dict[tuple[str, str], Json] = {}
    for citation in citations:
        if url := address(citation):
            title = text_in(citation, "title")
            place = {"start_index": start, "end_index": end, "title": title, "url": url}
            found[url, title] = {"type": "url_citation", "url_citation": place}
    return list(found.values())


def address(citation: Json) -> str:
    """Of a page, or of a search result that named one as its source; else empty."""
    found = text_in(citation, "url") or text_in(citation, "source")
    return found if found[:8].lower().startswith(("http://", "https://")) else ""
