"""Tables of kind `tavily`: a search of the web, with all that the service takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yarl import URL

from adapters.kind import known_kind
from adapters.protocol import Json
from middleware.config import ToolConfig
from middleware.tools.http import WebRequest, WebTable, fetch
from middleware.tools.table import Declared, Derived, TableContext
from middleware.tools.tool import CallFailed, ToolContext, ToolResult

_ABOUT = (
    "Search the web for current information: news, weather, prices, facts. Returns titles, "
    "addresses and excerpts of pages."
)
_DOMAINS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
_DAY = "A day, YYYY-MM-DD"
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "What to search for"},
        "search_depth": {
            "type": "string",
            "enum": ["basic", "advanced", "fast", "ultra-fast"],
            "description": "advanced finds more and costs twice as much",
        },
        "topic": {"type": "string", "enum": ["general", "news", "finance"]},
        "time_range": {
            "type": "string",
            "enum": ["day", "week", "month", "year", "d", "w", "m", "y"],
            "description": "Only what is not older",
        },
        "start_date": {"type": "string", "description": f"{_DAY}: only what is newer"},
        "end_date": {"type": "string", "description": f"{_DAY}: only what is older"},
        "max_results": {"type": "integer", "minimum": 0, "maximum": 20},
        "chunks_per_source": {"type": "integer", "minimum": 1, "maximum": 3},
        "include_answer": {
            "anyOf": [{"type": "boolean"}, {"type": "string", "enum": ["basic", "advanced"]}],
            "description": "A short answer beside the results",
        },
        "include_raw_content": {
            "anyOf": [{"type": "boolean"}, {"type": "string", "enum": ["markdown", "text"]}],
            "description": "The pages' whole text",
        },
        "include_images": {"type": "boolean"},
        "include_domains": {**_DOMAINS, "description": "Only of these sites"},
        "exclude_domains": {**_DOMAINS, "description": "Nothing of these sites"},
        "country": {"type": "string", "description": "Prefer results of a country, by its name"},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_MOST_BYTES = 4 << 20


@dataclass(frozen=True)
class TavilyTool(Declared):
    url: str = ""
    key: str = ""

    async def run(self, arguments: Json, context: ToolContext, /) -> ToolResult:
        self.hold(arguments)
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        body = json.dumps(arguments, ensure_ascii=False).encode("utf-8", "replace")
        where = URL(self.url)
        # The operator's own address: it may be anywhere.
        allow = (f"{where.host}:{where.port}",)
        answer = await fetch(WebRequest("POST", self.url, headers, body), allow, _MOST_BYTES)
        text = answer.content()
        try:
            found = json.loads(text) if isinstance(text, str) else None
        except ValueError as error:
            raise CallFailed("the search did not answer with JSON") from error
        if not isinstance(found, dict):
            raise CallFailed("the search did not answer with a JSON object")
        return ToolResult(text, sources=tuple(_sources(found)))


def _sources(found: Json) -> Iterator[Json]:
    results = found.get("results")
    for one in results if isinstance(results, list) else ():
        if isinstance(one, dict) and isinstance(one.get("url"), str):
            cited = {"url": one["url"], "title": str(one.get("title") or one["url"])}
            yield {
                "type": "url_citation",
                "url_citation": {**cited, "start_index": 0, "end_index": 0},
            }


class TavilyTable(WebTable):
    def __init__(self, config: ToolConfig, around: TableContext) -> None:
        super().__init__(config, around)
        upstream = around.config.upstreams.get(config.upstream or "")
        secret, address = config.api_key, config.base_url
        if upstream is not None:
            secret = secret or upstream.api_key
            address = address or upstream.base_url
        key = secret.value if secret is not None else ""
        if not key and not self.reasons:
            self.reasons[config.id] = "there is no key for it"
        made = self._take(Derived("", "tavily_search", _ABOUT, {**_PARAMETERS}))
        url = f"{(address or known_kind('tavily').base_url).rstrip('/')}/search"
        self._tools: Sequence[TavilyTool] = (
            [TavilyTool(**vars(made) | {"searches": True}, url=url, key=key)] if made else []
        )

    def tools(self) -> Sequence[TavilyTool]:
        return self._tools
