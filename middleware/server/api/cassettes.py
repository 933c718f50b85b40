"""The addresses beside the doors that are about cassettes."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from fastapi import FastAPI, Query, Request, Response
from typing_extensions import TypedDict

from adapters.errors import BadRequest
from adapters.protocol import Json
from middleware.cassettes.selection import not_allowed, refusal
from middleware.cli.command import complain
from middleware.doors.endpoint import described
from middleware.server.api.answers import answered, get, post
from middleware.server.api.routes import access, kept_record
from middleware.server.edge import Edge
from middleware.server.last import PATH as LAST
from middleware.server.last import Record
from middleware.server.runtime import Runtime

if TYPE_CHECKING:
    from middleware.cassettes.studio import Studio

PATH = "/v1/x_usetool/cassettes"
_Session = Annotated[str, Query(description="`NAME@SESSION` has counters of its own.")]


class MissedAsk(TypedDict):
    code: str
    message: str
    nearest: int | None
    differences: list[Any]


@described
class CassetteStatus(TypedDict):
    cassette: str
    turns: list[int]
    played: list[int]
    missed: list[MissedAsk]
    unused: list[int]


@described
class OneTurn(TypedDict):
    """A cassette whose turns are one."""

    turn: dict[str, Any]
    routes: dict[str, Any]
    facts: list[dict[str, Any]]
    server: dict[str, Any]
    by: str
    recorded: str


def add_cassette_routes(api: FastAPI) -> None:
    get(api, f"{PATH}/{{name:path}}", CassetteStatus, 400, 401, 403, 422, 500)(show_cassette)
    get(api, f"{LAST}/{{identity}}/cassette", OneTurn, 400, 401, 403, 404, 422, 500)(keep_request)
    post(api, f"{PATH}/{{name:path}}/rewind", CassetteStatus, 400, 401, 403, 422, 500)(rewind)


async def show_cassette(request: Request, name: str, session: _Session = "") -> Response:
    """What a session has played of a cassette, missed, and not used."""
    return answered(_studio(request).status(name, session))


async def keep_request(request: Request, identity: str) -> Response:
    """One of the last requests as a cassette of one turn."""
    edge: Edge = request.app.state.edge
    record = kept_record(request, identity)
    # In a thread, as it would hold every stream; the rest is not, as memories are the loop's.
    await asyncio.to_thread(_load)
    return answered(await _one_turn(record, edge.runtime))


def _load() -> None:
    for name in ("record.last", "setup"):
        import_module(f"middleware.cassettes.{name}")


async def _one_turn(record: Record, runtime: Runtime) -> Json:
    from middleware.cassettes.file import turn_to_json
    from middleware.cassettes.record.last import cassette_of_kept
    from middleware.cassettes.setup import studio_of

    recorder = (runtime.studio or studio_of(runtime.config, complain)).recorder
    recorder.facts = runtime.facts
    cassette = await cassette_of_kept(record, recorder)
    (turn,) = cassette.turns
    head = {name: getattr(cassette, name) for name in OneTurn.__annotations__ if name != "turn"}
    return {**head, "turn": turn_to_json(turn)}


async def rewind(request: Request, name: str, session: _Session = "") -> Response:
    """Begin a session again; `match` and `faults` in the body are for it alone."""
    studio = _studio(request)
    body = await request.body()
    try:
        said = orjson.loads(body) if body else {}
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"The body is not JSON: {error}.", code="invalid_json") from None
    studio.rewind(name, session, said if isinstance(said, dict) else {})
    return answered(studio.status(name, session))


def _studio(request: Request) -> Studio:
    edge: Edge = request.app.state.edge
    runtime = edge.runtime
    if not access(request).cassettes:
        raise not_allowed()
    if runtime.studio is None:
        raise refusal()
    return runtime.studio
