"""A collector of traces on a loopback port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SERVER, CLIENT = 2, 3
ERROR = 2


@dataclass
class Span:
    """One span, as it arrived."""

    name: str
    kind: int
    status: int
    trace: str
    id: str
    parent: str
    began: float
    ended: float
    attributes: dict[str, Any]
    service: str


@dataclass
class Collector:
    url: str = ""
    spans: list[Span] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    raw: bytes = b""
    statuses: list[int] = field(default_factory=list)
    """Of the next answers; 200 after them."""
    free: threading.Event = field(default_factory=threading.Event)
    """Cleared: it takes requests and answers none."""
    asked: threading.Event = field(default_factory=threading.Event)

    def kinds(self, kind: int) -> list[Span]:
        return [span for span in self.spans if span.kind == kind]

    def take(self, path: str, body: bytes) -> int:
        self.asked.set()
        self.free.wait(30)
        status = self.statuses.pop(0) if self.statuses else 200
        if status == 200:
            self.paths.add(path)
            self.raw += body
            self.spans += _spans(body)
        return status


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()
    collector.free.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(collector.take(self.path, body))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing to say."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield collector
    finally:
        collector.free.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _spans(body: bytes) -> Iterator[Span]:
    sent = ExportTraceServiceRequest()
    sent.ParseFromString(body)
    for resource in sent.resource_spans:
        service = _attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    name=span.name,
                    kind=int(span.kind),
                    status=int(span.status.code),
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    began=span.start_time_unix_nano / 1e9,
                    ended=span.end_time_unix_nano / 1e9,
                    attributes=_attributes(span.attributes),
                    service=service,
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    which = value.WhichOneof("value")
    if which == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, which)
