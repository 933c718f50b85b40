"""`/api/embed` and `/api/embeddings`, in the words of OpenAI's embeddings and back."""

from __future__ import annotations

from typing import Any, NotRequired

import orjson
from typing_extensions import TypedDict

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import Notes
from middleware.doors.body import read_object
from middleware.doors.endpoint import Endpoint, described
from middleware.doors.ollama.endpoints import OllamaError
from middleware.doors.ollama.forms import bare


@described
class EmbedBody(TypedDict):
    model: str
    input: str | list[str]
    dimensions: NotRequired[int | None]


@described
class EmbedAnswer(TypedDict):
    model: str
    embeddings: list[list[float]]
    total_duration: int
    load_duration: int
    prompt_eval_count: NotRequired[int]


@described
class OldEmbedBody(TypedDict):
    model: str
    prompt: str


@described
class OldEmbedAnswer(TypedDict):
    embedding: list[float]


EMBED = Endpoint(
    path="/api/embed",
    summary="Make vectors of texts, as Ollama does",
    description="For models of upstreams that make embeddings.",
    body=EmbedBody,
    example={"model": "MODEL", "input": ["Hello"]},
    answer=EmbedAnswer,
    headers={},
    error=OllamaError,
)
OLD_EMBED = Endpoint(
    path="/api/embeddings",
    summary="Make a vector of one text, as older clients of Ollama ask for it",
    description="As `/api/embed`.",
    body=OldEmbedBody,
    example={"model": "MODEL", "prompt": "Hello"},
    answer=OldEmbedAnswer,
    headers={},
    error=OllamaError,
)


def embedding_model(body: bytes) -> tuple[Json, str]:
    """The body, and the model's name as the client says it."""
    data = read_object(body, Notes())
    name = data.get("model")
    if not name or not isinstance(name, str):
        raise BadRequest("model is required", param="model")
    return data, name


def as_openai(data: Json, texts: Any) -> bytes:
    """The question as OpenAI's clients put it; it is checked there."""
    asked = {"model": bare(data["model"]), "input": texts, "dimensions": data.get("dimensions")}
    return orjson.dumps({name: value for name, value in asked.items() if value is not None})


def as_ollama(name: str, vectors: Json) -> bytes:
    found = [one["embedding"] for one in vectors["data"]]
    count = (vectors.get("usage") or {}).get("prompt_tokens")
    answer = {"model": name, "embeddings": found, "total_duration": 1, "load_duration": 1}
    return orjson.dumps(answer | ({} if count is None else {"prompt_eval_count": count}))


def as_old_ollama(vectors: Json) -> bytes:
    data = vectors["data"]
    return orjson.dumps({"embedding": data[0]["embedding"] if data else []})
