"""The app: what is served under which address."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TextIO

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler, Receive, Scope, Send

from adapters.errors import BadRequest, GatewayError
from adapters.protocol import Json
from adapters.wire.http import Transport
from middleware.config import Config
from middleware.doors import CHAT_DOOR
from middleware.routing import Routes
from middleware.server.edge import Admitted, Edge, our_mistake, request_id
from middleware.server.embeddings import EMBEDDINGS, Embeddings
from middleware.server.last import PATH as LAST
from middleware.server.last import Records, reader, summary, told
from middleware.server.runtime import Runtime
from middleware.server.runtime import build_runtime as serving
from middleware.server.signposts import CHAT, unknown_url, wrong_method
from middleware.server.telemetry import Log

# What a page may read of an answer beside what browsers show anyway.
EXPOSED = ("x-request-id", "x-usetool-warnings", "x-upstream-model", "retry-after")


class Chat(Edge):
    """The hot route of a door: an ASGI class, as a framework's request handling would cost as much
    as all the rest.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.handle(scope, receive, send, self._respond)

    async def _respond(self, admitted: Admitted) -> None:
        served, answer = admitted.served, admitted.answer
        server = served.server
        parsed = self.door.parse(
            admitted.body, repair=server.history_repair, strict=server.strict, call=admitted.call
        )
        answer.begin(parsed)
        adapter = served.routes.find(parsed.request.model)
        # From here on a client that closes its connection cancels the upstream's answer.
        answer.watch(admitted.receive)
        await answer.respond(adapter, parsed)


class Gateway:
    """The app, with the chat route in front: Starlette's middleware would cost it a sixth more."""

    def __init__(self, chat: Chat, app: Starlette, transport: Transport) -> None:
        self.chat = chat
        self.app = app
        self._transport = transport
        self._cross = _cross_origin(self)

    @property
    def routes(self) -> Routes:
        return self.chat.served.routes

    def prepare(self, config: Config) -> Runtime:
        """Build what a config says beside what is served: may take a while, in any thread."""
        return serving(config, self._transport, self.chat.served)

    def use(self, served: Runtime) -> None:
        """Serve it from the next request on; those that are being answered keep what they have."""
        self.chat.served = served
        self.chat.log.level = served.server.log_level
        self.chat.records.count = served.server.keep_last
        self._cross = _cross_origin(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hosts = self.chat.served.hosts
        if hosts is not None and scope["type"] == "http":
            try:
                hosts.check(scope)
            except BadRequest as error:
                await self.chat.refused(scope, error)(scope, receive, send)
                return
        await (self._cross or self.plain)(scope, receive, send)

    async def plain(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == CHAT and scope["method"] == "POST":
            await self.chat(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def _cross_origin(gateway: Gateway) -> ASGIApp | None:
    """What lets web pages of other origins call, if the config allows any."""
    origins = gateway.chat.served.server.cors_origins
    if not origins:
        return None
    return CORSMiddleware(
        gateway.plain,
        allow_origins=origins,
        allow_methods=("GET", "POST", "OPTIONS"),
        allow_headers=("*",),
        expose_headers=EXPOSED,
        max_age=86400,
    )


def create(config: Config, out: TextIO | None = None) -> Gateway:
    """Build the app for a config; nothing is connected before the first request.

    The log goes to `out`, else to stderr.
    """
    transport = Transport()
    out = out or sys.stderr
    log = Log(out, config.server.log_level, readable=out.isatty())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        log.flush()
        await transport.close()

    chat = Chat(serving(config, transport), CHAT_DOOR, log, Records(config.server.keep_last))
    routes = [
        Route(CHAT, chat, methods=["POST"]),
        *_model_list(chat),
        Route(EMBEDDINGS, Embeddings(chat), methods=["POST"]),
        *_last(chat),
        *_health(),
    ]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers=_failures(chat),
    )
    app.router.redirect_slashes = False
    return Gateway(chat, app, transport)


def _model_list(chat: Chat) -> list[Route]:
    async def models(request: Request) -> Response:
        chat.served.keys.client(request.scope)
        everything = request.query_params.get("all", "").lower() in ("1", "true", "yes")
        found = await chat.served.models.entries(everything)
        return _json(200, {"object": "list", "data": found})

    async def model(request: Request) -> Response:
        chat.served.keys.client(request.scope)
        return _json(200, await chat.served.models.entry(request.path_params["model"]))

    return [
        Route("/v1/models", models, methods=["GET"]),
        Route("/v1/models/{model:path}", model, methods=["GET"]),
    ]


def _last(chat: Chat) -> list[Route]:
    async def last(request: Request) -> Response:
        client = reader(request.scope, chat.served.keys, chat.served.server)
        found = [summary(one) for one in chat.records.of(client)]
        return _json(200, {"object": "list", "data": found, "keep_last": chat.records.count})

    async def one(request: Request) -> Response:
        identity = request.path_params["identity"]
        served = chat.served
        client = reader(request.scope, served.keys, served.server)
        record = chat.records.find(client, identity)
        if record is None:
            raise BadRequest(
                f"No request '{identity[:60]}' is kept. GET /v1/x_usetool/last lists those that "
                "are; only the last ones are kept ([server] keep_last), each for its own key.",
                status=404,
                code="not_kept",
            )
        address = str(request.base_url).rstrip("/")
        return _json(200, told(record, served.scrubber, address, bool(served.server.keys)))

    return [
        Route(LAST, last, methods=["GET"]),
        Route(f"{LAST}/{{identity}}", one, methods=["GET"]),
    ]


def _health() -> list[Route]:
    async def healthz(_: Request) -> Response:
        return _json(200, {"status": "ok"})

    async def readyz(_: Request) -> Response:
        return _json(200, {"status": "ready"})

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


def _failures(chat: Chat) -> Mapping[Any, ExceptionHandler]:
    """What becomes of what goes wrong beside the doors."""

    async def gateway_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, GatewayError)
        return chat.refused(request.scope, error)

    async def http_exception(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        method, path = request.method, request.scope["path"]
        if error.status_code == 405 and method == "OPTIONS":
            return Response(status_code=204, headers=error.headers)
        found = (wrong_method if error.status_code == 405 else unknown_url)(method, path)
        return chat.refused(request.scope, found, error.headers)

    async def unforeseen(request: Request, _: Exception) -> Response:
        return chat.refused(request.scope, our_mistake())

    return {GatewayError: gateway_error, HTTPException: http_exception, Exception: unforeseen}


def _json(status: int, value: Json) -> Response:
    sent = {"x-request-id": request_id()}
    return Response(orjson.dumps(value), status, sent, "application/json")


__all__ = ("CHAT", "Chat", "create")
