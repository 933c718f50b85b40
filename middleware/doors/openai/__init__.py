"""The OpenAI door: body → `ChatRequest`, events → chunks or one completion, error → body."""

from middleware.doors.openai.chunks import Chunks
from middleware.doors.openai.errors import error_body, error_frame
from middleware.doors.openai.fold import Fold
from middleware.doors.openai.parse import Asked, parse
from middleware.doors.openai.words import Heading, usage_parts, warnings_header

__all__ = (
    "Asked",
    "Chunks",
    "Fold",
    "Heading",
    "error_body",
    "error_frame",
    "parse",
    "usage_parts",
    "warnings_header",
)
