"""Ollama's API: `/api/chat` and `/api/generate` → `ChatRequest`, events → lines or one object."""

from collections.abc import Callable, Mapping
from functools import partial

from adapters.errors import GatewayError
from adapters.protocol import RequestContext
from middleware.doors.door import Door, wait_headers
from middleware.doors.endpoint import Endpoint
from middleware.doors.ollama.endpoints import CHAT_ENDPOINT, GENERATE_ENDPOINT
from middleware.doors.ollama.errors import error_body
from middleware.doors.ollama.parse import ParsedOllama, parse_chat, parse_generate
from middleware.doors.seen import Seen

Parse = Callable[..., ParsedOllama]


class _Ollama:
    name = "ollama"
    roots = ("/api",)
    error_body = staticmethod(error_body)

    def __init__(self, endpoint: Endpoint, parse: Parse) -> None:
        self.endpoint = endpoint
        self._parse = parse

    def parse(
        self, body: bytes, *, repair: bool, strict: bool, call: RequestContext | None = None
    ) -> ParsedOllama:
        return self._parse(body, strict=strict, call=call)

    def headers(self, _request_id: str, error: GatewayError | None = None) -> Mapping[str, str]:
        return wait_headers(error)

    def error_status(self, error: GatewayError) -> int:
        return error.status


OLLAMA_DOOR: Door = _Ollama(CHAT_ENDPOINT, parse_chat)
GENERATE_DOOR: Door = _Ollama(GENERATE_ENDPOINT, parse_generate)
"""A second address of the same door."""


def remembering_ollama(seen: Seen) -> Door:
    """The door of one server, which remembers what was said to it."""
    return _Ollama(CHAT_ENDPOINT, partial(parse_chat, seen=seen))


__all__ = ("GENERATE_DOOR", "OLLAMA_DOOR", "remembering_ollama")
