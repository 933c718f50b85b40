"""The pages for people: `/`, `/docs` and the document `/docs` is made of. None needs a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from html import escape

import orjson
from fastapi import FastAPI, Request, Response

from adapters.protocol import Json
from middleware.doors.endpoint import Endpoint
from middleware.server.api.openapi import describe
from middleware.server.api.reference import page, reference, table
from middleware.server.edge import Edge, request_id

# Whatever a page came to hold, a browser loads nothing for it and runs nothing in it.
_GUARDS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_RUNNING = "Ollama is running"
"""What an Ollama says here: clients that look for one compare the words."""
_ABOUT = "Usetool makes every model behave like an OpenAI endpoint with tools."


def add_pages(api: FastAPI, edge: Edge, doors: Sequence[Endpoint]) -> None:
    # Made when somebody asks, in a thread: it takes a tenth of a second.
    @cache
    def document() -> bytes:
        return orjson.dumps(describe(api, doors))

    @cache
    def documentation() -> str:
        return reference(orjson.loads(document()))

    def openapi(_: Request) -> Response:
        return _sent(document(), "application/json")

    def docs(_: Request) -> Response:
        return _sent(documentation(), "text/html")

    async def first_page(request: Request) -> Response:
        base = f"{str(request.base_url).rstrip('/')}/v1"
        if "text/html" not in request.headers.get("accept", ""):
            return _sent(_RUNNING, "text/plain")
        asks_key = edge.runtime.config.asks_keys
        found = edge.runtime
        models = [] if asks_key else await found.models.entries(found.routes.opens, everything=True)
        return _sent(_first_page(base, models, asks_key), "text/html")

    for path, answer in (("/", first_page), ("/docs", docs), ("/openapi.json", openapi)):
        api.add_route(path, answer, methods=["GET"], include_in_schema=False)


def _sent(content: str | bytes, kind: str) -> Response:
    sent = {"x-request-id": request_id(), "vary": "accept", **_GUARDS}
    return Response(content, 200, sent, kind)


def _first_page(base: str, models: Sequence[Json], asks_key: bool) -> str:
    key = "one of the gateway's keys" if asks_key else "any text: this gateway asks for none"
    said = f"""<p>{_ABOUT} Give a client these two:</p>
<table><tr><th>base URL</th><td><code>{escape(base)}</code></td></tr>
<tr><th>API key</th><td>{key}</td></tr></table>
<p><a href="/docs">All endpoints</a> · <a href="/openapi.json">OpenAPI document</a></p>
<h2>Models</h2>
"""
    if asks_key:
        return page("Usetool", f"{said}<p><code>GET /v1/models</code> with a key lists them.</p>")
    if not any(model["x_usetool"]["available"] for model in models):
        said += "<p>None can answer now: <code>usetool check</code> says more.</p>\n"
    head = ("model", "upstream", "context", "it has, or lacks")
    return page("Usetool", said + table(head, map(_row, models)))


def _row(model: Json) -> tuple[str, ...]:
    facts = model["x_usetool"]
    abilities = facts.get("abilities", {})
    has = [name for name in ("vision", "reasoning", "json_schema") if abilities.get(name)]
    if tools := abilities.get("tools"):
        has.insert(0, f"tools ({tools})")
    has = [f"not available: {facts['reason']}"] if "reason" in facts else has
    shown = (model["id"], facts["upstream"], model.get("context_length", ""), ", ".join(has))
    return tuple(escape(str(one)) for one in shown)
