"""What OpenAI's chat request may look like, as types for pydantic to check against.

The check copies nothing: what a client sent goes on as it was parsed. `strict` is on throughout,
because a string where a number belongs is a mistake OpenAI refuses too. Tags of unions begin with
`TAG`, so that they can be told from the keys of the request in an error's path. Lists `FailFast`: a
body of millions of mistakes would otherwise become millions of findings.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Discriminator, FailFast, Field, Tag, TypeAdapter, with_config
from typing_extensions import TypedDict

TAG = "@"
_open = with_config(ConfigDict(extra="allow", strict=True))
# Letters of any script: tools made in Dify carry Chinese names.
_Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[\w.-]+$")]
_Unit = Annotated[float, Field(ge=0, le=1)]
_Penalty = Annotated[float, Field(ge=-2, le=2)]
_Positive = Annotated[int, Field(ge=1, lt=2**63)]


def _string_or_list(value: Any) -> str:
    return TAG + ("list" if isinstance(value, list) else "string")


@_open
class TextPart(TypedDict):
    type: Literal["text"]
    text: str


@_open
class RefusalPart(TypedDict):
    type: Literal["refusal"]
    refusal: str


@_open
class ImageAddress(TypedDict):
    url: str


@_open
class ImagePart(TypedDict):
    type: Literal["image_url"]
    image_url: ImageAddress


@_open
class Sound(TypedDict):
    data: str
    format: str


@_open
class AudioPart(TypedDict):
    type: Literal["input_audio"]
    input_audio: Sound


@_open
class FilePart(TypedDict):
    type: Literal["file"]
    file: dict[str, Any]


def _type(value: Any) -> str | None:
    return TAG + str(value.get("type")) if isinstance(value, dict) else None


_Text = Annotated[TextPart, Tag(TAG + "text")]
_Refusal = Annotated[RefusalPart, Tag(TAG + "refusal")]
_UserPart = Annotated[
    _Text
    | Annotated[ImagePart, Tag(TAG + "image_url")]
    | Annotated[AudioPart, Tag(TAG + "input_audio")]
    | Annotated[FilePart, Tag(TAG + "file")],
    Discriminator(_type),
]
_AssistantPart = Annotated[_Text | _Refusal, Discriminator(_type)]
_String = Annotated[str, Tag(TAG + "string")]
_Content = Annotated[
    _String | Annotated[list[TextPart], FailFast(), Tag(TAG + "list")], Discriminator(_string_or_list)
]
_UserContent = Annotated[
    _String | Annotated[list[_UserPart], FailFast(), Tag(TAG + "list")], Discriminator(_string_or_list)
]
_AssistantContent = Annotated[
    _String | Annotated[list[_AssistantPart], FailFast(), Tag(TAG + "list")], Discriminator(_string_or_list)
]


@_open
class CalledFunction(TypedDict):
    name: Annotated[str, Field(min_length=1)]
    arguments: NotRequired[str | None]


@_open
class FunctionCall(TypedDict):
    id: Annotated[str, Field(min_length=1)]
    type: Literal["function"]
    function: CalledFunction


@_open
class CustomInput(TypedDict):
    name: Annotated[str, Field(min_length=1)]
    input: str


@_open
class CustomCall(TypedDict):
    id: Annotated[str, Field(min_length=1)]
    type: Literal["custom"]
    custom: CustomInput


def _call_kind(value: Any) -> str | None:
    return TAG + str(value.get("type") or "function") if isinstance(value, dict) else None


_AnyCall = Annotated[
    Annotated[FunctionCall, Tag(TAG + "function")] | Annotated[CustomCall, Tag(TAG + "custom")],
    Discriminator(_call_kind),
]


@_open
class SystemMessage(TypedDict):
    role: Literal["system", "developer"]
    content: _Content
    name: NotRequired[str | None]


@_open
class UserMessage(TypedDict):
    role: Literal["user"]
    content: _UserContent
    name: NotRequired[str | None]


@_open
class AssistantMessage(TypedDict):
    role: Literal["assistant"]
    content: NotRequired[_AssistantContent | None]
    tool_calls: NotRequired[Annotated[list[_AnyCall], FailFast(), Field(min_length=1)] | None]
    function_call: NotRequired[CalledFunction | None]
    refusal: NotRequired[str | None]
    name: NotRequired[str | None]
    reasoning_content: NotRequired[str | None]


@_open
class ToolMessage(TypedDict):
    role: Literal["tool"]
    # Images too, which OpenAI refuses here: Claude reads them, and the others say that they do not.
    content: _UserContent
    tool_call_id: Annotated[str, Field(min_length=1)]


@_open
class FunctionMessage(TypedDict):
    role: Literal["function"]
    name: Annotated[str, Field(min_length=1)]
    content: NotRequired[str | None]


def _role(value: Any) -> str | None:
    return TAG + str(value.get("role")) if isinstance(value, dict) else None


Message = Annotated[
    Annotated[SystemMessage, Tag(TAG + "system")]
    | Annotated[SystemMessage, Tag(TAG + "developer")]
    | Annotated[UserMessage, Tag(TAG + "user")]
    | Annotated[AssistantMessage, Tag(TAG + "assistant")]
    | Annotated[ToolMessage, Tag(TAG + "tool")]
    | Annotated[FunctionMessage, Tag(TAG + "function")],
    Discriminator(_role),
]


@_open
class Function(TypedDict):
    name: _Name
    description: NotRequired[str | None]
    parameters: NotRequired[dict[str, Any] | None]
    strict: NotRequired[bool | None]


@_open
class FunctionTool(TypedDict):
    type: Literal["function"]
    function: Function


@_open
class Custom(TypedDict):
    name: _Name
    description: NotRequired[str | None]
    format: NotRequired[dict[str, Any] | None]


@_open
class CustomTool(TypedDict):
    type: Literal["custom"]
    custom: Custom


Tool = Annotated[
    Annotated[FunctionTool, Tag(TAG + "function")] | Annotated[CustomTool, Tag(TAG + "custom")],
    Discriminator(_call_kind),
]


@_open
class Named(TypedDict):
    name: str


@_open
class FunctionChoice(TypedDict):
    type: Literal["function"]
    function: Named


@_open
class CustomChoice(TypedDict):
    type: Literal["custom"]
    custom: Named


_OneTool = Annotated[
    Annotated[FunctionChoice, Tag(TAG + "function")] | Annotated[CustomChoice, Tag(TAG + "custom")],
    Discriminator(_call_kind),
]


@_open
class Allowed(TypedDict):
    mode: Literal["auto", "required"]
    tools: Annotated[list[_OneTool], FailFast(), Field(min_length=1)]


@_open
class AllowedTools(TypedDict):
    type: Literal["allowed_tools"]
    allowed_tools: Allowed


def _choice_kind(value: Any) -> str:
    return TAG + "word" if not isinstance(value, dict) else TAG + str(value.get("type"))


ToolChoice = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag(TAG + "word")]
    | Annotated[FunctionChoice, Tag(TAG + "function")]
    | Annotated[CustomChoice, Tag(TAG + "custom")]
    | Annotated[AllowedTools, Tag(TAG + "allowed_tools")],
    Discriminator(_choice_kind),
]


@_open
class PlainFormat(TypedDict):
    type: Literal["text", "json_object"]


@_open
class NamedSchema(TypedDict):
    name: Annotated[str, Field(min_length=1, max_length=64)]
    schema: NotRequired[dict[str, Any] | None]
    strict: NotRequired[bool | None]


@_open
class SchemaFormat(TypedDict):
    type: Literal["json_schema"]
    json_schema: NamedSchema


ResponseFormat = Annotated[
    Annotated[PlainFormat, Tag(TAG + "text")]
    | Annotated[PlainFormat, Tag(TAG + "json_object")]
    | Annotated[SchemaFormat, Tag(TAG + "json_schema")],
    Discriminator(_type),
]


@_open
class StreamOptions(TypedDict):
    include_usage: NotRequired[bool | None]
    include_obfuscation: NotRequired[bool | None]


_StopList = Annotated[list[str], Field(max_length=4), Tag(TAG + "list")]
_Stop = Annotated[_String | _StopList, Discriminator(_string_or_list)]


def _legacy_choice(value: Any) -> str:
    return TAG + ("name" if isinstance(value, dict) else "word")


_LegacyChoice = Annotated[
    Annotated[Literal["none", "auto"], Tag(TAG + "word")] | Annotated[Named, Tag(TAG + "name")],
    Discriminator(_legacy_choice),
]


@_open
class Request(TypedDict):
    model: Annotated[str, Field(min_length=1, max_length=256)]
    messages: Annotated[list[Message], FailFast(), Field(min_length=1)]
    stream: NotRequired[bool | None]
    stream_options: NotRequired[StreamOptions | None]
    tools: NotRequired[Annotated[list[Tool], FailFast(), Field(max_length=1024)] | None]
    tool_choice: NotRequired[ToolChoice | None]
    parallel_tool_calls: NotRequired[bool | None]
    functions: NotRequired[
        Annotated[list[Function], FailFast(), Field(min_length=1, max_length=1024)] | None
    ]
    function_call: NotRequired[_LegacyChoice | None]
    max_tokens: NotRequired[_Positive | None]
    max_completion_tokens: NotRequired[_Positive | None]
    temperature: NotRequired[Annotated[float, Field(ge=0, le=2)] | None]
    top_p: NotRequired[_Unit | None]
    n: NotRequired[Annotated[int, Field(ge=1, le=128)] | None]
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
    modalities: NotRequired[Annotated[list[Literal["text", "audio"]], FailFast()] | None]
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


FIELDS: frozenset[str] = frozenset(Request.__annotations__)
"""OpenAI's own field names; every other one is an extra."""
REQUEST: TypeAdapter[Any] = TypeAdapter(Request)
