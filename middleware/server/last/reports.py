"""A kept request as people look at it: summary, whole, and the commands that repeat it."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping
from secrets import token_hex

from adapters.protocol import Json
from adapters.wire.capture import MOST, CapturedCall
from middleware.server.last.records import Record, Records
from middleware.server.last.scrubbing import Scrubber
from middleware.server.terminal import visible

_STEERS = re.compile(r'[\\"`]|\$(?![A-Za-z_])')
_BACKSLASHED = r"\\\g<0>"
# What curl says by itself.
_OWN = frozenset({"accept-encoding", "user-agent"})


def summaries(records: Records, owner: str | None) -> list[tuple[float, Json]]:
    """When each began, and what it was; the newest first."""
    return [(one.at, summary(one)) for one in records.of(owner)]


def summary(record: Record) -> Json:
    visit = record.visit
    said: Json = {
        "id": visit.id,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.at)),
        "model": visit.model,
        "method": visit.method,
        "path": visit.path,
        "status": visit.status or None,
        "seconds": None if record.seconds is None else round(record.seconds, 3),
        "stream": visit.streamed,
        "upstreams": [call.upstream for call in record.calls],
    }
    if visit.finish is not None:
        said["finish"] = visit.finish.reason
    if visit.error is not None:
        said["error"] = visit.error.code
    return said


def told(record: Record, scrubber: Scrubber, address: str, asks_key: bool) -> Json:
    """All of it, without a secret."""
    visit = record.visit
    body = record.body.decode("utf-8", "replace")
    headers = {"content-type": "application/json"}
    if asks_key:
        headers["authorization"] = "Bearer $USETOOL_KEY"
    said = summary(record)
    if visit.error is not None:
        said["message"] = scrubber.text(visit.error.message)
    if visit.first_event is not None:
        said["first_event"] = round(visit.first_event - visit.began, 3)
    return said | {
        "receipt": [note._asdict() for note in visit.receipt],
        "body": scrubber.text(body),
        # A path that nobody looked for is a stranger's text, and none for a shell.
        "curl": curl(f"{address}{visit.path}", headers, scrubber.text(body)) if body else "",
        "calls": [_call(call, scrubber) for call in record.calls],
    }


def _call(call: CapturedCall, scrubber: Scrubber) -> Json:
    body = scrubber.text(call.body.decode("utf-8", "replace"), call.secrets)
    answer = b"".join(call.pieces).decode("utf-8", "replace")
    headers = scrubber.headers(call.headers)
    proxy = scrubber.named(call.proxy) if call.proxy else ""
    url = scrubber.text(call.url)
    return {
        "upstream": call.upstream,
        "url": url,
        "status": call.status or None,
        "headers_after": _since(call, call.answered),
        "ended_after": _since(call, call.ended),
        "body": body,
        "answer": scrubber.text(answer, call.secrets),
        "answer_bytes": call.size,
        "answer_cut": call.size > MOST and sum(map(len, call.pieces)) < call.size,
        "curl": curl(url, headers, body, proxy) if url.startswith("http") else "",
    }


def _since(call: CapturedCall, then: float | None) -> float | None:
    return None if then is None else round(then - call.began, 3)


def curl(url: str, headers: Mapping[str, str], body: str, proxy: str = "") -> str:
    """A command for a shell; secrets come from its variables.

    Nobody knows the end mark of the body before it is written, so no body can hold it: what a
    client sent stays data, whatever it says.
    """
    said = [
        f"-H {_quoted(f'{name}: {value}')}" for name, value in headers.items() if name not in _OWN
    ]
    if proxy:
        said.insert(0, f"-x {_quoted(proxy)}")
    end = f"USETOOL_{token_hex(16)}"
    lines = [f"curl -sS -N {shlex.quote(url)}", *said, f"--data-binary @- <<'{end}'"]
    return visible(" \\\n  ".join(lines) + f"\n{body}\n{end}")


def _quoted(value: str) -> str:
    """In double quotes, where nothing but a variable's name is the shell's."""
    return f'"{_STEERS.sub(_BACKSLASHED, value)}"'
