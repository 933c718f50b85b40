"""OpenAI's chat completions: body → `ChatRequest`, events → chunks or one completion."""

from dataclasses import dataclass

from adapters.errors import GatewayError
from middleware.doors.chat.chunks import Chunks
from middleware.doors.chat.endpoint import ENDPOINT
from middleware.doors.chat.errors import error_body, error_frame
from middleware.doors.chat.fold import Fold
from middleware.doors.chat.parse import ParsedChat, parse
from middleware.doors.chat.words import Heading
from middleware.doors.door import Door


@dataclass(frozen=True, slots=True)
class _Chat:
    parse = staticmethod(parse)
    error_body = staticmethod(error_body)
    endpoint = ENDPOINT

    def error_status(self, error: GatewayError) -> int:
        return error.status


CHAT_DOOR: Door = _Chat()

__all__ = (
    "CHAT_DOOR",
    "Chunks",
    "Fold",
    "Heading",
    "ParsedChat",
    "error_body",
    "error_frame",
    "parse",
)
