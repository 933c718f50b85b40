"""This door's addresses as `/openapi.json` describes them."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from middleware.doors.endpoint import NDJSON, Endpoint, OwnWords, described
from middleware.doors.ollama.shapes import GenerateBody, OllamaChatBody


class _Line(TypedDict):
    model: str
    created_at: str
    done: bool
    """True on the last line, which has what stands below."""
    done_reason: NotRequired[Literal["stop", "length", "load", "unload"]]
    total_duration: NotRequired[int]
    """Nanoseconds, as the others."""
    load_duration: NotRequired[int]
    prompt_eval_count: NotRequired[int]
    """Tokens; left out where the upstream reported none."""
    prompt_eval_duration: NotRequired[int]
    eval_count: NotRequired[int]
    eval_duration: NotRequired[int]
    logprobs: NotRequired[list[dict[str, Any]]]
    x_usetool: NotRequired[OwnWords]


class OllamaMessage(TypedDict):
    role: Literal["assistant"]
    content: str
    thinking: NotRequired[str]
    tool_calls: NotRequired[list[dict[str, Any]]]


@described
class ChatLine(_Line):
    message: OllamaMessage


@described
class GenerateLine(_Line):
    response: str
    thinking: NotRequired[str]


@described
class OllamaError(TypedDict):
    error: str
    """What went wrong and what to do about it; the request's id is a header."""
    x_usetool: NotRequired[OwnWords]
    """Only on the last line of a stream that failed."""


_ABOUT = (
    " Unless `stream` is false it comes as lines of JSON; a stream that broke off ends in a line "
    "with `error`. Options that are an Ollama's alone are for upstreams of that kind."
)
_MARKS = frozenset(("options", "keep_alive", "think"))
CHAT_ENDPOINT = Endpoint(
    path="/api/chat",
    summary="Answer a chat, as Ollama does",
    description="For clients of Ollama, with every model of the list." + _ABOUT,
    body=OllamaChatBody,
    example={"model": "MODEL", "messages": [{"role": "user", "content": "Hello"}]},
    answer=ChatLine,
    event=ChatLine,
    stream_type=NDJSON,
    error=OllamaError,
    headers={},
    marks=_MARKS,
)
GENERATE_ENDPOINT = Endpoint(
    path="/api/generate",
    summary="Answer a prompt, as Ollama does",
    description="One message of a user." + _ABOUT,
    body=GenerateBody,
    example={"model": "MODEL", "prompt": "Hello"},
    answer=GenerateLine,
    event=GenerateLine,
    stream_type=NDJSON,
    error=OllamaError,
    headers={},
    marks=_MARKS | {"prompt"},
)
