"""Anthropic's Messages: body → `ChatRequest`, events → named events or one message."""

from collections.abc import Mapping

from adapters.errors import GatewayError
from adapters.protocol import RequestContext
from middleware.doors.door import Door
from middleware.doors.messages.answer import estimate
from middleware.doors.messages.endpoint import ENDPOINT
from middleware.doors.messages.errors import error_body, error_headers, error_status
from middleware.doors.messages.parse import ParsedMessages, parse, parse_counted
from middleware.doors.seen import Seen


class _Messages:
    name = "messages"
    endpoint = ENDPOINT
    roots = (ENDPOINT.path, "/v1/complete", "/v1/v1/messages")
    error_body = staticmethod(error_body)
    error_status = staticmethod(error_status)

    def __init__(self, seen: Seen | None = None) -> None:
        self._seen = seen

    def parse(
        self, body: bytes, *, repair: bool, strict: bool, call: RequestContext | None = None
    ) -> ParsedMessages:
        return parse(body, repair=repair, strict=strict, call=call, seen=self._seen)

    def headers(self, request_id: str, error: GatewayError | None = None) -> Mapping[str, str]:
        return {"request-id": request_id, **(error_headers(error) if error else {})}


MESSAGES_DOOR: Door = _Messages()


def remembering_messages(seen: Seen) -> Door:
    """The door of one server, which remembers what was said to it."""
    return _Messages(seen)


__all__ = ("MESSAGES_DOOR", "estimate", "parse_counted", "remembering_messages")
