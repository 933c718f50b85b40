"""The gateway answers as `/openapi.json` says: asked at random, in process, by schemathesis."""

from __future__ import annotations

import io
from collections import Counter
from functools import cache
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.transport import Response
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from middleware import config
from middleware.server.app import create
from tests.server.app.test_paths import ROUTES

CONFIG = """
[server]
hosts = ["*"]
[recall]
store = "off"
[upstreams.script]
kind = "scripted"
[models.demo]
upstream = "script"
"""
EXAMPLES = 20
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
BODIES = (
    "POST /v1/chat/completions",
    "POST /v1/embeddings",
    "POST /api/chat",
    "POST /api/generate",
)
ADDRESSES = (
    *BODIES,
    "GET /v1/models",
    "GET /v1/models/{model}",
    "GET /v1/x_usetool/last",
    "GET /v1/x_usetool/last/{identity}",
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "GET /v1/tools",
    "GET /v1/usage",
    "POST /api/embed",
    "POST /api/embeddings",
    "GET /api/version",
    "GET /api/tags",
    "GET /api/ps",
    "POST /api/show",
    "POST /api/pull",
)
PAGES = {"/", "/docs", "/openapi.json"}


@cache
def described() -> BaseSchema:
    app = create(config.parse(CONFIG, environment={}), io.StringIO())
    return schemathesis.openapi.from_asgi("/openapi.json", app)


def asked(address: str, mode: GenerationMode, **body: Any) -> Counter[tuple[int, str]]:
    """Ask an address at random; statuses and types of its answers, each as described."""
    method, _, path = address.partition(" ")
    answers: Counter[tuple[int, str]] = Counter()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=described()[path][method].as_strategy(generation_mode=mode))
    def ask(case: Case[Any]) -> None:
        if body and isinstance(case.body, dict):
            case.body = {**case.body, **body}
        response: Response = case.call()
        answers[response.status_code, response.headers["content-type"][0]] += 1
        case.validate_response(response, checks=CHECKS)

    ask()
    return answers


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_address_answers_as_described(address: str) -> None:
    assert asked(address, GenerationMode.POSITIVE)


@pytest.mark.parametrize("address", BODIES)
def test_a_body_that_is_wrong_is_refused_as_described(address: str) -> None:
    answers = asked(address, GenerationMode.NEGATIVE)
    assert {status for status, _ in answers} <= {400, 404}


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_that_a_model_takes_is_answered_as_described(stream: bool) -> None:
    kind = "text/event-stream; charset=utf-8" if stream else "application/json"
    simple = {"messages": [{"role": "user", "content": "hi"}], "tools": [], "functions": None}
    answers = asked(BODIES[0], GenerationMode.POSITIVE, model="demo", stream=stream, **simple)
    assert answers[200, kind]
    assert {status for status, _ in answers} <= {200, 400}


def test_every_route_is_described_and_no_other() -> None:
    routes = {(path.replace(":path", ""), method) for path, method in ROUTES if path not in PAGES}
    paths = described().raw_schema["paths"]
    assert routes == {(path, method.upper()) for path in paths for method in paths[path]}


def test_no_status_is_described_that_never_comes() -> None:
    found = described().raw_schema
    answers = [one["responses"] for path in found["paths"].values() for one in path.values()]
    unforeseen = [statuses["422"] for statuses in answers if "422" in statuses]
    assert not any("HTTPValidationError" in str(one) for one in unforeseen)
    assert "HTTPValidationError" not in found["components"]["schemas"]
