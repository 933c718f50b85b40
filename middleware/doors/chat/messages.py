"""What the messages of a chat request may look like, as types for pydantic to check against."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Discriminator, Field, Tag, with_config
from typing_extensions import TypedDict

from middleware.doors.mistakes import TAG

# Other members are let through: the check's own copy of a request, without them, is thrown away.
_CHECKED = ConfigDict(extra="ignore", strict=True)
shape = with_config(_CHECKED)
late_body = with_config(ConfigDict(**_CHECKED, defer_build=True))
"""Said of the body of a door that few gateways are asked by: its check is built for the first."""


def string_or_list(value: Any) -> str:
    return TAG + ("list" if isinstance(value, list) else "string")


def kind(value: Any) -> str | None:
    return TAG + str(value.get("type")) if isinstance(value, dict) else None


def _role(value: Any) -> str | None:
    return TAG + str(value.get("role")) if isinstance(value, dict) else None


@shape
class TextPart(TypedDict):
    type: Literal["text"]
    text: str


@shape
class RefusalPart(TypedDict):
    type: Literal["refusal"]
    refusal: str


@shape
class ImageAddress(TypedDict):
    url: str


@shape
class ImagePart(TypedDict):
    type: Literal["image_url"]
    image_url: ImageAddress


@shape
class Sound(TypedDict):
    data: str
    format: str


@shape
class AudioPart(TypedDict):
    type: Literal["input_audio"]
    input_audio: Sound


@shape
class FilePart(TypedDict):
    type: Literal["file"]
    file: dict[str, Any]


_Text = Annotated[TextPart, Tag(TAG + "text")]
_Refusal = Annotated[RefusalPart, Tag(TAG + "refusal")]
_UserPart = Annotated[
    _Text
    | Annotated[ImagePart, Tag(TAG + "image_url")]
    | Annotated[AudioPart, Tag(TAG + "input_audio")]
    | Annotated[FilePart, Tag(TAG + "file")],
    Discriminator(kind),
]
_AssistantPart = Annotated[_Text | _Refusal, Discriminator(kind)]
String = Annotated[str, Tag(TAG + "string")]
_Content = Annotated[
    String | Annotated[list[TextPart], Field(fail_fast=True), Tag(TAG + "list")],
    Discriminator(string_or_list),
]
_UserContent = Annotated[
    String | Annotated[list[_UserPart], Field(fail_fast=True), Tag(TAG + "list")],
    Discriminator(string_or_list),
]
_AssistantContent = Annotated[
    String | Annotated[list[_AssistantPart], Field(fail_fast=True), Tag(TAG + "list")],
    Discriminator(string_or_list),
]


@shape
class CalledFunction(TypedDict):
    name: Annotated[str, Field(min_length=1)]
    arguments: NotRequired[str | None]


@shape
class FunctionCall(TypedDict):
    id: Annotated[str, Field(min_length=1)]
    type: Literal["function"]
    function: CalledFunction


@shape
class CustomInput(TypedDict):
    name: Annotated[str, Field(min_length=1)]
    input: str


@shape
class CustomCall(TypedDict):
    id: Annotated[str, Field(min_length=1)]
    type: Literal["custom"]
    custom: CustomInput


_AnyCall = Annotated[
    Annotated[FunctionCall, Tag(TAG + "function")] | Annotated[CustomCall, Tag(TAG + "custom")],
    Discriminator(kind),
]


@shape
class SystemMessage(TypedDict):
    role: Literal["system", "developer"]
    content: _Content
    name: NotRequired[str | None]


@shape
class UserMessage(TypedDict):
    role: Literal["user"]
    content: _UserContent
    name: NotRequired[str | None]


@shape
class AssistantMessage(TypedDict):
    role: Literal["assistant"]
    content: NotRequired[_AssistantContent | None]
    tool_calls: NotRequired[Annotated[list[_AnyCall], Field(fail_fast=True, min_length=1)] | None]
    function_call: NotRequired[CalledFunction | None]
    refusal: NotRequired[str | None]
    name: NotRequired[str | None]
    reasoning_content: NotRequired[str | None]


@shape
class ToolMessage(TypedDict):
    role: Literal["tool"]
    # Images too, which OpenAI refuses here: Claude reads them, and the others say that they do not.
    content: _UserContent
    # Where it is left out, the conversation may still say which call is meant: `history.settle`.
    tool_call_id: NotRequired[str | None]


@shape
class FunctionMessage(TypedDict):
    role: Literal["function"]
    name: Annotated[str, Field(min_length=1)]
    content: NotRequired[str | None]


Message = Annotated[
    Annotated[SystemMessage, Tag(TAG + "system")]
    | Annotated[SystemMessage, Tag(TAG + "developer")]
    | Annotated[UserMessage, Tag(TAG + "user")]
    | Annotated[AssistantMessage, Tag(TAG + "assistant")]
    | Annotated[ToolMessage, Tag(TAG + "tool")]
    | Annotated[FunctionMessage, Tag(TAG + "function")],
    Discriminator(_role),
]
