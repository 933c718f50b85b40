"""The OpenAI door: body → `ChatRequest`, events → chunks or one completion, error → body."""

from middleware.doors.chat.chunks import Chunks
from middleware.doors.chat.errors import error_body, error_frame
from middleware.doors.chat.fold import Fold
from middleware.doors.chat.parse import ParsedRequest, parse
from middleware.doors.chat.words import Heading, usage_parts, warnings_header

__all__ = (
    "Chunks",
    "Fold",
    "Heading",
    "ParsedRequest",
    "error_body",
    "error_frame",
    "parse",
    "usage_parts",
    "warnings_header",
)
