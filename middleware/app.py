"""The app: routes, auth, limits, and the one broad `except`."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TextIO

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from adapters.errors import BadRequest, Busy, GatewayError
from adapters.http import Transport
from adapters.protocol import Call, Json
from middleware.answering import Answer, error_headers
from middleware.config import Config
from middleware.doors.openai import error_body, parse
from middleware.embedding import embed
from middleware.intake import read_body, sent_key
from middleware.last import Record, Records, reader, summary, told
from middleware.responses import raw
from middleware.routing import Routes
from middleware.served import Served
from middleware.served import served as serving
from middleware.telemetry import Log, Visit
from middleware.terminal import visible

CHAT = "/v1/chat/completions"
_OUR_MISTAKE = "The gateway made a mistake of its own; its log has the details."
# What a page may read of an answer beside what browsers show anyway.
EXPOSED = ("x-request-id", "x-usetool-warnings", "x-upstream-model", "retry-after")


@dataclass(slots=True)
class Chat:
    """`POST /v1/chat/completions`: an ASGI class, as a framework's request handling would cost as
    much as all the rest.
    """

    served: Served
    """Exchanged when the config changes; a request keeps the one it began with."""
    log: Log
    records: Records
    _open: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        served = self.served
        visit = Visit(_request_id(), loop.time())
        record = self.records.begin(visit)
        answer = Answer(visit, send, served.server.heartbeat)
        self._open += 1
        try:
            await self._serve(scope, receive, answer, record)
        except GatewayError as error:
            await answer.fail(error)
        except asyncio.CancelledError:
            if not visit.gone:  # the server is stopping
                await answer.fail(Busy("The gateway is shutting down. Send the request again."))
        # The seam, the only one: what we did not foresee is logged whole and is a 500 in OpenAI's
        # shape. Let through, it would be uvicorn's plain text, or a stream that just stops.
        except Exception as error:
            await answer.fail(_unforeseen(error, visit.id))
        finally:
            answer.stop()
            self._open -= 1
            now = loop.time()
            if record is not None:
                self.records.end(record, now)
            self.log.write(visit.line(now))

    async def _serve(
        self, scope: Scope, receive: Receive, answer: Answer, record: Record | None
    ) -> None:
        served = self.served
        server = served.server
        if self._open > server.max_concurrent:
            raise Busy("The gateway is at its limit of open requests.", retry_after="1")
        client = served.keys.client(scope)
        body = await read_body(scope, receive, server.max_body)
        kept = None
        if record is not None:
            record.client, record.body, kept = client, body, record.calls
        key = sent_key(scope) if served.passes_keys else ""
        call = Call(answer.visit.id, client, key=key, kept=kept)
        asked = parse(body, repair=server.history_repair, strict=server.strict, call=call)
        answer.asked(asked)
        adapter = served.routes.find(asked.request.model)
        # From here on a client that closes its connection cancels the upstream's answer.
        answer.watch(receive)
        await answer.give(adapter, asked)


def _unforeseen(error: Exception, request_id: str) -> GatewayError:
    told = "".join(traceback.format_exception(error))
    sys.stderr.write(f"{request_id}: unforeseen error\n{visible(told)}")
    return GatewayError(_OUR_MISTAKE)


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

    def prepare(self, config: Config) -> Served:
        """Build what a config says beside what is served: may take a while, in any thread."""
        return serving(config, self._transport, self.chat.served)

    def use(self, served: Served) -> None:
        """Serve it from the next request on; those that are being answered keep what they have."""
        self.chat.served = served
        self.chat.log.level = served.server.log_level
        self.chat.records.count = served.server.keep_last
        self._cross = _cross_origin(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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

    chat = Chat(serving(config, transport), log, Records(config.server.keep_last))
    routes = [
        Route(CHAT, chat, methods=["POST"]),
        *_model_list(chat),
        *_embeddings(chat),
        *_last(chat),
        *_health(),
        *_signposts(),
    ]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={
            GatewayError: _on_gateway_error,
            HTTPException: _on_http_exception,
            Exception: _on_unforeseen,
        },
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


def _embeddings(chat: Chat) -> list[Route]:
    async def embeddings(request: Request) -> Response:
        served, scope = chat.served, request.scope
        client = served.keys.client(scope)
        body = await read_body(scope, request.receive, served.server.max_body)
        key = sent_key(scope) if served.passes_keys else ""
        call = Call(_request_id(), client, key=key)
        return _json(200, await embed(body, served.routes, call), call.id)

    return [Route("/v1/embeddings", embeddings, methods=["POST"])]


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
        Route("/v1/x_usetool/last", last, methods=["GET"]),
        Route("/v1/x_usetool/last/{identity}", one, methods=["GET"]),
    ]


def _health() -> list[Route]:
    async def healthz(_: Request) -> Response:
        return _json(200, {"status": "ok"})

    async def readyz(_: Request) -> Response:
        return _json(200, {"status": "ready"})

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


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


def _signposts() -> list[Route]:
    """Other APIs' addresses say which setting makes their client use this one."""
    return [Route(path, _signpost(text), methods=["POST"]) for path, text in _SIGNPOSTS]


def _signpost(text: str) -> Callable[[Request], Response]:
    def answer(_: Request) -> Response:
        return _error(BadRequest(text, status=404, code="unsupported_api"))

    return answer


_WITHOUT_BASE = ("/chat/completions", "/models", "/embeddings")


async def _on_gateway_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, GatewayError)
    return _error(error)


async def _on_unforeseen(_: Request, error: Exception) -> Response:
    return _error(GatewayError(_OUR_MISTAKE))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path, method = request.url.path[:100], request.method[:20]
    if error.status_code == 405 and method == "OPTIONS":
        return Response(status_code=204, headers=error.headers)
    if error.status_code == 405:
        found = BadRequest(
            f"Method {method} is not allowed on {path}.", status=405, code="method_not_allowed"
        )
    elif path.rstrip("/").endswith(_WITHOUT_BASE):
        found = BadRequest(
            f"The path is {CHAT}, and this was {path}. Clients add /chat/completions themselves, "
            "so their base URL must end in /v1.",
            status=404,
            code="unknown_url",
        )
    else:
        hint = "The endpoints are POST /v1/chat/completions, GET /v1/models and GET /healthz."
        found = BadRequest(
            f"Unknown request URL: {method} {path}. {hint}", status=404, code="unknown_url"
        )
    return _error(found, error.headers)


def _error(error: GatewayError, headers: Mapping[str, str] | None = None) -> Response:
    request_id = _request_id()
    response = Response(error_body(error, request_id), error.status, None, "application/json")
    sent = {"x-request-id": request_id, **error_headers(error), **(headers or {})}
    response.raw_headers += raw(sent)
    return response


def _json(status: int, value: Json, request_id: str = "") -> Response:
    sent = {"x-request-id": request_id or _request_id()}
    return Response(orjson.dumps(value), status, sent, "application/json")


def _request_id() -> str:
    return "req_" + os.urandom(12).hex()


__all__ = ("CHAT", "Chat", "create")
