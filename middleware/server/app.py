"""The app: what is served under which address."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TextIO

from starlette.types import ASGIApp, Receive, Scope, Send

from adapters.errors import BadRequest, GatewayError
from adapters.protocol import Adapter, ChatRequest
from adapters.wire.http import Transport
from middleware.accounts import Accounts, open_accounts
from middleware.building import Shared
from middleware.cassettes.selection import PLAYING, PREFIX, without_prefix
from middleware.cli.command import complain
from middleware.config import Config
from middleware.doors import DOORS, Door, remembering_doors
from middleware.doors.door import KeepingDoor, ParsedRequest
from middleware.machine.memory import MemoryBoard
from middleware.server.edge import AdmittedRequest, Edge
from middleware.server.kept_answers import Keeping
from middleware.server.last import Records
from middleware.server.log import Log
from middleware.server.runtime import Runtime, build_runtime
from middleware.server.signposts import closed
from middleware.server.transport.late import LateApp
from middleware.state.secret import signing_secret
from middleware.telemetry.families import BUDGET_SPENT, OPEN_REQUESTS
from middleware.telemetry.gauges import one, upstream_gauges
from middleware.telemetry.vitals import Vitals, take_vitals
from middleware.telemetry.vocabulary import Vocabulary

if TYPE_CHECKING:
    from middleware.cassettes.studio import Studio
    from middleware.server.workers.member import Member

# What a page may read of an answer beside what browsers show anyway.
EXPOSED = (
    *("x-request-id", "x-usetool-replay", "x-usetool-warnings", "x-upstream-model"),
    *("x-usetool-model", "x-usetool-route", "x-usetool-usage", "x-usetool-cost"),
    *("x-should-retry", "retry-after"),
)


class Chat(Edge):
    """The hot routes of all doors: an ASGI class, as a framework's request handling would cost as
    much as all the rest.
    """

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return self.handle(scope, receive, send, self._respond)

    async def _respond(self, admitted: AdmittedRequest) -> None:
        runtime, answer = admitted.runtime, admitted.answer
        path = answer.visit.path
        door, keeping = self.doors.at[path], self.doors.keeping.get(path)
        if keeping is not None:
            named = keeping.references(admitted.body, admitted.call.owner)
            answers = admitted.answers(named.model)
            known = answers.knowing_nothing(keeping, named)
            door = keeping = known or await answers.named(keeping, named)
        parsed = self._parsed(admitted, door)
        answer.begin(parsed)
        model = parsed.request.model
        if parsed.ready is not None:
            self._require_known(model, admitted)
            await answer.respond_json(parsed.ready(answer.stamp()))
            return
        mode = admitted.mode and admitted.mode_of(model)
        if admitted.bill.allowance is not None or "replay" in (mode, admitted.mode):
            waiting = admitted.reserve(mode, _most_tokens(parsed.request))
            if waiting is not None:
                await waiting
        if not mode:
            adapter: Adapter = runtime.routes_of(admitted.caller.client).find(model)
        elif mode in PLAYING:
            adapter = await _played(admitted, mode, parsed.request)
        else:
            adapter = _recorded(admitted, mode, parsed.request)
        if keeping is not None:
            adapter = _kept(adapter, admitted, keeping, parsed)
        admitted.body = b""
        # From here on a client that closes its connection cancels the upstream's answer.
        answer.watch()
        try:
            await answer.respond(adapter, parsed)
        except (GatewayError, asyncio.CancelledError):
            answer.note_lost(adapter, parsed.request)
            raise

    def _require_known(self, model: str, admitted: AdmittedRequest) -> None:
        routes = admitted.routes(model)
        if admitted.runtime.studio is None or admitted.selection is None:
            routes.find(model)

    def _parsed(self, admitted: AdmittedRequest, door: Door) -> ParsedRequest:
        runtime = admitted.runtime
        server = runtime.config.server
        repair = server.history_repair
        if admitted.mode == "replay" and runtime.studio and admitted.selection is not None:
            repair = repair or runtime.studio.repairs(admitted.selection)
        return door.parse(admitted.body, repair=repair, strict=server.strict, call=admitted.call)


def _kept(
    adapter: Adapter, admitted: AdmittedRequest, keeping: KeepingDoor, parsed: ParsedRequest
) -> Adapter:
    """The same; its answer is kept, if the client wants that."""
    if not keeping.keeps(parsed):
        return adapter
    answers = admitted.answers(parsed.request.model)
    return Keeping(adapter, answers, keeping, parsed, admitted.answer.stamp())


async def _played(admitted: AdmittedRequest, mode: str, request: ChatRequest) -> Adapter:
    studio, model = admitted.runtime.studio, request.model
    assert studio is not None
    visitor = admitted.visitor(model, mode, request)
    staged = await studio.chat(visitor, request, admitted.routes(model).find)
    admitted.answer.replay(staged.replay, staged.id, staged.created)
    return staged.adapter


def _recorded(admitted: AdmittedRequest, mode: str, request: ChatRequest) -> Adapter:
    studio, model = admitted.runtime.studio, request.model
    assert studio is not None
    visitor = admitted.visitor(model, mode, request)
    adapter = studio.asked(visitor, request, admitted.routes(model).find)
    if mode == "live":
        admitted.answer.replay(studio.label())
    else:  # playing it will cost nothing
        admitted.answer.priced = False
    return adapter


def _most_tokens(request: ChatRequest) -> int | None:
    """How long the client lets the answer be."""
    params = request.params
    found = params.get("max_completion_tokens") or params.get("max_tokens")
    return found if type(found) is int else None


class Gateway:
    """The app, with the chat route in front: Starlette's middleware would cost it a sixth more."""

    def __init__(self, chat: Chat, app: ASGIApp, transport: Transport, vitals: Vitals) -> None:
        self.chat = chat
        self.vitals = vitals
        self.app = app
        self._transport = transport
        self._cross = _cross_origin(self)

    def prepare(self, config: Config) -> Runtime:
        """Build what a config says beside what is served: may take a while, in any thread."""
        before = self.chat.runtime
        return build_runtime(config, self._transport, before, before.studio)

    def use(self, runtime: Runtime) -> None:
        """Serve it from the next request on; those that are being answered keep what they have."""
        self.chat.runtime = runtime
        self.vitals.follow(runtime.config)
        if runtime.studio is not None:
            runtime.studio.follow(runtime.config)
        self.chat.log.follow(runtime.server.log_level)
        self.chat.records.count = runtime.server.keep_last
        self._cross = _cross_origin(self)

    # Servers and tools know an ASGI app by this being a coroutine function.
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if scope["path"].startswith(PREFIX):
                scope = without_prefix(scope)
            hosts = self.chat.runtime.hosts
            if hosts is not None:
                try:
                    hosts.check(scope)
                except BadRequest as error:
                    await self.chat.refused(scope, error)(scope, receive, send)
                    return
        await (self._cross or self.plain)(scope, receive, send)

    # What only hands on is no coroutine: every piece of a stream would pass it.
    def plain(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http":
            return self.app(scope, receive, send)
        chat, path = self.chat, scope["path"]
        door = chat.doors.at.get(path) or chat.doors.owner(path)
        if door is None:
            return self.app(scope, receive, send)
        if door.name not in chat.runtime.config.server.doors:
            return chat.refused(scope, closed(door.name))(scope, receive, send)
        hot = path in chat.doors.at and scope["method"] == "POST"
        return (chat if hot else self.app)(scope, receive, send)


def _cross_origin(gateway: Gateway) -> ASGIApp | None:
    """What lets web pages of other origins call, if the config allows any."""
    origins = gateway.chat.runtime.server.cors_origins
    if not origins:
        return None
    from starlette.middleware.cors import CORSMiddleware

    return CORSMiddleware(
        gateway.plain,
        allow_origins=origins,
        allow_methods=("GET", "POST", "DELETE", "OPTIONS"),
        allow_headers=("*",),
        expose_headers=EXPOSED,
        max_age=86400,
    )


def create(
    config: Config,
    out: TextIO | None = None,
    studio: Studio | None = None,
    member: Member | None = None,
) -> Gateway:
    """Build the app for a config; nothing is connected before the first request.

    The log goes to `out`, else to stderr. A studio that is given records and replays instead of
    the config's own. A member is one of several workers.
    """
    transport = Transport()
    reports = studio is not None  # whoever gave it says what became of it
    if studio is None and config.cassettes is not None:
        from middleware.cassettes.setup import studio_of

        studio = studio_of(config, complain)
    if studio is not None:
        studio.recorder.facts = transport.facts
    out = out or sys.stderr
    log = Log(out, config.server.log_level, readable=out.isatty())

    @asynccontextmanager
    async def lasting() -> AsyncIterator[None]:
        await accounts.begin()
        if (shelf := chat.runtime.shared.tools) is not None:
            await shelf.begin()
        yield
        if (shelf := chat.runtime.shared.tools) is not None:
            await shelf.end()
        if (answers := chat.runtime.answers) is not None:
            await answers.settle()
        await accounts.end()
        if studio is not None:
            for one in await asyncio.to_thread(studio.recorder.finish):
                if one.problem and not reports:
                    complain(one.problem)
        log.flush()
        await transport.close()
        await asyncio.to_thread(vitals.stop)

    accounts, shared = _counting(config, log, member)
    runtime = build_runtime(config, transport, studio=studio, shared=shared)
    records = Records(config.server.keep_last)
    chat = Chat(runtime, log, records, accounts, doors=remembering_doors())
    chat.log_bodies = config.telemetry.log_bodies
    vitals = _vitals(chat, member)
    return Gateway(chat, LateApp(partial(_beside, chat, vitals), lasting), transport, vitals)


def _beside(chat: Chat, vitals: Vitals) -> ASGIApp:
    """What is served beside the doors."""
    from starlette.routing import Route

    from middleware.server.api.app import build_api  # late: it loads FastAPI

    api = build_api(chat, vitals, [door.endpoint for door in DOORS.at.values()])
    api.router.routes[:0] = [Route(path, chat, methods=["POST"]) for path in DOORS.at]
    return api


def _counting(config: Config, log: Log, member: Member | None) -> tuple[Accounts, Shared]:
    """Where it is counted: in this process, or for all workers in one."""
    accounts = open_accounts(config, log.write, None if member is None else member.state)
    board = MemoryBoard() if member is None else member.board
    secret = signing_secret(config, complain)
    return accounts, Shared(board, accounts.state, secret=secret)


def _vitals(chat: Chat, member: Member | None) -> Vitals:
    """Let all that is counted be told, and count from now on."""
    config, accounts, shared = chat.runtime.config, chat.accounts, chat.runtime.shared
    names = Vocabulary(config)
    vitals = take_vitals(names, config.telemetry, complain)
    vitals.state, vitals.ledger = accounts.state, accounts.ledger
    gauges = vitals.tally.gauges
    gauges[OPEN_REQUESTS.name] = one(lambda: chat.open_requests)
    gauges[BUDGET_SPENT.name] = lambda: accounts.spent(chat.runtime.config)
    gauges |= upstream_gauges(lambda: chat.runtime.routes.rings, shared.board, names)
    chat.observers += (*vitals.observers(), *accounts.observers())
    if member is not None:
        member.serves(chat, vitals)
    return vitals
