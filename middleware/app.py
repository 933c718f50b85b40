"""The FastAPI app: routes, auth, limits, and the one broad `except`."""

from __future__ import annotations

import asyncio
import secrets
import sys
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TextIO

import orjson
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from adapters.errors import BadRequest, Busy, GatewayError
from adapters.http import Transport
from adapters.protocol import Call, Json
from middleware.answering import Answer
from middleware.config import Config, Server
from middleware.doors.openai import error_body, parse
from middleware.intake import Keys, read_body
from middleware.routing import ModelEntry, Routes, build
from middleware.telemetry import Log, Visit

CHAT = "/v1/chat/completions"
_CREATED = 1_763_424_000
"""Of every entry of the model list: OpenAI's clients want a number, and it must not move."""


@dataclass(slots=True)
class Chat:
    """`POST /v1/chat/completions`: an ASGI class, because FastAPI's own request handling costs as
    much as all the rest.
    """

    server: Server
    keys: Keys
    routes: Callable[[], Routes]
    log: Log
    _open: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        visit = Visit("req_" + secrets.token_hex(12), loop.time())
        answer = Answer(visit, send, self.server.heartbeat)
        self._open += 1
        try:
            await self._serve(scope, receive, answer)
        except GatewayError as error:
            await answer.fail(error)
        except asyncio.CancelledError:
            if not visit.gone:  # the server is stopping
                await answer.fail(Busy("The gateway is shutting down. Send the request again."))
        except Exception as error:  # the seam: whatever we did not foresee is a 500, never a hang
            await answer.fail(_unforeseen(error, visit.id))
        finally:
            answer.stop()
            self._open -= 1
            self.log.write(visit.line(loop.time()))

    async def _serve(self, scope: Scope, receive: Receive, answer: Answer) -> None:
        if self._open > self.server.max_concurrent:
            raise Busy("The gateway is at its limit of open requests.", retry_after="1")
        client = self.keys.client(scope)
        body = await read_body(scope, receive, self.server.max_body)
        call = Call(id=answer.visit.id, client=client)
        asked = parse(body, repair=self.server.history_repair, call=call)
        answer.asked(asked)
        adapter = self.routes().find(asked.request.model)
        # From here on a client that closes its connection cancels the upstream's answer.
        answer.watch(receive)
        await answer.give(adapter, asked)


def _unforeseen(error: Exception, request_id: str) -> GatewayError:
    sys.stderr.write(
        f"{request_id}: unforeseen error\n{''.join(traceback.format_exception(error))}"
    )
    return GatewayError("The gateway made a mistake of its own; its log has the details.")


@dataclass(frozen=True, slots=True)
class Gateway:
    """The app, with the chat route in front: FastAPI's middleware would cost it a sixth more."""

    chat: Chat
    app: FastAPI
    routes: Routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == CHAT and scope["method"] == "POST":
            await self.chat(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def create(config: Config, out: TextIO | None = None) -> Gateway:
    """Build the app for a config; nothing is connected before the first request."""
    transport = Transport()
    routes = build(config, transport)
    keys = Keys(key.value for key in config.server.keys)
    log = Log(out or sys.stderr)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        log.flush()
        await transport.close()

    app = FastAPI(
        title="usetool", openapi_url=None, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    chat = Chat(config.server, keys, lambda: routes, log)
    app.router.routes.append(Route(CHAT, chat, methods=["POST"]))
    _add_model_list(app, keys, routes)
    _add_health(app)
    _add_signposts(app)
    app.add_exception_handler(GatewayError, _on_gateway_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    return Gateway(chat, app, routes)


def _add_model_list(app: FastAPI, keys: Keys, routes: Routes) -> None:
    @app.get("/v1/models")
    async def models(request: Request) -> Response:
        keys.client(request.scope)
        return _json(200, {"object": "list", "data": [_entry(e) for e in routes.listing()]})

    @app.get("/v1/models/{model:path}")
    async def model(model: str, request: Request) -> Response:
        keys.client(request.scope)
        routes.find(model)
        entry = next((e for e in routes.listing() if e.id == model), None)
        return _json(200, _entry(entry) if entry else _bare_entry(model))


def _entry(entry: ModelEntry) -> Json:
    said = {**_bare_entry(entry.id), "owned_by": entry.owned_by}
    availability: Json = {"available": entry.available, "upstream": entry.upstream}
    if not entry.available:
        availability["reason"] = entry.reason
    return {**said, "x_usetool": availability}


def _bare_entry(model: str) -> Json:
    return {"id": model, "object": "model", "created": _CREATED, "owned_by": "usetool"}


def _add_health(app: FastAPI) -> None:
    @app.get("/healthz")
    async def healthz() -> Response:
        return _json(200, {"status": "ok"})

    @app.get("/readyz")
    async def readyz() -> Response:
        return _json(200, {"status": "ready"})


_SIGNPOSTS = (
    (
        "/v1/responses",
        "This gateway speaks chat completions, not the Responses API. Point the client at "
        f"POST {CHAT}: in the OpenAI SDK call client.chat.completions, in LangChain set "
        "use_responses_api=False, in the Vercel AI SDK use openai.chat(model), in Open WebUI and "
        "Codex choose the 'chat' wire API.",
    ),
    (
        "/v1/messages",
        "This gateway speaks OpenAI chat completions, not the Anthropic Messages API. Choose the "
        "client's 'OpenAI compatible' provider with this server's /v1 as its base URL; it posts "
        f"to {CHAT}.",
    ),
    (
        "/v1/completions",
        f"This gateway has no text completions. Use chat completions: POST {CHAT} with 'messages'.",
    ),
)


def _add_signposts(app: FastAPI) -> None:
    """Other APIs' addresses say which setting makes their client use this one."""
    for path, text in _SIGNPOSTS:
        app.router.routes.append(Route(path, _signpost(text), methods=["POST"]))


def _signpost(text: str) -> Callable[[Request], Response]:
    def answer(_: Request) -> Response:
        return _error(BadRequest(text, status=404, code="unsupported_api"))

    return answer


async def _on_gateway_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, GatewayError)
    return _error(error)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path, method = request.url.path[:100], request.method[:20]
    if error.status_code == 405:
        found = BadRequest(
            f"Method {method} is not allowed on {path}.", status=405, code="method_not_allowed"
        )
    elif path.startswith("/chat/completions"):
        found = BadRequest(
            f"The path is {CHAT}: end the base URL in /v1.", status=404, code="unknown_url"
        )
    else:
        hint = "The endpoints are POST /v1/chat/completions, GET /v1/models and GET /healthz."
        found = BadRequest(
            f"Unknown request URL: {method} {path}. {hint}", status=404, code="unknown_url"
        )
    return _error(found, error.headers)


def _error(error: GatewayError, headers: object = None) -> Response:
    request_id = "req_" + secrets.token_hex(12)
    sent = {"x-request-id": request_id}
    if isinstance(headers, dict):
        sent |= headers
    return Response(error_body(error, request_id), error.status, sent, "application/json")


def _json(status: int, value: Json) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


__all__ = ["CHAT", "Chat", "create"]
