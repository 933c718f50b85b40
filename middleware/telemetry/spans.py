"""Requests as OpenTelemetry's spans, sent by OTLP over HTTP. Loaded where [telemetry] has `otlp`.

Never a text of a request or an answer, never a key.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from adapters.protocol import UpstreamCall
from middleware import __version__
from middleware.telemetry.tally import LEFT
from middleware.telemetry.traces import Told
from middleware.telemetry.vocabulary import Vocabulary

_PATH = "/v1/traces"
_SECONDS = 5.0
"""For one batch, all attempts together."""
_NANO = 1_000_000_000
Attributes = dict[str, AttributeValue]


class SpanSender:
    """The `Exporter`: builds spans through the SDK, which samples and numbers them."""

    def __init__(
        self, address: str, service: str, names: Vocabulary, seconds: float = _SECONDS
    ) -> None:
        # What it logs of each failed attempt is said once, by who asks it.
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        session = requests.Session()
        session.trust_env = False  # as upstreams: the environment's proxies are not for this
        endpoint = address.rstrip("/").removesuffix(_PATH) + _PATH
        self._sender: SpanExporter = OTLPSpanExporter(
            endpoint=endpoint, timeout=seconds, session=session
        )
        self._made = InMemorySpanExporter()
        resource = Resource.create({"service.name": service, "service.version": __version__})
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._made))
        self._tracer = provider.get_tracer("usetool", __version__)
        self._names = names

    def export(self, ended: Sequence[Told]) -> bool:
        for told in ended:
            make_spans(self._tracer, told, self._names)
        spans = self._made.get_finished_spans()
        self._made.clear()
        return not spans or self._sender.export(spans) is SpanExportResult.SUCCESS

    def close(self) -> None:
        self._sender.shutdown()


def make_spans(tracer: Tracer, told: Told, names: Vocabulary) -> None:
    visit, offset = told.visit, told.clock - told.now
    model = names.model(visit.model)
    carrier = {"traceparent": visit.traceparent}
    span = tracer.start_span(
        f"{visit.operation} {model}",
        TraceContextTextMapPropagator().extract(carrier, Context()),
        SpanKind.SERVER,
        _of_request(told, model),
        start_time=_nano(visit.began + offset),
    )
    if visit.error is not None and not visit.gone:
        span.set_attribute("error.type", visit.error.code or "")
        if visit.error.status >= 500:
            span.set_status(Status(StatusCode.ERROR))
    within = set_span_in_context(span, Context())
    for call in visit.journey.calls():
        _make_call(tracer, within, call, told, names)
    span.end(_nano(told.clock))


def _of_request(told: Told, model: str) -> Attributes:
    visit = told.visit
    said: Attributes = {
        "http.request.method": visit.method,
        "url.path": visit.path,
        "http.response.status_code": LEFT if visit.gone else visit.status,
        "gen_ai.operation.name": visit.operation,
        "gen_ai.request.model": model,
        "usetool.request_id": visit.id,
        "usetool.client": visit.client,
        "usetool.route": visit.journey.summary().steps,
    }
    if visit.cost is not None:
        said["usetool.cost"] = visit.cost
    return said


def _make_call(
    tracer: Tracer, within: Context, call: UpstreamCall, told: Told, names: Vocabulary
) -> None:
    offset = told.clock - told.now
    span = tracer.start_span(
        f"{told.visit.operation} {call.model}",
        within,
        SpanKind.CLIENT,
        _of_call(call, told.visit.operation, names),
        start_time=_nano(call.began + offset),
    )
    if call.code != "ok" or call.error is not None:
        code = call.error.code if call.error else None
        span.set_attribute("error.type", call.code if call.code != "ok" else code or "failed")
        span.set_status(Status(StatusCode.ERROR))
    span.end(_nano((call.ended or told.now) + offset))


def _of_call(call: UpstreamCall, operation: str, names: Vocabulary) -> Attributes:
    where = names.provider(call.upstream)
    said: Attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": where.name,
        "gen_ai.request.model": call.model,
        "server.address": where.address,
        "usetool.upstream": call.upstream,
        "usetool.model": names.model(call.place),
    }
    if where.port is not None:
        said["server.port"] = where.port
    if call.key:
        said["usetool.key"] = call.key
    if call.opened is not None:
        said["gen_ai.response.model"] = call.opened.upstream.model
    if call.finish is not None:
        said["gen_ai.response.finish_reasons"] = [call.finish.reason]
        if usage := call.finish.usage:
            said["gen_ai.usage.input_tokens"] = usage.prompt
            said["gen_ai.usage.output_tokens"] = usage.completion
    return said


def _nano(seconds: float) -> int:
    return int(seconds * _NANO)
