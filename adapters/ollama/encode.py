"""An OpenAI request as the body of Ollama's `/api/chat`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from adapters.errors import BadRequest
from adapters.ollama.abilities import Abilities
from adapters.ollama.grammar import grammar_subset
from adapters.ollama.messages import written_turns
from adapters.ollama.tools import answer_shape, call_shape, declared, either_shape
from adapters.ollama.window import MINIMUM, Pictures
from adapters.options import DURATION, option, whole
from adapters.protocol import ChatRequest, Json
from adapters.receipts import Receipt
from adapters.shared.fields import Fields, take_thinking, unsupported
from adapters.shared.toolbox import Tool, Toolbox

_SAMPLING = (
    # Named alike in OpenAI's request and in Ollama's options, with the same meaning.
    *("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty", "stop"),
    # Ollama's own, which a client may send beside OpenAI's fields.
    *("top_k", "min_p", "typical_p", "repeat_penalty", "repeat_last_n"),
    *("num_keep", "num_ctx"),
)
_TOP_LEVEL = ("logprobs", "top_logprobs", "keep_alive", "truncate", "shift")
# What is asked for → what is sent, where that is another word.
_EFFORTS: Mapping[str | bool | None, str | bool] = {"none": False, "minimal": "low", "xhigh": "max"}
# gpt-oss has three levels and no off.
_GPT_OSS: Mapping[str | bool | None, str] = {
    None: "low",
    "none": "low",
    "minimal": "low",
    "xhigh": "high",
    "max": "high",
    False: "low",
}
_GPT_OSS_LACKS = ("none", "xhigh", "max", False)


@dataclass(frozen=True, slots=True)
class Options:
    max_tokens: int | None = option("Longest answer if the client does not say", whole(1))
    num_ctx: int | None = option(
        "Context window to ask for; unset, room for the conversation and, once that is outgrown, "
        "the whole of the model",
        whole(1),
    )
    min_num_ctx: int = option("Least context window, if the request decides it", whole(1), MINIMUM)
    keep_alive: int | str | None = option("How long it stays loaded", DURATION)


class EncodedChat(NamedTuple):
    body: Json
    receipt: Receipt
    pictures: Pictures


def encode(
    request: ChatRequest, box: Toolbox, abilities: Abilities, options: Options, kept: bool = False
) -> EncodedChat:
    """With `kept` a part of the body may be text that stands there already, as a `Fragment`."""
    fields = Fields({**request.extra, **request.params})
    carried: Json = {**request.native.value} if request.native else {}
    own = carried.pop("options", {})
    _refuse(fields)
    turns = written_turns(request.messages, abilities, kept)
    fields.notes.add_all(turns.images.notes.receipt() + turns.notes.receipt())
    body: Json = {
        "model": request.model,
        "messages": turns.written.array(),
        # Streaming is the server's default, so a plain request has to say so.
        "stream": request.call.streamed,
    }
    tools = box.offered
    if tools and abilities.tools is False:
        raise _cannot_call(request.model)
    if tools:
        body["tools"], lost = declared(box, kept)
        fields.notes.add_all(lost)
    members = {
        "format": _format(fields, tools, is_call_forced(box)),
        "think": _think(request.model, fields, abilities),
        "keep_alive": options.keep_alive,
        # Else the server cuts the oldest messages off without a word; so it says that it must.
        "truncate": False,
        **carried,
        **fields.take_all(_TOP_LEVEL),
    }
    body |= _given(members)
    body["options"] = _options(fields, options, own)
    for name in ("parallel_tool_calls", "stream_options"):
        fields.take(name)  # kept by us, on the way back
    unknown = turns.unknown.receipt(request, "Ollama")
    receipt = box.receipt + unknown + fields.receipt("Ollama")
    return EncodedChat(body, receipt, turns.pictures)


def _given(members: Json) -> Json:
    return {name: value for name, value in members.items() if value is not None}


def is_call_forced(box: Toolbox) -> bool:
    return box.mode in ("required", "named")


def _refuse(fields: Fields) -> None:
    if (fields.take("n") or 1) > 1:
        raise unsupported("n", "Only one choice is given. Leave 'n' out and ask again for another.")
    if "audio" in (fields.take("modalities") or ()):
        raise unsupported("modalities", "This model answers in text. Ask for ['text'].")
    fields.refuse("audio", "This model answers in text. Leave 'audio' out.")
    fields.refuse(
        "web_search_options",
        "This model does not search the web. Leave 'web_search_options' out; offer a search tool.",
    )


def _cannot_call(model: str) -> BadRequest:
    return unsupported(
        "tools",
        f"The model '{model}' cannot call tools: its server does not list the capability 'tools'. "
        'Choose one that can, or set `tools = "emulated"` for this model in the config.',
    )


def _format(fields: Fields, tools: tuple[Tool, ...], must_call: bool) -> Any:
    """A grammar is the only guarantee this server gives, also for a call that must be made."""
    answer, name = answer_shape(fields.take("response_format")), "response_format"
    if answer is None:
        answer, name = fields.take("format"), "format"
    fields.lose("format", "response_format says what it is")
    if isinstance(answer, dict):
        answer, lost = grammar_subset(answer)
        if lost:
            text = f"not enforced, its grammar cannot say it: {', '.join(lost)}"
            fields.note("schema_reduced", name, text)
    if not tools or (answer is None and not must_call):
        return answer
    call = grammar_subset(call_shape(tools))[0]  # arguments are checked when they come
    return call if must_call else either_shape(call, answer)


def _think(model: str, fields: Fields, abilities: Abilities) -> str | bool | None:
    name, asked = _asked_to_think(fields)
    if abilities.thinking is False:
        if asked not in (None, False, "none"):
            fields.note("thinking_dropped", name, "this model does not think")
        return None  # it answers a 400 even to `true`
    if "gpt-oss" not in model and abilities.family not in ("gptoss", "gpt-oss"):
        return _EFFORTS.get(asked, asked)
    level = _GPT_OSS.get(asked, asked)
    if asked in _GPT_OSS_LACKS:
        fields.note("reasoning_effort_changed", name, f"{asked} was sent as {level}")
    return level


def _asked_to_think(fields: Fields) -> tuple[str, str | bool | None]:
    """The field that counts, and what it says: a vendor's own word outranks OpenAI's."""
    own, vendor, effort = fields.take("think"), take_thinking(fields), "reasoning_effort"
    if not isinstance(own, str | bool | None):
        raise BadRequest("'think' must be true, false or a level such as 'high'.", param="think")
    said: Json = _given({"think": own, "thinking": vendor, effort: fields.take(effort)})
    name = next(iter(said), effort)
    asked: str | bool | None = said.get(name)
    for other, value in said.items():
        if _EFFORTS.get(value, value) != _EFFORTS.get(asked, asked):
            fields.note("parameter_dropped", other, f"'{name}' outranks it")
    return name, asked


def _limit(fields: Fields) -> int | None:
    """The first of its names that is there counts."""
    said = fields.take_all(("num_predict", "max_completion_tokens", "max_tokens"))
    limit: int | None = next(iter(said.values()), None)
    for name, value in said.items():
        if value != limit:
            fields.note("parameter_dropped", name, f"'{next(iter(said))}' is the one that counts")
    return limit


def _options(fields: Fields, configured: Options, own: Json) -> Json:
    """Collect sampling and limits; what a client says in Ollama's own words outranks.

    `own` comes from Ollama's clients: what stands in a field beside it can only be the config's.
    """
    said = _given({"num_predict": _limit(fields) or None, **fields.take_all(_SAMPLING)})
    native = fields.take("options") or {}
    if not isinstance(native, dict):
        raise BadRequest("'options' must be an object, as Ollama's API has it.", param="options")
    for name in said:
        if native.get(name, said[name]) != said[name]:
            field = "max_tokens" if name == "num_predict" else name
            fields.note("parameter_dropped", field, "'options' outranks it")
    defaults = {"num_predict": configured.max_tokens, "num_ctx": configured.num_ctx}
    options = _given(defaults) | own | said | native
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]
    return options
