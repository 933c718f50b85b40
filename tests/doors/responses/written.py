"""Bodies read, and answers written as events and as a whole, as the tests of this door share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from adapters.protocol import Event, Json, Opened, RequestContext, Upstream
from middleware.doors.door import KeptAnswer, Stamp
from middleware.doors.responses.parse import ParsedResponse, parse
from middleware.doors.responses.state import Kept

SECRET = b"secret"
STAMP = Stamp("req_" + "ab" * 12, 1763456400, lambda: 1763456400.0)
OPENED = Opened((), Upstream("up"))


def item(role: str, text: str) -> Json:
    return {"role": role, "content": text}


def call(identity: str = "call_1", name: str = "look", arguments: str = "{}", **more: Any) -> Json:
    said = {"call_id": identity, "name": name, "arguments": arguments}
    return {"type": "function_call", **said, **more}


def output(identity: str = "call_1", said: Any = "seen") -> Json:
    return {"type": "function_call_output", "call_id": identity, "output": said}


def read(
    given: Any = "hi", answers: dict[str, KeptAnswer] | None = None, **fields: Any
) -> ParsedResponse:
    how = {name: fields.pop(name) for name in ("repair", "strict") if name in fields}
    body = orjson.dumps({"model": "m", "input": given, **fields})
    call = RequestContext(secret=SECRET)
    return parse(body, call=call, kept=Kept(answers or {}, keeps=True), **how)


def messages(*items: Json, **fields: Any) -> list[Json]:
    return [*read([*items], **fields).request.messages]


def codes(parsed: ParsedResponse) -> list[tuple[str, str]]:
    return [(note.code, note.field) for note in parsed.receipt]


def frames(written: bytes) -> list[Json]:
    """The events of a stream or of a piece of one: each is named twice."""
    found = []
    for frame in written.split(b"\n\n")[:-1]:
        named, data = frame.split(b"\n")
        said = orjson.loads(data.removeprefix(b"data: "))
        assert named == b"event: " + said["type"].encode()
        found.append(said)
    return found


def streamed(*events: Event, cuts: Sequence[int] = (), **fields: Any) -> list[Json]:
    """The whole stream; `cuts` are where one batch ends and the next begins."""
    writer = read(stream=True, **fields).stream(STAMP)
    everything = [OPENED, *events]
    ends = sorted({*cuts, len(everything)})
    batches = [everything[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return frames(b"".join(writer.render(batch) for batch in batches))


def whole(*events: Event, **fields: Any) -> Json:
    answer: Json = orjson.loads(read(**fields).fold(STAMP, [OPENED, *events]))
    return answer


def kinds(events: Sequence[Json]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]
