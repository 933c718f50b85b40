"""What other recorders kept, in their words."""

from __future__ import annotations

import json
from typing import Any

from vcr.serializers import yamlserializer

from adapters.protocol import Json
from middleware.cassettes.cassette import CassetteTurn
from middleware.cli.importers.recordings import from_recording
from tests.support.recordings import Parsed, upstreams

COMPATIBLE = next(found for found in upstreams() if found.name == "compatible")
ASKED: Json = {"model": "gpt-5", "messages": [{"role": "user", "content": "imported?"}]}
ANSWERED: Json = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5-2026",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "imported!"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}
CHUNKS = (
    b'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "impor"}}]}\n\n'
    b'data: {"choices": [{"index": 0, "delta": {"content": "ted!"}}]}\n\n'
)


def recorded(case: str) -> Json:
    """One of the project's own recordings, as vcrpy has it in memory."""
    return Parsed.deserialize(COMPATIBLE.path(case).read_text())


def interaction(asked: Any, answered: Any, **changes: Any) -> Json:
    """One call as vcrpy writes it."""
    uri = changes.get("uri", "https://api.openai.com/v1/chat/completions")
    headers = changes.get("headers", {"Content-Type": ["application/json"]})
    return {
        "request": {
            "method": "POST",
            "uri": uri,
            "body": json.dumps(asked),
            "headers": {"authorization": ["Bearer sk-very-secret-1234"]},
        },
        "response": {
            "status": {"code": changes.get("status", 200), "message": "OK"},
            "headers": headers,
            "body": {"string": answered if isinstance(answered, bytes) else json.dumps(answered)},
        },
    }


def one(*interactions: Json) -> CassetteTurn:
    (turn,) = turns(*interactions)
    return turn


def turns(*interactions: Json) -> tuple[CassetteTurn, ...]:
    text = yamlserializer.serialize({"interactions": list(interactions), "version": 1})
    return from_recording(text, "t.yaml").cassette.turns


def vcrpy(cassette: Json) -> str:
    text: str = yamlserializer.serialize(cassette)
    return text
