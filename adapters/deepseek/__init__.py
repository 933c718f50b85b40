"""DeepSeek: chat completions with rules of its own for thinking, and few of OpenAI's fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import orjson

from adapters.compatible import PATH, EncodedRequest, chosen, exchange, limit, one_choice
from adapters.deepseek.messages import Manner, written_messages
from adapters.errors import BadRequest
from adapters.kind import CommonAbilities, Kind, Service, Settings
from adapters.leaf import Leaf
from adapters.options import ANY_TEXT, made, option, whole
from adapters.protocol import ChatRequest, Events, Json, Planned
from adapters.receipts import Note, Receipt
from adapters.shared.cache import bounded, fitted
from adapters.shared.fields import Fields, take_thinking, unsupported
from adapters.shared.history import text_of
from adapters.shared.model_list import Listed, models_at
from adapters.shared.toolbox import REMEMBERED, Tool, Toolbox, alias, declared_tools, toolbox
from adapters.wire.exchange import converse
from adapters.wire.http import Link

_MOST_TOOLS, _MOST_STOPS = 128, 16
# Only these go up as they are: an unknown field may be a 422.
_CARRIED = (
    *("temperature", "top_p", "presence_penalty", "frequency_penalty"),
    *("logprobs", "top_logprobs", "stop"),
)
PLAIN = "deepseek-chat"
"""The one model that does not think unless asked to."""
_SAMPLING = ("temperature", "presence_penalty", "frequency_penalty")
EFFORT: Mapping[str, str] = {
    "minimal": "low",
    "low": "low",
    "medium": "high",
    "high": "high",
    "xhigh": "high",
    "max": "max",
}


@dataclass(frozen=True, slots=True)
class Options:
    max_tokens: int | None = option("Longest answer if the client does not say", whole(1))
    reasoning_filler: str = option(
        "Stands for thoughts nobody kept; a space for accounts that refuse the empty text",
        ANY_TEXT,
        "",
    )


@dataclass(frozen=True, slots=True)
class Habits:
    """What the config says of one model."""

    may_think: bool = True
    vision: bool | None = None
    """Unset: the flash models read images."""
    beta: bool = False
    """The beta address has strict tools and prefilled answers."""
    filler: str = ""
    """Stands for thoughts nobody kept; a space for accounts that refuse the empty string."""
    longest: int | None = None


def encode(request: ChatRequest, habits: Habits, kept: bool = False) -> EncodedRequest:
    """With `kept` a part of the body may be text that stands there already, as a `Fragment`."""
    fields, box = Fields({**request.extra, **request.params}), toolbox(request)
    _refuse(fields)
    thinks, thinking = _thinking(request.model, box, habits, fields)
    # What a form of the answer needs is put between the messages.
    kept_too = kept and "response_format" not in request.params
    messages = written_messages(request.messages, _manner(request.model, thinks, habits), kept_too)
    fields.notes.add_all(messages.images.notes.receipt() + messages.notes.receipt())
    body: Json = {
        "model": request.model,
        "messages": messages.written.array(),
        **thinking,
        **_functions(box, habits.beta, kept, fields),
        **_choice(request, box, thinks, fields),
        **_response_format(messages.written.younger, fields),
        **_scalars(fields, thinks, habits),
    }
    if request.call.streamed:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    unknown = messages.unknown.receipt(request, "DeepSeek")
    return EncodedRequest(body, box.receipt + unknown + fields.receipt("DeepSeek"), box)


def _manner(model: str, thinks: bool, habits: Habits) -> Manner:
    vision = "flash" in model if habits.vision is None else habits.vision
    return Manner(vision, habits.filler if thinks else None, habits.beta)


def _refuse(fields: Fields) -> None:
    """What would change the meaning of the request if it were left out."""
    one_choice(fields)
    if "audio" in (fields.take("modalities") or ()):
        raise unsupported("modalities", "DeepSeek answers in text only. Leave 'modalities' out.")
    fields.refuse("audio", "DeepSeek answers in text only. Leave 'audio' out.")
    fields.refuse(
        "web_search_options", "DeepSeek does not search the web. Give the model a search tool."
    )


def _thinking(model: str, box: Toolbox, habits: Habits, fields: Fields) -> tuple[bool, Json]:
    """Whether it will think, and how that is said: by default yes, except the old plain model."""
    asked, effort = take_thinking(fields), fields.take("reasoning_effort")
    wanted, by_default = _wanted(asked, effort), model != PLAIN
    on = by_default if wanted is None else wanted
    if on and not habits.may_think:
        if wanted:
            name = "thinking" if asked else "reasoning_effort"
            fields.note("thinking_dropped", name, "the config says this model does not think")
        on = False
    elif on and box.mode in ("required", "named"):
        # "Thinking mode does not support this tool_choice"; the call is what the client insists on.
        fields.note("thinking_disabled", "tool_choice", "it cannot think before a forced call")
        on = False
    members: Json = _effort(effort, on, fields)
    if wanted is not None or on != by_default:
        members["thinking"] = {"type": "enabled" if on else "disabled"}
    return on, members


def _effort(effort: str | None, thinks: bool, fields: Fields) -> Json:
    if effort is None or (effort == "none" and not thinks):
        return {}
    level = EFFORT.get(effort) if thinks else None
    if level is None:
        state = "on" if thinks else "off"
        fields.note("effort_dropped", "reasoning_effort", f"thinking is {state} for this call")
        return {}
    if level != effort:
        fields.note("effort_approximated", "reasoning_effort", f"'{effort}' is '{level}' here")
    return {"reasoning_effort": level}


def _wanted(asked: bool | None, effort: str | None) -> bool | None:
    """Its own `thinking` outranks the effort."""
    if asked is None and effort is not None:
        return effort != "none"
    return asked


def _choice(request: ChatRequest, box: Toolbox, thinks: bool, fields: Fields) -> Json:
    fields.take("parallel_tool_calls")  # kept by us, on the way back
    # While it thinks, some of its endpoints refuse the parameter as such.
    asked = box.mode != "auto" or (request.tool_choice is not None and not thinks)
    return {"tool_choice": chosen(box)} if box.tools and asked else {}


def _functions(box: Toolbox, beta: bool, kept: bool, fields: Fields) -> Json:
    if not box.tools:
        return {}
    if len(box.tools) > _MOST_TOOLS:
        text = f"DeepSeek takes at most {_MOST_TOOLS} tools, not {len(box.tools)}. Send fewer."
        raise BadRequest(text, param="tools")
    if kept and box.key:
        text_of_tools, lost = _kept_functions(box.key, beta)
        fields.notes.add_all(lost)
        return {"tools": text_of_tools}
    fields.notes.add_all(() if beta else _lost(box.tools))
    return {"tools": [_function(tool, beta) for tool in box.tools]}


@bounded(REMEMBERED)
def _kept_functions(key: bytes, beta: bool) -> tuple[orjson.Fragment, Receipt]:
    tools = declared_tools(key).tools
    text = orjson.dumps([_function(tool, beta) for tool in tools])
    return orjson.Fragment(fitted(text)), () if beta else _lost(tools)


def _function(tool: Tool, beta: bool) -> Json:
    said: Json = {"name": tool.name, "parameters": tool.parameters}
    if tool.description:
        said["description"] = tool.description
    if tool.strict and beta:
        said["strict"] = True
    return {"type": "function", "function": said}


def _lost(tools: Iterable[Tool]) -> Receipt:
    text = "only its beta address has strict tools"
    return tuple(Note("strict_dropped", f"tools.{one.name}", text) for one in tools if one.strict)


def _response_format(messages: list[Json], fields: Fields) -> Json:
    """JSON mode needs the word in the prompt; a schema can only be asked for."""
    wanted = fields.take("response_format") or {}
    if wanted.get("type") == "json_schema":
        schema = wanted["json_schema"].get("schema") or {}
        text = "Answer with one JSON object that fits this JSON Schema, and nothing else:\n"
        _instruct(messages, text + orjson.dumps(schema).decode())
        text = "the schema is asked for in the prompt, not enforced"
        fields.note("json_schema_as_prompt", "response_format", text)
    elif wanted.get("type") != "json_object":
        return {}
    elif not any("json" in text_of(message["content"]).lower() for message in _opening(messages)):
        _instruct(messages, "Answer with one JSON object, and nothing else.")
        text = "DeepSeek's JSON mode needs the word in the prompt: it was put there"
        fields.note("json_word_added", "response_format", text)
    return {"response_format": {"type": "json_object"}}


def _opening(messages: list[Json]) -> list[Json]:
    """Up to the first user message: later turns must not change what was put before them."""
    roles = [message["role"] for message in messages]
    return messages[: roles.index("user") + 1] if "user" in roles else messages


def _instruct(messages: list[Json], text: str) -> None:
    """Behind the leading system messages, where it stays the same from turn to turn."""
    roles = [message["role"] for message in messages]
    place = next((k for k, role in enumerate(roles) if role != "system"), len(roles))
    messages.insert(place, {"role": "system", "content": text})


def _scalars(fields: Fields, thinks: bool, habits: Habits) -> Json:
    found = fields.take_all(_CARRIED) | limit(fields, "max_tokens", habits.longest)
    if user := _user(fields):
        found["user_id"] = user
    stops = found.get("stop")
    if isinstance(stops, list) and len(stops) > _MOST_STOPS:
        text = f"DeepSeek takes at most {_MOST_STOPS} stop sequences. Send fewer."
        raise BadRequest(text, param="stop")
    for name in _SAMPLING:
        if thinks and name in found:
            fields.note("sampling_ignored", name, "it has no effect while DeepSeek thinks")
    return found


def _user(fields: Fields) -> str | None:
    """The end user, for DeepSeek's own isolation, in the characters it takes."""
    for name in ("user_id", "user", "safety_identifier"):
        given = fields.take(name)
        if given:
            known = alias(str(given))
            if known != given:
                fields.note("user_aliased", name, "sent in DeepSeek's characters")
            return known
    return None


@dataclass(frozen=True, slots=True)
class DeepSeek(Leaf):
    link: Link
    habits: Habits = Habits()

    def stream(self, request: ChatRequest) -> Events:
        written = encode(request, self.habits, kept=True)
        return converse(self.link, exchange(written, request.call), request.call)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        body, receipt, _ = encode(request, self.habits)
        return (Planned(self.link.name, self.link.url(PATH), body, receipt),)

    def may_think(self, request: ChatRequest) -> bool:
        asked = take_thinking(Fields(request.extra))
        wanted = _wanted(asked, request.params.get("reasoning_effort"))
        return self.habits.may_think and (request.model != PLAIN if wanted is None else wanted)

    async def models(self) -> Listed:
        return await models_at(self.link, "/models")


def connect(settings: Settings[Options]) -> DeepSeek:
    path = urlsplit(settings.link.base_url).path.rstrip("/")
    said = made(CommonAbilities, settings.abilities)
    habits = Habits(
        may_think=said.thinking not in (False, "off"),
        vision=said.vision,
        beta=path.endswith("/beta"),
        filler=settings.options.reasoning_filler,
        longest=settings.options.max_tokens,
    )
    return DeepSeek(settings.link, habits)


KIND = Kind(
    name="deepseek",
    about="DeepSeek: chat completions with rules of its own for thinking.",
    connect=connect,
    options=Options,
    base_url="https://api.deepseek.com",
    endings=(PATH,),
    timeouts={"first_event": 600},  # it queues in silence for minutes, and is healthy
    catalog=("deepseek/", ""),
    services={"deepseek": Service("deepseek", variable="DEEPSEEK_API_KEY")},
)
