"""A gateway that records into a folder, or plays from it, asked without a network."""

from __future__ import annotations

import asyncio
import copy
import io
import resource
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson
from starlette.types import Message

from adapters.leaf import Leaf
from adapters.protocol import Json, RequestContext
from adapters.wire.capture import CapturedCall
from adapters.wire.http import Transport
from middleware import config
from middleware.cassettes.cassette import Cassette, Mode
from middleware.cassettes.file import read_cassette
from middleware.cassettes.names import CassetteName
from middleware.cassettes.record.adapter import RawTurn
from middleware.cassettes.record.finish import Finished, RecorderSettings
from middleware.cassettes.record.recorder import Recorder
from middleware.cassettes.secrets import Blotter
from middleware.cassettes.selection import Selection
from middleware.cassettes.setup import RunOptions, studio_of
from middleware.cassettes.studio import Studio
from middleware.cassettes.visitor import Visitor
from middleware.config import Config
from middleware.routing import Routes
from middleware.server.app import Chat, Gateway, create
from middleware.server.embeddings import Embeddings
from middleware.server.last import Records
from middleware.server.log import Log
from middleware.server.runtime import build_runtime
from middleware.telemetry.vitals import take_vitals
from middleware.telemetry.vocabulary import Vocabulary
from middleware.wrappers.route import Route
from tests.support.adapters import PATIENCE
from tests.support.door import Door, Heard

REPLAYED = '[cassettes]\nmode = "replay"\n'
"""What `usetool replay` has for a config."""


@dataclass
class Desk:
    """One session of a gateway with cassettes."""

    door: Door
    studio: Studio
    said: list[str]
    """What people were told."""

    async def ask(self, body: Json, name: str = "", **headers: str) -> Heard:
        """Ask for a chat; `name` is the cassette's, headers are ours without their beginning."""
        named = {"cassette": name, **headers} if name else headers
        sent = [(f"x-usetool-{header}", value) for header, value in named.items()]
        return await self.door.ask(body, headers=sent)

    async def asks(self, bodies: Sequence[Json], name: str = "") -> list[Heard]:
        return [await self.ask(body, name) for body in bodies]

    async def post(self, path: str, body: Json | bytes = b"", **headers: str) -> Heard:
        return await self.door.ask(body, path=path, headers=[*headers.items()])

    async def get(self, path: str, **headers: str) -> Heard:
        return await self.door.ask(path=path, method="GET", headers=[*headers.items()])

    def put(self, models: Mapping[str, Leaf], text: str) -> None:
        """Let these answer for the models of a config, which is not built."""
        app = self.door.app
        routes = Routes({name: Route(leaf, name, leaf=leaf) for name, leaf in models.items()}, ())
        app.use(replace(app.chat.runtime, routes=routes, config=parsed(text)))

    def finish(self) -> list[Finished]:
        """End the session; what came of its cassettes."""
        return self.studio.recorder.finish()


def parsed(text: str) -> Config:
    usual = "" if "[recall]" in text else '[recall]\nstore = "off"\n'
    return config.parse(usual + text, environment={})


@asynccontextmanager
async def desk(folder: Path, text: str, mode: Mode | None, **options: Any) -> AsyncIterator[Desk]:
    """Serve chats and embeddings over a folder of cassettes; without a mode the config's counts.

    What is beside the doors takes longer to make than most tests take.
    """
    read, said = parsed(text), list[str]()
    studio = studio_of(read, said.append, RunOptions(mode=mode, folder=str(folder), **options))
    log, transport = io.StringIO(), Transport()
    studio.recorder.facts = transport.facts
    runtime = build_runtime(read, transport, studio=studio)
    chat = Chat(runtime, Log(log, "debug", readable=False), Records(0))
    embeddings = Embeddings(chat)
    vitals = take_vitals(Vocabulary(read), read.telemetry, said.append)
    try:
        yield Desk(Door(Gateway(chat, embeddings, transport, vitals), log), studio, said)
    finally:
        await asyncio.to_thread(studio.recorder.finish)
        await transport.close()


@asynccontextmanager
async def whole_desk(
    folder: Path, text: str, mode: Mode | None, **options: Any
) -> AsyncIterator[Desk]:
    """The same with all that a gateway serves."""
    read, said = parsed(text), list[str]()
    studio = studio_of(read, said.append, RunOptions(mode=mode, folder=str(folder), **options))
    log = io.StringIO()
    app = create(read, log, studio)
    async with lifespan(app):
        yield Desk(Door(app, log), studio, said)


@asynccontextmanager
async def lifespan(app: Gateway) -> AsyncIterator[None]:
    """Start an app and stop it, as servers do."""
    heard: asyncio.Queue[Message] = asyncio.Queue()
    told: asyncio.Queue[Message] = asyncio.Queue()
    task = asyncio.create_task(app({"type": "lifespan", "state": {}}, heard.get, told.put))
    heard.put_nowait({"type": "lifespan.startup"})
    answer = await asyncio.wait_for(told.get(), PATIENCE)
    assert answer["type"] == "lifespan.startup.complete", answer
    try:
        yield
    finally:
        heard.put_nowait({"type": "lifespan.shutdown"})
        await asyncio.wait_for(task, PATIENCE)


@contextmanager
def full_disk(size: int = 100) -> Iterator[None]:
    """No file of this process grows beyond so many bytes."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def cassette(folder: Path, name: str = "default") -> Cassette:
    return read_cassette(folder / f"{name}.yaml")


def asking(text: str, model: str = "m", **more: Any) -> Json:
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def streamed(body: Json) -> Json:
    """The same ask for a stream, with what it cost."""
    return {**body, "stream": True, "stream_options": {"include_usage": True}}


def pieces(heard: Heard) -> list[bytes]:
    """What the server was given to send, write by write."""
    return [message["body"] for message in heard.sent[1:]]


def same_writes(again: Heard, live: Heard) -> bool:
    """Whether the same bytes came, and ends of writes where there were some live.

    Live, what came at once is written at once; a recording has it as it was sent.
    """
    ends, were = ({*accumulate(map(len, pieces(heard)))} for heard in (again, live))
    return again.body == live.body and were <= ends


def folded(heard: Heard) -> Json:
    """What a client makes of an answer, whichever way it came."""
    if heard.status != 200:
        return {"status": heard.status, "error": heard.json()["error"]}
    if not heard.headers["content-type"].startswith("text/event-stream"):
        whole = heard.json()
        (choice,) = whole["choices"]
        message = {name: value for name, value in choice["message"].items() if value}
        return {**message, "reason": choice["finish_reason"], "usage": whole.get("usage")}
    return _fold(heard)


def _fold(heard: Heard) -> Json:
    found: Json = {"reason": None, "usage": None}
    for frame in heard.frames():
        if not frame.startswith(b"data: {"):
            continue
        chunk = orjson.loads(frame.removeprefix(b"data: "))
        if "error" in chunk:
            return {**found, "error": chunk["error"]}
        found["usage"] = chunk.get("usage") or found["usage"]
        for choice in chunk["choices"]:
            found["reason"] = choice["finish_reason"] or found["reason"]
            for name, value in choice["delta"].items():
                _add(found, name, value)
    return found


def _add(found: Json, name: str, value: Any) -> None:
    if name == "tool_calls":
        calls = found.setdefault(name, [])
        for piece in value:
            if piece["index"] == len(calls):
                whole = copy.deepcopy(piece)
                del whole["index"]
                calls.append(whole)
            else:
                told = calls[piece["index"]]["function"]
                told["arguments"] += piece["function"]["arguments"]
    elif name == "role":
        found[name] = value
    elif value:
        found[name] = found[name] + value if name in found else value


def raw(number: int, text: str = "hi", size: int = 0, key: str = "", name: str = "t") -> RawTurn:
    call = CapturedCall("up", "http://up.test/x", {}, (), None, b"{}")
    call.pieces = [bytes(size)]
    context = RequestContext(f"req_{number}")
    body = orjson.dumps(asking(text))
    asked = "m", "record", body, key, context
    visitor = Visitor(CassetteName(name), Selection(), *asked, created=7)
    return RawTurn(visitor, [call] if size else [])


class Desktop:
    """A recorder into a folder, and what it told people."""

    def __init__(
        self,
        folder: Path,
        secrets: dict[str, str] | None = None,
        path: Callable[[str], Path] | None = None,
        routes: Callable[[str], Iterable[tuple[str, Json]]] = lambda model: (),
    ) -> None:
        self.said: list[str] = []
        self.folder = folder
        settings = RecorderSettings(path or (lambda name: folder / f"{name}.yaml"))
        # Its blotter knows no name of a secret, so it overlooks what has no shape.
        self.recorder = Recorder(settings, Blotter({}), secrets or {}, routes, self.said.append)


def put_together(recorder: Recorder, turns: Iterable[RawTurn]) -> None:
    """Put turns as requests of one moment do, and wait until they are told."""

    async def go() -> None:
        for turn in turns:
            recorder.put(turn)
        await asyncio.sleep(2 * recorder.gathers)

    asyncio.run(go())


def texts_below(folder: Path) -> Iterator[bytes]:
    return (path.read_bytes() for path in folder.rglob("*") if path.is_file())
