"""Anthropic's Messages: body → `ChatRequest`, events → named events or one message."""

from collections.abc import Mapping

from adapters.errors import GatewayError
from middleware.doors.door import Door
from middleware.doors.messages.answer import estimate
from middleware.doors.messages.endpoint import ENDPOINT
from middleware.doors.messages.errors import error_body, error_headers, error_status
from middleware.doors.messages.parse import parse, parse_counted


class _Messages:
    name = "messages"
    endpoint = ENDPOINT
    roots = (ENDPOINT.path, "/v1/complete", "/v1/v1/messages")
    parse = staticmethod(parse)
    error_body = staticmethod(error_body)
    error_status = staticmethod(error_status)

    def headers(self, request_id: str, error: GatewayError | None = None) -> Mapping[str, str]:
        return {"request-id": request_id, **(error_headers(error) if error else {})}


MESSAGES_DOOR: Door = _Messages()

__all__ = ("MESSAGES_DOOR", "estimate", "parse_counted")
