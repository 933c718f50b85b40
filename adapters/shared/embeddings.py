"""Vectors of texts: OpenAI's `/v1/embeddings`, for the leaves whose upstreams make them."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.errors import BadRequest, UpstreamError
from adapters.protocol import Json, RequestContext


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
        raise UpstreamError(
            "The upstream sent another number of vectors than it was given texts.",
            code="upstream_unreadable",
        )
    packed = request.params.get("encoding_format") == "base64"
    count = tokens if type(tokens) is int else 0
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
    return base64.b64encode(array("f", vector).tobytes()).decode()
