"""Cassettes: what an upstream said once, kept so that a person can read it and a test can cut it.

Bodies are stored parsed: JSON as structures, streams as lists of their events or lines, from which
the bytes come back exactly. Of the headers only those on a list are kept.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import vcr
import yaml

from adapters.kind import known_kind
from adapters.protocol import Adapter, ChatRequest, Json, RequestContext
from adapters.shared.history import settle
from adapters.wire.http import Link, Transport
from adapters.wire.transport.library import LibraryClient
from tests.support.cases import CASES, REASONING
from tests.support.fold import Answer, fold, run
from tests.support.paths import ROOT
from tests.support.upstreams.tape import Tape

FOLDER = ROOT / "tests/cassettes"
# What may be kept of a request and of an answer; all else is volatile or secret.
KEPT = (
    "anthropic-beta",
    "anthropic-version",
    "content-type",
    "request-id",
    "retry-after",
    "x-ds-trace-id",
    "x-request-id",
)
STREAMS: Mapping[str, tuple[str, str]] = {
    "text/event-stream": ("events", "\n\n"),
    "application/x-ndjson": ("lines", "\n"),
}


@dataclass(frozen=True)
class Upstream:
    """A folder of cassettes: the adapter of that name, and how its upstream is asked."""

    name: str
    model: str
    auth: str = "bearer"
    overload: int = 503
    """The status that says it has too much to do."""
    reasoning: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The model and the parameters of the cases that want thoughts."""
    folder: str = ""
    """Where its cassettes are, if not in the folder of its name."""

    @property
    def url(self) -> str:
        """What stands in the cassettes for its address."""
        return f"http://{self.name}.test"

    @property
    def place(self) -> str:
        return self.folder or self.name

    @property
    def cases(self) -> list[str]:
        return sorted(path.stem for path in (FOLDER / self.place).glob("*.yaml"))

    def path(self, case: str) -> Path:
        return FOLDER / self.place / f"{case}.yaml"

    def link(self, url: str = "", key: str = "k") -> Link:
        opens = (
            {"x-api-key": key} if self.auth == "x-api-key" else {"authorization": f"Bearer {key}"}
        )
        headers = {"content-type": "application/json", **opens}
        return Link(
            self.name,
            url or self.url,
            Transport(LibraryClient()),
            headers,
            secrets=(key,) if url else (),
        )

    def connect(self, link: Link) -> Adapter:
        kind = known_kind(self.name)
        assert kind.connect
        return kind.connect(kind.settings(link))

    def request(self, case: str, streamed: bool) -> ChatRequest:
        """Build what the door would hand to the adapter."""
        special = self.reasoning if case in REASONING else {}
        asked = {**copy.deepcopy(CASES[case]), **special.get("params", {})}
        messages, _ = settle(asked.pop("messages"))
        prompt = messages[0]["content"].replace("{overload}", str(self.overload))
        return ChatRequest(
            model=special.get("model", self.model),
            messages=({**messages[0], "content": prompt}, *messages[1:]),
            tools=tuple(asked.pop("tools", ())),
            params=asked,
            call=RequestContext(id="req_recorded", streamed=streamed),
        )


def upstreams() -> list[Upstream]:
    return [
        Upstream(name=path.parent.name, **tomllib.loads(path.read_text()))
        for path in sorted(FOLDER.glob("*/upstream.toml"))
    ]


REAL = Upstream("ollama", "smollm2:tools", folder="ollama/real")
"""An Ollama 0.12.6 that runs SmolLM2 with the Modelfile beside its cassettes: it says real things,
and foolish ones, so it is asked only a few of the cases.
"""
REAL_CASES = ("parallel_calls", "structured_output")


# The format ------------------------------------------------------------------------------------


def parsed(text: str, content_type: str) -> Json:
    """Take a body apart so that it can be read."""
    if content_type in STREAMS:
        name, separator = STREAMS[content_type]
        return {name: text.split(separator)}
    try:
        return {"json": orjson.loads(text)}
    except orjson.JSONDecodeError:
        return {"text": text}


def joined(body: Json) -> str:
    """Undo `parsed`."""
    ((name, value),) = body.items()
    for kind, separator in STREAMS.values():
        if name == kind:
            return separator.join(value)
    return value if name == "text" else orjson.dumps(value).decode()


_Dumper: Any = type("_Dumper", (yaml.SafeDumper,), {})
_Dumper.add_representer(
    str,  # text of several lines as lines
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


class Parsed:
    """How vcrpy writes and reads a cassette."""

    @staticmethod
    def serialize(cassette: Json) -> str:
        for interaction in cassette["interactions"]:
            request, response = interaction["request"], interaction["response"]
            content_type = response["headers"].get("content-type", [""])[0].partition(";")[0]
            request["body"] = parsed(request["body"] or "", "application/json")
            response["body"] = parsed(response["body"]["string"], content_type)
        text: str = yaml.dump(
            cassette, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1 << 20
        )
        return text

    @staticmethod
    def deserialize(text: str) -> Json:
        cassette: Json = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        for interaction in cassette["interactions"]:
            request, response = interaction["request"], interaction["response"]
            request["body"] = joined(request["body"])
            response["body"] = {"string": joined(response["body"])}
        return cassette


def tape_recorder(upstream: Upstream, mode: str, url: str = "") -> vcr.VCR:
    """Record from `url`, or play without a network; what is sent must be what was sent."""

    def scrub_request(request: Any) -> Any:
        request.headers = _kept(request.headers)
        if url:
            request.uri = request.uri.replace(url.rstrip("/"), upstream.url, 1)
        return request

    def scrub_response(response: Json) -> Json:
        body = {"string": _shown(response["body"]["string"])}
        return {**response, "headers": _kept(response["headers"]), "body": body}

    recorder = vcr.VCR(
        record_mode=mode,
        serializer="parsed",
        match_on=("method", "uri", "headers", "said"),
        before_record_request=scrub_request,
        before_record_response=scrub_response,
        decode_compressed_response=True,
    )
    recorder.register_serializer("parsed", Parsed)
    recorder.register_matcher("said", same_body)
    return recorder


def _kept(headers: Mapping[str, Any]) -> Json:
    return {name.lower(): headers[name] for name in sorted(headers) if name.lower() in KEPT}


def _shown(body: bytes) -> bytes:
    """What an Ollama shows of a model, without its tensors and where it lies on the disk."""
    if not body.startswith(b'{"modelfile":'):
        return body
    shown = orjson.loads(body)
    kept = {name: shown[name] for name in ("template", "model_info", "capabilities")}
    return orjson.dumps({**kept, "details": {**shown["details"], "parent_model": ""}})


def same_body(sent: Any, recorded: Any) -> None:
    now, then = orjson.loads(sent.body or b"null"), orjson.loads(recorded.body or b"null")
    assert now == then, f"what is sent is not what was recorded:\n{now}\n{then}"


# Playing ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Played:
    """One case, asked for plainly and as a stream."""

    plain: Answer
    streamed: Answer

    def in_mode(self, streamed: bool) -> Answer:
        return self.streamed if streamed else self.plain


async def ask_twice(upstream: Upstream, link: Link, case: str) -> Played:
    adapter = upstream.connect(link)
    try:
        answers = [
            await fold(adapter.stream(upstream.request(case, mode))) for mode in (False, True)
        ]
    finally:
        await link.transport.close()
    return Played(*answers)


def play_once(upstream: Upstream, case: str, path: Path) -> Played:
    """Play a cassette through the adapter and the transport, all of it."""
    recorder = tape_recorder(upstream, "none")
    with recorder.use_cassette(str(path)) as cassette:
        played = run(ask_twice(upstream, upstream.link(), case))
    assert cassette.all_played, f"{path.name} of {upstream.name} was played only in part"
    return played


@cache
def play(name: str, case: str) -> Played:
    (upstream,) = [found for found in upstreams() if found.name == name]
    return play_once(upstream, case, upstream.path(case))


@dataclass(frozen=True)
class Interaction:
    url: str
    asked: Any
    status: int
    headers: Mapping[str, str]
    body: bytes


@cache
def interactions(path: Path) -> tuple[Interaction, ...]:
    return tuple(
        Interaction(
            url=found["request"]["uri"],
            asked=orjson.loads(found["request"]["body"]),
            status=found["response"]["status"]["code"],
            headers={name: said[0] for name, said in found["response"]["headers"].items()},
            body=found["response"]["body"]["string"].encode(),
        )
        for found in Parsed.deserialize(path.read_text())["interactions"]
    )


@dataclass(frozen=True)
class Stream:
    """The recorded bytes of one answer, and the adapter that reads them."""

    upstream: Upstream
    case: str
    streamed: bool = True

    @property
    def body(self) -> bytes:
        return self._chat.body

    @property
    def _chat(self) -> Interaction:
        return interactions(self.upstream.path(self.case))[-1 if self.streamed else -2]

    def read(self, deliveries: Sequence[list[bytes]], *, keep: bool = False) -> list[Answer]:
        """Read the same stream once for each way it is delivered."""
        small = interactions(self.upstream.path(self.case))[:-2]
        link = Tape(
            self.upstream.name,
            self.upstream.url,
            Transport(),
            deliveries=iter(deliveries),
            answer_headers=self._chat.headers,
            answers={found.url.removeprefix(self.upstream.url): found.body for found in small},
        )
        adapter = self.upstream.connect(link)
        request = self.upstream.request(self.case, self.streamed)

        async def whole() -> list[Answer]:
            return [await fold(adapter.stream(request), keep=keep) for _ in deliveries]

        return run(whole())


def streams() -> list[Stream]:
    return [
        Stream(upstream, case)
        for upstream in upstreams()
        for case in upstream.cases
        if interactions(upstream.path(case))[-1].status == 200
    ]
