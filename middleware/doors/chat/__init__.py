"""OpenAI's chat completions: body → `ChatRequest`, events → chunks or one completion."""

from collections.abc import Mapping

from adapters.errors import GatewayError
from adapters.protocol import RequestContext
from middleware.doors.chat.endpoint import ENDPOINT
from middleware.doors.chat.errors import error_body
from middleware.doors.chat.parse import ParsedChat, parse
from middleware.doors.door import Door
from middleware.doors.seen import Seen


class _Chat:
    name = "chat"
    endpoint = ENDPOINT
    roots = (ENDPOINT.path,)
    error_body = staticmethod(error_body)

    def __init__(self, seen: Seen | None = None) -> None:
        self._seen = seen

    def parse(
        self, body: bytes, *, repair: bool, strict: bool, call: RequestContext | None = None
    ) -> ParsedChat:
        return parse(body, repair=repair, strict=strict, call=call, seen=self._seen)

    def headers(self, _request_id: str, _error: GatewayError | None = None) -> Mapping[str, str]:
        return {}

    def error_status(self, error: GatewayError) -> int:
        return error.status


CHAT_DOOR: Door = _Chat()


def remembering_chat(seen: Seen) -> Door:
    """The door of one server, which remembers what was said to it."""
    return _Chat(seen)


__all__ = ("CHAT_DOOR", "remembering_chat")
