"""What OpenAI's chat request may look like, as types for pydantic to check against.

The check copies nothing: what a client sent goes on as it was parsed. `strict` is on throughout,
because a string where a number belongs is a mistake OpenAI refuses too. Lists fail at their first
mistake: a body of millions would otherwise become millions of findings.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Discriminator, Field, Tag, TypeAdapter
from typing_extensions import TypedDict

from middleware.doors.chat.messages import Message, String, kind, shape, string_or_list
from middleware.doors.mistakes import TAG

# Letters of any script, and dots: tools made in Dify carry Chinese names, and those of MCP servers
# and benchmarks are called `server.tool`. For the upstream `toolbox.alias` makes another of them.
_Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[\w.-]+$")]
_Unit = Annotated[float, Field(ge=0, le=1)]
_Penalty = Annotated[float, Field(ge=-2, le=2)]
_Positive = Annotated[int, Field(ge=1, lt=2**63)]
_Choices = Annotated[int, Field(ge=1, le=128)]


@shape
class Function(TypedDict):
    name: _Name
    description: NotRequired[str | None]
    parameters: NotRequired[dict[str, Any] | None]
    strict: NotRequired[bool | None]


@shape
class FunctionTool(TypedDict):
    type: Literal["function"]
    function: Function


@shape
class Custom(TypedDict):
    name: _Name
    description: NotRequired[str | None]
    format: NotRequired[dict[str, Any] | None]


@shape
class CustomTool(TypedDict):
    type: Literal["custom"]
    custom: Custom


Tool = Annotated[
    Annotated[FunctionTool, Tag(TAG + "function")] | Annotated[CustomTool, Tag(TAG + "custom")],
    Discriminator(kind),
]


Tools = Annotated[list[Tool], Field(fail_fast=True, max_length=1024)]


@shape
class Named(TypedDict):
    name: str


@shape
class FunctionChoice(TypedDict):
    type: Literal["function"]
    function: Named


@shape
class CustomChoice(TypedDict):
    type: Literal["custom"]
    custom: Named


_OneTool = Annotated[
    Annotated[FunctionChoice, Tag(TAG + "function")] | Annotated[CustomChoice, Tag(TAG + "custom")],
    Discriminator(kind),
]


@shape
class AllowedChoice(TypedDict):
    mode: Literal["auto", "required"]
    tools: Annotated[list[_OneTool], Field(fail_fast=True, min_length=1)]


@shape
class AllowedTools(TypedDict):
    type: Literal["allowed_tools"]
    allowed_tools: AllowedChoice


def _choice_kind(value: Any) -> str:
    return TAG + "word" if not isinstance(value, dict) else TAG + str(value.get("type"))


ToolChoice = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag(TAG + "word")]
    | Annotated[FunctionChoice, Tag(TAG + "function")]
    | Annotated[CustomChoice, Tag(TAG + "custom")]
    | Annotated[AllowedTools, Tag(TAG + "allowed_tools")],
    Discriminator(_choice_kind),
]


@shape
class PlainFormat(TypedDict):
    type: Literal["text", "json_object"]


@shape
class NamedSchema(TypedDict):
    name: Annotated[str, Field(min_length=1, max_length=64)]
    schema: NotRequired[dict[str, Any] | None]
    strict: NotRequired[bool | None]


@shape
class SchemaFormat(TypedDict):
    type: Literal["json_schema"]
    json_schema: NamedSchema


ResponseFormat = Annotated[
    Annotated[PlainFormat, Tag(TAG + "text")]
    | Annotated[PlainFormat, Tag(TAG + "json_object")]
    | Annotated[SchemaFormat, Tag(TAG + "json_schema")],
    Discriminator(kind),
]


@shape
class StreamOptions(TypedDict):
    include_usage: NotRequired[bool | None]
    include_obfuscation: NotRequired[bool | None]


_StopList = Annotated[list[str], Field(max_length=4), Tag(TAG + "list")]
_Stop = Annotated[String | _StopList, Discriminator(string_or_list)]


def _legacy_choice(value: Any) -> str:
    return TAG + ("name" if isinstance(value, dict) else "word")


_LegacyChoice = Annotated[
    Annotated[Literal["none", "auto"], Tag(TAG + "word")] | Annotated[Named, Tag(TAG + "name")],
    Discriminator(_legacy_choice),
]


@shape
class ChatBody(TypedDict):
    model: Annotated[str, Field(min_length=1, max_length=256)]
    messages: Annotated[list[Message], Field(fail_fast=True, min_length=1)]
    stream: NotRequired[bool | None]
    stream_options: NotRequired[StreamOptions | None]
    tools: NotRequired[Tools | None]
    tool_choice: NotRequired[ToolChoice | None]
    parallel_tool_calls: NotRequired[bool | None]
    functions: NotRequired[
        Annotated[list[Function], Field(fail_fast=True, min_length=1, max_length=1024)] | None
    ]
    function_call: NotRequired[_LegacyChoice | None]
    max_tokens: NotRequired[_Positive | None]
    max_completion_tokens: NotRequired[_Positive | None]
    temperature: NotRequired[Annotated[float, Field(ge=0, le=2)] | None]
    top_p: NotRequired[_Unit | None]
    n: NotRequired[Annotated[_Choices | None, Field(description="More than 1 is refused.")]]
    stop: NotRequired[_Stop | None]
    seed: NotRequired[int | None]
    presence_penalty: NotRequired[_Penalty | None]
    frequency_penalty: NotRequired[_Penalty | None]
    logit_bias: NotRequired[dict[str, Any] | None]
    logprobs: NotRequired[bool | None]
    top_logprobs: NotRequired[Annotated[int, Field(ge=0, le=20)] | None]
    response_format: NotRequired[ResponseFormat | None]
    reasoning_effort: NotRequired[
        Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None
    ]
    verbosity: NotRequired[Literal["low", "medium", "high"] | None]
    modalities: NotRequired[Annotated[list[Literal["text", "audio"]], Field(fail_fast=True)] | None]
    audio: NotRequired[dict[str, Any] | None]
    prediction: NotRequired[dict[str, Any] | None]
    web_search_options: NotRequired[dict[str, Any] | None]
    metadata: NotRequired[dict[str, Any] | None]
    user: NotRequired[str | None]
    safety_identifier: NotRequired[str | None]
    prompt_cache_key: NotRequired[str | None]
    prompt_cache_options: NotRequired[dict[str, Any] | None]
    prompt_cache_retention: NotRequired[str | None]
    service_tier: NotRequired[str | None]
    store: NotRequired[bool | None]
    moderation: NotRequired[dict[str, Any] | None]


FIELDS: frozenset[str] = frozenset(ChatBody.__annotations__)
"""OpenAI's own field names; every other one is an extra."""
REQUEST: TypeAdapter[Any] = TypeAdapter(ChatBody)
