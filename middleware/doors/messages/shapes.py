"""What a Messages request may look like, as types for pydantic to check against.

Only what is read here is checked: blocks and tools come from many versions of the API, and what is
new goes to Claude as it is. SDKs send back what they got, so whatever may be left out may be null.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Discriminator, Field, Tag, TypeAdapter
from typing_extensions import TypedDict

from middleware.doors.chat.messages import String, late_body, shape, string_or_list
from middleware.doors.mistakes import TAG

_WITHIN_RESULTS = frozenset(("text", "image", "document"))
_READ = _WITHIN_RESULTS | {"thinking", "redacted_thinking", "tool_use", "tool_result"}


def _kind(value: Any) -> str | None:
    return _tag(value, _READ)


def _kind_within(value: Any) -> str | None:
    return _tag(value, _WITHIN_RESULTS)


def _tag(value: Any, known: frozenset[str]) -> str | None:
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    return TAG + (kind if isinstance(kind, str) and kind in known else "other")


@shape
class TextBlock(TypedDict):
    type: Literal["text"]
    text: str


@shape
class SourceBlock(TypedDict):
    """An image or a document."""

    type: Literal["image", "document"]
    source: dict[str, Any]


@shape
class ThoughtBlock(TypedDict):
    type: Literal["thinking"]
    thinking: str
    signature: NotRequired[str | None]


@shape
class RedactedBlock(TypedDict):
    type: Literal["redacted_thinking"]
    data: str


@shape
class CallBlock(TypedDict):
    type: Literal["tool_use"]
    id: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(min_length=1)]
    input: NotRequired[dict[str, Any] | None]


@shape
class OtherBlock(TypedDict):
    """Goes to Claude as it is, and is named elsewhere."""

    type: str


_Text = Annotated[TextBlock, Tag(TAG + "text")]
_Image = Annotated[SourceBlock, Tag(TAG + "image")]
_Document = Annotated[SourceBlock, Tag(TAG + "document")]
_Other = Annotated[OtherBlock, Tag(TAG + "other")]
_Within = Annotated[_Text | _Image | _Document | _Other, Discriminator(_kind_within)]
_WithinList = Annotated[list[_Within], Field(fail_fast=True), Tag(TAG + "list")]


@shape
class ResultBlock(TypedDict):
    type: Literal["tool_result"]
    tool_use_id: Annotated[str, Field(min_length=1)]
    content: NotRequired[
        Annotated[String | _WithinList, Discriminator(string_or_list)] | None
    ]  # fmt: skip
    is_error: NotRequired[bool | None]


_Block = Annotated[
    _Text
    | _Image
    | _Document
    | Annotated[ThoughtBlock, Tag(TAG + "thinking")]
    | Annotated[RedactedBlock, Tag(TAG + "redacted_thinking")]
    | Annotated[CallBlock, Tag(TAG + "tool_use")]
    | Annotated[ResultBlock, Tag(TAG + "tool_result")]
    | _Other,
    Discriminator(_kind),
]
_BlockList = Annotated[list[_Block], Field(fail_fast=True), Tag(TAG + "list")]
_TextList = Annotated[list[TextBlock], Field(fail_fast=True), Tag(TAG + "list")]


@shape
class ClientTurn(TypedDict):
    role: Literal["user", "assistant", "system"]
    content: Annotated[String | _BlockList, Discriminator(string_or_list)]


def _tool_kind(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    return TAG + ("custom" if value.get("type") in (None, "custom") else "hosted")


@shape
class OwnTool(TypedDict):
    """A tool of the client's own."""

    name: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\w.-]+$")]
    description: NotRequired[str | None]
    input_schema: dict[str, Any]
    strict: NotRequired[bool | None]


@shape
class HostedTool(TypedDict):
    """One that Anthropic runs, or describes."""

    type: str
    name: NotRequired[str | None]


_Tool = Annotated[
    Annotated[OwnTool, Tag(TAG + "custom")] | Annotated[HostedTool, Tag(TAG + "hosted")],
    Discriminator(_tool_kind),
]


Tools = Annotated[list[_Tool], Field(fail_fast=True, max_length=1024)]


@shape
class ToolUseChoice(TypedDict):
    type: Literal["auto", "any", "tool", "none"]
    name: NotRequired[str | None]
    disable_parallel_tool_use: NotRequired[bool | None]


@shape
class EffortAndFormat(TypedDict):
    effort: NotRequired[Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None]
    format: NotRequired[dict[str, Any] | None]


@late_body
class CountedBody(TypedDict):
    """What there is to count."""

    model: Annotated[str, Field(min_length=1, max_length=256)]
    messages: Annotated[list[ClientTurn], Field(fail_fast=True, min_length=1)]
    system: NotRequired[Annotated[String | _TextList, Discriminator(string_or_list)] | None]
    tools: NotRequired[Tools | None]
    tool_choice: NotRequired[ToolUseChoice | None]
    thinking: NotRequired[dict[str, Any] | None]
    output_config: NotRequired[EffortAndFormat | None]
    output_format: NotRequired[dict[str, Any] | None]


@late_body
class MessagesBody(CountedBody):
    max_tokens: Annotated[int, Field(ge=0, lt=2**63)]
    stream: NotRequired[bool | None]
    stop_sequences: NotRequired[Annotated[list[str], Field(max_length=1024)] | None]
    temperature: NotRequired[Annotated[float, Field(ge=0, le=2)] | None]
    top_p: NotRequired[Annotated[float, Field(ge=0, le=1)] | None]
    top_k: NotRequired[int | None]
    metadata: NotRequired[dict[str, Any] | None]


COUNTED: TypeAdapter[Any] = TypeAdapter(CountedBody)
REQUEST: TypeAdapter[Any] = TypeAdapter(MessagesBody)
