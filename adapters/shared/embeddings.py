"""Vectors of texts: OpenAI's `/v1/embeddings`, for the leaves whose upstreams make them."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.errors import BadRequest, UpstreamError
from adapters.protocol import Json, RequestContext
from adapters.shared.usage import figure


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    model: str
    input: str | Sequence[Any]
    """A text, texts, tokens, or lists of tokens."""
    call: RequestContext
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        """The input as texts, for an upstream that takes nothing else."""
        found = [self.input] if isinstance(self.input, str) else list(self.input)
        if not all(isinstance(text, str) for text in found):
            raise BadRequest(
                "This upstream takes texts, not tokens. Send 'input' as a string or a list of "
                "strings (in LangChain: check_embedding_ctx_length=False).",
                param="input",
            )
        return found


def answer(request: EmbeddingRequest, vectors: Any, tokens: Any) -> Json:
    """OpenAI's shape for vectors in the order of the texts."""
    if not isinstance(vectors, list) or len(vectors) != len(request.texts):
        raise _unreadable("another number of vectors than it was given texts")
    if not all(isinstance(one, list) for one in vectors):
        raise _unreadable("vectors that are no lists of numbers")
    packed = request.params.get("encoding_format") == "base64"
    count = figure(tokens) or 0
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": _packed(one) if packed else one}
            for index, one in enumerate(vectors)
        ],
        "model": request.model,
        "usage": {"prompt_tokens": count, "total_tokens": count},
    }


def _packed(vector: Sequence[float]) -> str:
    """As the OpenAI SDK asks for it by default: little-endian 32-bit floats."""
    try:
        return base64.b64encode(array("f", vector).tobytes()).decode()
    except TypeError as error:
        raise _unreadable("vectors that are no lists of numbers") from error


def _unreadable(what: str) -> UpstreamError:
    return UpstreamError(f"The upstream sent {what}.", code="upstream_unreadable")
