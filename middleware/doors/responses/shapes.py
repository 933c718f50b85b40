"""What a Responses request may look like, as types for pydantic to check against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Discriminator, Field, Tag, TypeAdapter
from typing_extensions import TypedDict

from middleware.doors.chat.messages import String, kind, late_body, string_or_list
from middleware.doors.mistakes import TAG

_Text = Annotated[str, Field(min_length=1)]
_ToolName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[\w.-]+$")]
_Positive = Annotated[int, Field(ge=1, lt=2**63)]


class InputText(TypedDict):
    text: str


class InputImage(TypedDict):
    image_url: NotRequired[str | None]
    file_id: NotRequired[str | None]
    detail: NotRequired[str | None]


class InputFile(TypedDict):
    file_data: NotRequired[str | None]
    file_url: NotRequired[str | None]
    file_id: NotRequired[str | None]
    filename: NotRequired[str | None]


class SaidRefusal(TypedDict):
    refusal: str


_Part = Annotated[
    Annotated[InputText, Tag(TAG + "input_text")]
    | Annotated[InputText, Tag(TAG + "output_text")]
    | Annotated[InputText, Tag(TAG + "text")]
    | Annotated[SaidRefusal, Tag(TAG + "refusal")]
    | Annotated[InputImage, Tag(TAG + "input_image")]
    | Annotated[InputFile, Tag(TAG + "input_file")],
    Discriminator(kind),
]
_Content = Annotated[
    String | Annotated[list[_Part], Field(fail_fast=True), Tag(TAG + "list")],
    Discriminator(string_or_list),
]


class MessageItem(TypedDict):
    role: Literal["user", "assistant", "system", "developer"]
    content: _Content


class ReasoningItem(TypedDict):
    summary: NotRequired[list[InputText] | None]
    content: NotRequired[list[InputText] | None]
    encrypted_content: NotRequired[str | None]


class FunctionCallItem(TypedDict):
    call_id: _Text
    name: _Text
    namespace: NotRequired[str | None]
    arguments: NotRequired[str | None]


class CustomCallItem(TypedDict):
    call_id: _Text
    name: _Text
    namespace: NotRequired[str | None]
    input: str


class OutputItem(TypedDict):
    call_id: _Text
    output: _Content


class ReferenceItem(TypedDict):
    id: _Text


class FunctionDeclaration(TypedDict):
    type: Literal["function"]
    name: _ToolName
    description: NotRequired[str | None]
    parameters: NotRequired[dict[str, Any] | None]
    strict: NotRequired[bool | None]


class CustomDeclaration(TypedDict):
    type: Literal["custom"]
    name: _ToolName
    description: NotRequired[str | None]
    format: NotRequired[dict[str, Any] | None]


_OwnTool = Annotated[
    Annotated[FunctionDeclaration, Tag(TAG + "function")]
    | Annotated[CustomDeclaration, Tag(TAG + "custom")],
    Discriminator(kind),
]


class NamespaceDeclaration(TypedDict):
    type: Literal["namespace"]
    name: _ToolName
    description: NotRequired[str | None]
    tools: Annotated[list[_OwnTool], Field(fail_fast=True, max_length=1024)]


class HostedDeclaration(TypedDict):
    """One that OpenAI defines: `web_search` and the like."""

    type: _Text
    description: NotRequired[str | None]
    parameters: NotRequired[dict[str, Any] | None]


def _tool_kind(value: Any) -> str | None:
    found = kind(value)
    return found if found in _OWN or found is None else TAG + "hosted"


_OWN = frozenset({TAG + "function", TAG + "custom", TAG + "namespace"})
_Tool = Annotated[
    Annotated[FunctionDeclaration, Tag(TAG + "function")]
    | Annotated[CustomDeclaration, Tag(TAG + "custom")]
    | Annotated[NamespaceDeclaration, Tag(TAG + "namespace")]
    | Annotated[HostedDeclaration, Tag(TAG + "hosted")],
    Discriminator(_tool_kind),
]
Tools = Annotated[list[_Tool], Field(fail_fast=True, max_length=1024)]


class AdditionalTools(TypedDict):
    tools: Tools


class FoundTools(TypedDict):
    call_id: NotRequired[str | None]
    tools: NotRequired[Tools | None]


class OtherItem(TypedDict):
    """One of a kind that is left out, with a note."""

    type: _Text


_KINDS: Mapping[str, str] = {
    "message": "message",
    "reasoning": "reasoning",
    "function_call": "function_call",
    "custom_tool_call": "custom_tool_call",
    "function_call_output": "output",
    "custom_tool_call_output": "output",
    "item_reference": "item_reference",
    "additional_tools": "additional_tools",
    "tool_search_output": "found",
}


def kind_of(item: Mapping[str, Any]) -> str:
    """The kind of an item; messages and references may leave it out."""
    found = item.get("type")
    if found is None:
        return "item_reference" if item.keys() == {"id"} else "message"
    return found if isinstance(found, str) else ""


def _item_kind(value: Any) -> str | None:
    return TAG + _KINDS.get(kind_of(value), "other") if isinstance(value, dict) else None


Item = Annotated[
    Annotated[MessageItem, Tag(TAG + "message")]
    | Annotated[ReasoningItem, Tag(TAG + "reasoning")]
    | Annotated[FunctionCallItem, Tag(TAG + "function_call")]
    | Annotated[CustomCallItem, Tag(TAG + "custom_tool_call")]
    | Annotated[OutputItem, Tag(TAG + "output")]
    | Annotated[ReferenceItem, Tag(TAG + "item_reference")]
    | Annotated[AdditionalTools, Tag(TAG + "additional_tools")]
    | Annotated[FoundTools, Tag(TAG + "found")]
    | Annotated[OtherItem, Tag(TAG + "other")],
    Discriminator(_item_kind),
]
_Items = Annotated[list[Item], Field(fail_fast=True, min_length=1), Tag(TAG + "list")]
_Input = Annotated[
    Annotated[str, Field(min_length=1), Tag(TAG + "string")] | _Items, Discriminator(string_or_list)
]


class NamedChoice(TypedDict):
    type: _Text
    name: NotRequired[str]
    namespace: NotRequired[str | None]


class AllowedChoices(TypedDict):
    mode: Literal["auto", "required"]
    tools: Annotated[list[NamedChoice], Field(fail_fast=True, min_length=1)]


def _choice_kind(value: Any) -> str:
    if not isinstance(value, dict):
        return TAG + "word"
    return TAG + ("allowed" if value.get("type") == "allowed_tools" else "tool")


_Choice = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag(TAG + "word")]
    | Annotated[AllowedChoices, Tag(TAG + "allowed")]
    | Annotated[NamedChoice, Tag(TAG + "tool")],
    Discriminator(_choice_kind),
]
_Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Reasoning(TypedDict):
    effort: NotRequired[_Effort | None]
    summary: NotRequired[str | None]


class TextFormat(TypedDict):
    type: Literal["text", "json_object", "json_schema"]
    name: NotRequired[Annotated[str, Field(min_length=1, max_length=64)]]
    description: NotRequired[str | None]
    schema: NotRequired[dict[str, Any] | None]
    strict: NotRequired[bool | None]


class TextConfig(TypedDict):
    format: NotRequired[TextFormat | None]
    verbosity: NotRequired[Literal["low", "medium", "high"] | None]


@late_body
class ResponsesBody(TypedDict):
    model: Annotated[str, Field(min_length=1, max_length=256)]
    input: _Input
    instructions: NotRequired[str | None]
    previous_response_id: NotRequired[str | None]
    store: NotRequired[bool | None]
    stream: NotRequired[bool | None]
    stream_options: NotRequired[dict[str, Any] | None]
    tools: NotRequired[Tools | None]
    tool_choice: NotRequired[_Choice | None]
    parallel_tool_calls: NotRequired[bool | None]
    max_output_tokens: NotRequired[_Positive | None]
    max_tool_calls: NotRequired[_Positive | None]
    reasoning: NotRequired[Reasoning | None]
    text: NotRequired[TextConfig | None]
    include: NotRequired[list[str] | None]
    temperature: NotRequired[Annotated[float, Field(ge=0, le=2)] | None]
    top_p: NotRequired[Annotated[float, Field(ge=0, le=1)] | None]
    top_logprobs: NotRequired[Annotated[int, Field(ge=0, le=20)] | None]
    truncation: NotRequired[Literal["auto", "disabled"] | None]
    background: NotRequired[Annotated[bool | None, Field(description="`true` is refused.")]]
    conversation: NotRequired[Annotated[Any, Field(description="Refused.")]]
    prompt: NotRequired[Annotated[Any, Field(description="Refused.")]]
    context_management: NotRequired[Any]
    client_metadata: NotRequired[dict[str, Any] | None]
    metadata: NotRequired[dict[str, Any] | None]
    user: NotRequired[str | None]
    safety_identifier: NotRequired[str | None]
    prompt_cache_key: NotRequired[str | None]
    prompt_cache_options: NotRequired[dict[str, Any] | None]
    prompt_cache_retention: NotRequired[str | None]
    service_tier: NotRequired[str | None]
    moderation: NotRequired[dict[str, Any] | None]


OWN_FIELDS: frozenset[str] = frozenset(ResponsesBody.__annotations__)
"""Fields of OpenAI's; every other one is an extra."""
BODY: TypeAdapter[Any] = TypeAdapter(ResponsesBody)
