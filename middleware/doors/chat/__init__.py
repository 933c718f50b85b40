"""OpenAI's chat completions: body → `ChatRequest`, events → chunks or one completion."""

from collections.abc import Mapping

from adapters.errors import GatewayError
from middleware.doors.chat.endpoint import ENDPOINT
from middleware.doors.chat.errors import error_body
from middleware.doors.chat.parse import parse
from middleware.doors.door import Door


class _Chat:
    name = "chat"
    endpoint = ENDPOINT
    roots = (ENDPOINT.path,)
    parse = staticmethod(parse)
    error_body = staticmethod(error_body)

    def headers(self, _request_id: str, _error: GatewayError | None = None) -> Mapping[str, str]:
        return {}

    def error_status(self, error: GatewayError) -> int:
        return error.status


CHAT_DOOR: Door = _Chat()

__all__ = ("CHAT_DOOR",)
