"""Where a gateway's requests meet its cassettes: played, recorded, or passed by."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

import orjson

from adapters.errors import GatewayError
from adapters.protocol import (
    Adapter,
    ChatRequest,
    Finish,
    Json,
    Opened,
    RequestContext,
    TextDelta,
    Upstream,
)
from middleware.cassettes.asks import had_functions
from middleware.cassettes.cassette import Mode
from middleware.cassettes.errors import CassetteMiss, CassetteRefused
from middleware.cassettes.match import canonical, canonical_embeddings
from middleware.cassettes.names import CassetteName, read_name
from middleware.cassettes.record.adapter import RecordingAdapter, recorded_vectors
from middleware.cassettes.record.parts import lenient
from middleware.cassettes.record.recorder import Recorder
from middleware.cassettes.replay import Performance, Performer
from middleware.cassettes.replay.playback import AskForm, Missed
from middleware.cassettes.replay.player import Player, Question, Staged
from middleware.cassettes.routes import reading_of, routes_of
from middleware.cassettes.secrets import Blotter
from middleware.cassettes.selection import PLAYING, Selection
from middleware.cassettes.visitor import Visitor
from middleware.config import Config
from middleware.wrappers.recall import MemoryStore

_PROBE, _PROBE_TOKENS = "ping", 5
"""Dify's question when a model is saved."""
RECORDING = frozenset({"record", "auto", "refresh"})
_NOT_THERE = ("cassette_missing", "cassette_miss", "cassette_exhausted")
_PONG = (Opened((), Upstream("recorded")), TextDelta("pong"), Finish("stop"))
Finding = Callable[[str], Adapter]
"""Gives what answers for a model."""


@dataclass(frozen=True, slots=True)
class StudioSettings:
    """What the config or a command says of modes."""

    mode: Mode = "off"
    name: str = "default"
    """For requests that name none."""
    allow: Sequence[str] = ("replay",)
    models: Mapping[str, str] = field(default_factory=dict)
    """Modes of single models by their line in the config; `live` passes one by."""


@dataclass(slots=True)
class Studio:
    settings: StudioSettings
    player: Player
    recorder: Recorder
    configured: Callable[[Config], StudioSettings]
    """What a changed config says of modes."""
    shapes: Blotter = field(default_factory=lambda: Blotter({}))
    recorded: set[str] = field(default_factory=set)
    """Names of cassettes that may be written."""
    answers: MemoryStore = field(default_factory=MemoryStore)
    """Those of replays, which clients name later on."""
    asks: int = 0
    """Requests that were no probes."""
    usual: CassetteName = field(init=False)
    """Of requests that name none."""
    silent: Selection | None = field(init=False)
    """Of requests that say nothing of cassettes; None: they have none."""

    def __post_init__(self) -> None:
        self._heed(self.settings)

    def follow(self, config: Config) -> None:
        """Heed a changed config from the next request on; folders and secrets take a restart."""
        self._heed(self.configured(config))
        self.recorder.routes = partial(routes_of, config)
        before = self.recorder.settings  # what was asked under it may not be written yet
        server = lenient(before.server, reading_of(config))
        self.recorder.settings = replace(before, server=server)

    def _heed(self, settings: StudioSettings) -> None:
        """What is the same for nearly all requests is made once."""
        self.settings, self.usual = settings, CassetteName(settings.name)
        rests = settings.mode == "off" and not settings.models
        self.silent = None if rests else Selection()

    @property
    def told(self) -> str:
        """The mode, and the cassette of requests that name none; empty where it is off."""
        mode, name = self.settings.mode, self.settings.name
        return "" if mode == "off" else f"{mode} {name}, where a request names no other"

    def mode(self, selection: Selection, line: str = "") -> str:
        """`live` or a mode: the request's own before the model's before the usual."""
        settings, wanted = self.settings, selection.mode
        usual: str = settings.mode
        if settings.models:
            usual = settings.models.get(line) or usual
        if wanted is None or wanted == usual:
            return usual
        if wanted not in self.settings.allow:
            allowed = ", ".join(self.settings.allow) or "no other"
            raise CassetteRefused(
                f"x-usetool-mode asks for '{wanted}', but here the mode is '{usual}', and a "
                f"request may choose {allowed} (`allow` under [cassettes] in the config).",
                code="mode_not_allowed",
                status=403,
            )
        return wanted

    def status(self, name: str, session: str) -> Json:
        """What a session has had of a cassette."""
        found = self.player.shelf.session(self._session(name, session))
        turns = [turn.number for turn in found.playback.turns]
        played = {*found.session.played}
        return {
            "cassette": name,
            "turns": turns,
            "played": [turn for turn in turns if turn in played],
            "missed": [_told(miss) for miss in found.session.missed],
            "unused": [turn for turn in turns if turn not in played],
        }

    def rewind(self, name: str, session: str, said: Json) -> None:
        whose = self._session(name, session)
        self.player.shelf.begin(whose, said.get("match"), said.get("faults"))

    def _session(self, name: str, session: str) -> CassetteName:
        return read_name(f"{name}@{session}" if session else name)

    def secret(self, selection: Selection) -> bytes:
        """Of a replay, for what its clients carry: no secret, and the same everywhere."""
        return sha256(f"cassette {(selection.name or self.usual).name}".encode()).digest()

    def recorded_models(self, selection: Selection) -> list[Json] | None:
        """The models of a cassette that is replayed; None: the config's are asked."""
        if self.mode(selection) != "replay":
            return None
        try:
            cassette = self.player.shelf.load((selection.name or self.usual).name).cassette
        except CassetteMiss:
            return None
        routes: Json = {turn.model: {"name": turn.model} for turn in cassette.turns}
        routes |= cassette.routes
        return [
            {
                "id": name,
                "object": "model",
                "created": 0,
                "owned_by": route.get("upstream", "usetool"),
                "x_usetool": {"available": True, "upstream": route.get("upstream", "")},
            }
            for name, route in routes.items()
            if route.keys() & {"name", "pipeline", "choices"}
        ]

    def repairs(self, selection: Selection) -> bool:
        """Whether histories are mended because it was so when what is played was recorded."""
        try:
            found = self.player.shelf.session(selection.name or self.usual)
        except CassetteMiss:
            return False
        return found.playback.cassette.server.get("history_repair") is True

    async def chat(self, visitor: Visitor, request: ChatRequest, find: Finding) -> Staged:
        """What answers where a recording may."""
        if _is_probe(request):
            return Staged(Performer(Performance.of(_PONG)))
        self.asks += 1
        form = AskForm("chat", self._form(visitor, request))
        played = await self._played(visitor, form)
        return Staged(self._recording(visitor, find)) if played is None else played

    def asked(self, visitor: Visitor, request: ChatRequest, find: Finding) -> Adapter:
        """What answers where no recording may."""
        if visitor.mode not in RECORDING:
            self.asks += 1
            return find(visitor.model)
        if _is_probe(request):
            return find(visitor.model)
        self.asks += 1
        return self._recording(visitor, find)

    def label(self) -> str:
        """What is said of an answer for which none is wanted."""
        return "live" if self.settings.mode == "replay" else ""

    async def embeddings(
        self, visitor: Visitor, live: Callable[[RequestContext], Awaitable[Json]]
    ) -> tuple[Json, str]:
        """Vectors, and what is said of where they come from."""
        visitor, mode = visitor._replace(operation="embeddings"), visitor.mode
        self.asks += 1
        if mode in PLAYING:
            body = orjson.loads(visitor.body)
            form = AskForm("embeddings", self._blotted(canonical_embeddings(body)))
            if (played := await self._played(visitor, form)) is not None:
                performance = played.performance
                if performance.error is not None:
                    raise performance.error
                return performance.body or {}, played.replay
        if mode in RECORDING:
            if visitor.name.name not in self.recorded:
                self._require_file(visitor.name.name)
            return await recorded_vectors(self.recorder, visitor, live), ""
        return await live(visitor.call), self.label() if mode == "live" else ""

    def _recording(self, visitor: Visitor, find: Finding) -> Adapter:
        if visitor.name.name not in self.recorded:
            self._require_file(visitor.name.name)
        try:
            adapter = find(visitor.model)
        except GatewayError as error:  # a model that is not there is an answer too
            adapter = Performer(Performance(error=error))
        return RecordingAdapter(adapter, self.recorder, visitor)

    def _require_file(self, name: str) -> None:
        """Raise if a cassette of this name cannot be written."""
        self.player.shelf.path(name)
        self.recorded.add(name)

    def _blotted(self, form: Json) -> Json:
        """As a recorder would have written it, who knew no secret by its name."""
        return self.shapes.turn().form(form)

    def _form(self, visitor: Visitor, request: ChatRequest) -> Json:
        return self._blotted(canonical(request, had_functions(visitor.body)))

    async def _played(self, visitor: Visitor, form: AskForm) -> Staged | None:
        """The recorded answer; None where it is asked live."""
        mode = visitor.mode
        try:
            return await self.player.play(
                Question(visitor.name, form, visitor.model, visitor.selection, mode != "auto")
            )
        except CassetteMiss as error:
            if mode == "auto" and error.code in _NOT_THERE:
                return None
            raise


def _told(missed: Missed) -> Json:
    told = missed.told
    differences = [
        {"path": one.path, "recorded": one.recorded, "now": one.now} for one in told.differences
    ]
    return {
        "code": missed.code,
        "message": told.message,
        "nearest": told.nearest,
        "differences": differences,
    }


def _is_probe(request: ChatRequest) -> bool:
    tokens = request.params.get("max_tokens") or request.params.get("max_completion_tokens")
    if tokens != _PROBE_TOKENS or request.tools or len(request.messages) != 1:
        return False
    return bool(request.messages[0].get("content") == _PROBE)
