"""What this door answers, as types for `/openapi.json` alone.

`fold.py` and `chunks.py` write the bytes without them: the hot path does not check our own words.
Tests hold the two together.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from middleware.doors.endpoint import OwnWords, described


class AnsweredCall(TypedDict):
    index: NotRequired[int]
    """Only in a stream, where it says which call a piece belongs to."""
    id: NotRequired[str]
    type: NotRequired[Literal["function", "custom"]]
    function: NotRequired[dict[str, str]]
    """`name` and `arguments`, which are JSON as text; a stream has them in pieces."""
    custom: NotRequired[dict[str, str]]
    """Of a custom tool: `name` and `input`."""


class AnswerMessage(TypedDict, total=False):
    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    reasoning_content: str
    tool_calls: list[AnsweredCall]
    function_call: dict[str, str]
    """Instead of `tool_calls` where the request had `functions`."""


class Choice(TypedDict):
    index: int
    message: NotRequired[AnswerMessage]
    """Of a whole answer."""
    delta: NotRequired[AnswerMessage]
    """Of a streamed one: what is new."""
    logprobs: dict[str, Any] | None
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter", "function_call"] | None


class UsageObject(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: NotRequired[dict[str, Any]]
    completion_tokens_details: NotRequired[dict[str, Any]]


@described
class Completion(TypedDict):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    """The name that was asked for; `x-upstream-model` has the upstream's."""
    choices: list[Choice]
    usage: NotRequired[UsageObject]
    """Left out where the upstream reported none."""
    system_fingerprint: NotRequired[str]
    service_tier: NotRequired[str]


@described
class Chunk(TypedDict):
    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[Choice]
    """Empty in the last one, which has the usage, if `stream_options.include_usage` asks for it."""
    usage: NotRequired[UsageObject | None]
    system_fingerprint: NotRequired[str]
    service_tier: NotRequired[str]
    x_usetool: NotRequired[OwnWords]
    """Beside the finish reason."""
