"""A turn as a part has it: a line, and the bodies as they were. Quick to write, as that happens
beside requests; it becomes what a cassette holds when the session ends.
"""

from __future__ import annotations

from typing import cast

from adapters.protocol import Json, RequestContext
from adapters.wire.capture import CapturedCall, CapturedFailure, CapturedTool
from middleware.cassettes.cassette import RecordedAnswer
from middleware.cassettes.file.bodies import packed
from middleware.cassettes.names import CassetteName
from middleware.cassettes.record.adapter import RawTurn
from middleware.cassettes.record.turns import kept_headers, told_of
from middleware.cassettes.selection import Selection
from middleware.cassettes.visitor import Operation, Visitor

_tool_to_json = CapturedTool._asdict


def lines_of(raw: RawTurn, at: int) -> bytes:
    name, selection, model, _, body, _, call, operation, created, path, own = raw.visitor
    sent, heard = [body, own], []
    for one in raw.calls:
        sent.append(one.body)
        heard.append(b"".join(one.pieces))
    bodies = sent + heard
    said: Json = {
        "id": call.id,
        "at": at,
        "model": model,
        "session": name.session,
        "lane": selection.lane,
        "operation": operation,
        "created": created,
        "path": path,
        "headers": {**call.headers},
        "left": raw.left,
        "calls": [*map(_call_to_json, raw.calls)],
        "answer": told_of(raw),
        "tools": [*map(_tool_to_json, raw.tools)],
        "bodies": [*map(len, bodies)],
    }
    return b"\n".join((packed(said), *bodies))


def _call_to_json(call: CapturedCall) -> Json:
    return {
        "upstream": call.upstream,
        "url": call.url,
        "status": call.status,
        "headers": kept_headers(call),
        "began": call.began,
        "chunks": call.chunks,
        "failure": None if call.failure is None else call.failure._asdict(),
    }


def raw_of(line: Json) -> RawTurn:
    """Undo `lines_of`, but for the events, which are folded by now; the bodies were read."""
    call = RequestContext(line["id"], headers=line["headers"])
    name, selection = CassetteName("", line["session"]), Selection(lane=line["lane"])
    body, own, *bodies = line["bodies"]
    operation = cast(Operation, line["operation"])
    asked = line["model"], "record", body, "", call, operation, line["created"]
    visitor = Visitor(name, selection, *asked, line["path"], own)
    count = len(line["calls"])
    calls = [*map(_call_from_json, line["calls"], bodies[:count], bodies[count:])]
    tools = [CapturedTool(**told) for told in line["tools"]]
    answer = RecordedAnswer(**line["answer"])
    return RawTurn(visitor, calls, left=line["left"], tools=tools, answer=answer)


def _call_from_json(said: Json, sent: bytes, heard: bytes) -> CapturedCall:
    call = CapturedCall(said["upstream"], said["url"], {}, (), None, sent, said["began"])
    call.status, call.answer_headers = said["status"], said["headers"]
    call.pieces, call.chunks = [heard] if said["chunks"] else [], said["chunks"]
    call.failure = said["failure"] and CapturedFailure(**said["failure"])
    return call
