"""A list of embeddings, as servers of OpenAI's API answer it."""

from __future__ import annotations

from typing import Any

from adapters.compatible.reasons import error_in, failure
from adapters.errors import UpstreamError
from adapters.protocol import Json
from adapters.wire.http import Link


def read_vectors(said: Any, link: Link) -> Json:
    """The answer as it came; raise `UpstreamError` where it has no vectors."""
    if isinstance(said, dict):
        data = said.get("data")
        if data and isinstance(data, list) and all(map(_has_vector, data)):
            return said
        if error := error_in(said):
            raise failure(error, 500, link.name, link.secrets)
    raise UpstreamError(
        f"Upstream '{link.name}' sent no list of embeddings.", code="upstream_unreadable"
    )


def _has_vector(one: Any) -> bool:
    # In base64 it is a text, of a sparse one some servers make an object.
    return isinstance(one, dict) and isinstance(one.get("embedding"), list | str | dict)
