"""What requests to Ollama's `/api/chat` and `/api/generate` may look like.

Only what is read is checked: Go, in which Ollama is written, passes over members it does not know,
and null means that a member is not there.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Discriminator, Field, Tag, TypeAdapter
from typing_extensions import TypedDict

from middleware.doors.chat.messages import String, TextPart, late_body, shape, string_or_list
from middleware.doors.chat.shapes import Function
from middleware.doors.mistakes import TAG

_Unit = Annotated[float, Field(ge=0, le=1)]
_Penalty = Annotated[float, Field(ge=-2, le=2)]
_StopList = Annotated[list[str], Field(max_length=64), Tag(TAG + "list")]
_Stop = Annotated[String | _StopList, Discriminator(string_or_list)]
_Images = Annotated[list[str], Field(fail_fast=True)]
_Content = Annotated[
    # A list is OpenAI's; some clients send it here too.
    String | Annotated[list[TextPart], Field(fail_fast=True), Tag(TAG + "list")],
    Discriminator(string_or_list),
]


@shape
class SentFunction(TypedDict):
    name: Annotated[str, Field(min_length=1)]
    arguments: NotRequired[Any]


@shape
class SentCall(TypedDict):
    function: SentFunction
    id: NotRequired[str | None]


@shape
class SentMessage(TypedDict):
    role: str
    content: NotRequired[_Content | None]
    images: NotRequired[_Images | None]
    thinking: NotRequired[str | None]
    tool_calls: NotRequired[Annotated[list[SentCall], Field(fail_fast=True)] | None]
    tool_name: NotRequired[str | None]
    name: NotRequired[str | None]
    tool_call_id: NotRequired[str | None]


@shape
class SentTool(TypedDict):
    function: Function
    type: NotRequired[str | None]


Tools = Annotated[list[SentTool], Field(fail_fast=True, max_length=1024)]


@shape
class SamplingOptions(TypedDict):
    temperature: NotRequired[Annotated[float, Field(ge=0, le=2)] | None]
    top_p: NotRequired[_Unit | None]
    seed: NotRequired[int | None]
    presence_penalty: NotRequired[_Penalty | None]
    frequency_penalty: NotRequired[_Penalty | None]
    stop: NotRequired[_Stop | None]
    num_predict: NotRequired[int | None]


@shape
class _Body(TypedDict):
    model: Annotated[str, Field(min_length=1, max_length=256)]
    stream: NotRequired[bool | None]
    format: NotRequired[Any]
    """`json`, or a JSON schema."""
    think: NotRequired[Any]
    """True, false, or `low`, `medium`, `high`, `max`."""
    options: NotRequired[SamplingOptions | None]
    keep_alive: NotRequired[Any]
    logprobs: NotRequired[bool | None]
    top_logprobs: NotRequired[int | None]


@late_body
class OllamaChatBody(_Body):
    messages: NotRequired[Annotated[list[SentMessage], Field(fail_fast=True)] | None]
    """Without any nothing is asked: it says that the model is loaded."""
    tools: NotRequired[Tools | None]


@late_body
class GenerateBody(_Body):
    prompt: NotRequired[str | None]
    """Without one nothing is asked, as above."""
    system: NotRequired[str | None]
    images: NotRequired[_Images | None]
    suffix: NotRequired[str | None]


CHAT: TypeAdapter[Any] = TypeAdapter(OllamaChatBody)
GENERATE: TypeAdapter[Any] = TypeAdapter(GenerateBody)
