"""An OpenAI chat request → the body of `POST /v1/messages`, and what that could not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_, itemgetter
from typing import Any

import orjson

from adapters.claude import parameters
from adapters.claude.breakpoints import limit_breakpoints, with_breakpoints
from adapters.claude.capabilities import Capability
from adapters.claude.content import CACHING, Content
from adapters.claude.conversation import Conversation
from adapters.claude.messages import conversation
from adapters.claude.strict import encode_response_format
from adapters.claude.thinking import Situation, is_on, thought_of
from adapters.claude.tools import (
    WrittenTools,
    choice_in_words,
    encode_choice,
    encode_tools,
    is_forced,
    marked_tools,
)
from adapters.claude.verbatim import as_asked, hosted_tools, own_members, restored
from adapters.options import FLAG, TEXTS, choice, option, whole
from adapters.protocol import ChatRequest, Json, value_class
from adapters.receipts import Note, Notes, Receipt
from adapters.shared.beginnings import array
from adapters.shared.fields import Fields
from adapters.shared.toolbox import Toolbox, tools_text
from adapters.shared.unknown_members import UnknownMembers

# "Extra inputs are not permitted" for sampling fields, even at their default values.
NO_SAMPLING_SINCE = "2026-10-21"
MOST_BREAKPOINTS = 4
LONGEST_PLAIN = 16_384
_value_of = itemgetter(1)
_ASKED_FOR_A_CALL = (
    Note(
        "tool_choice_not_enforced",
        "tool_choice",
        "this model cannot be forced to call a tool: it was asked to",
    ),
)


@dataclass(frozen=True, slots=True)
class Options:
    max_tokens: int | None = option("Longest answer if the client does not say", whole(1))
    error_results: bool = option(
        'A tool\'s result `{"error": …}` says that the tool failed', FLAG, False
    )
    cache: str = option(
        '"auto": where a client sets no cache breakpoint, one is set behind the conversation, so '
        "that what is sent again is not paid in full again",
        choice("off", "auto"),
        "off",
    )
    betas: tuple[str, ...] | None = option(
        "Betas of clients that go up with their requests; at anthropic.com all, if not given", TEXTS
    )


@value_class
class Profile:
    """The model a request is for, and how it is spoken to."""

    capability: Capability
    api_version: str = "2023-06-01"
    options: Options = Options()
    betas: parameters.Betas = field(default_factory=parameters.Betas)

    @property
    def sampling(self) -> bool:
        return self.capability.sampling and self.api_version < NO_SAMPLING_SINCE

    @property
    def room(self) -> int:
        return self.options.max_tokens or self.capability.max_tokens


def encode(
    request: ChatRequest, box: Toolbox, profile: Profile, kept: bool = False
) -> tuple[Json, Receipt]:
    """With `kept` a part of the body may be text that stands there already, as a `Fragment`."""
    native = request.native
    own = {} if native is None else profile.betas.without_theirs(own_members(request, native))
    fields = parameters.without_neutral(*as_asked(request, own))
    capability = profile.capability
    content = Content(capability, _cache_lifetime(fields), profile.options.error_results)
    words = choice_in_words(request, box, capability)
    form, form_in_words = encode_response_format(fields, capability)
    # "Message prefilling: incompatible with JSON outputs"
    said = conversation(request.messages, content, words, form is None, kept)
    content = said.content
    _note_losses(said, fields.notes)
    if form_in_words:
        said.add_system([{"type": "text", "text": form_in_words}])
    written = encode_tools(request, box, capability)
    tools = marked_tools(written, request.tools, content)
    if native is not None:
        content.marked |= native.marked
        if "tools" not in own:
            tools = [*tools, *hosted_tools(native)]
    limit, forced = parameters.token_limit(fields), is_forced(box, capability)
    thought = thought_of(fields, capability, Situation(limit, profile.room, forced, said))
    more = parameters.sampling(fields, profile.sampling, thought.on) | parameters.others(fields)
    if content.marked:
        _limit_breakpoints(said, tools, own, more)
    optional = {
        "system": said.own_system or said.system,
        "tools": tools,
        "tool_choice": encode_choice(box, capability),
        "thinking": thought.thinking,
        "output_config": _output_config(thought.effort, form),
    }
    body = {
        "model": request.model,
        "max_tokens": thought.max_tokens,
        "messages": said.turns,
        **dict(filter(_value_of, optional.items())),
        **_filled(more),
    }
    fields.notes += box.receipt + (_ASKED_FOR_A_CALL if words else ())
    fields.notes += _told_last(said, written, profile)
    receipt = fields.receipt("Claude")
    if native is not None:
        body = _in_own_words(body, own, receipt, profile)
    if profile.options.cache == "auto":
        body = with_breakpoints(body)
    return (_kept_as_text(body, said, written, request) if kept else body), receipt


def _told_last(said: Conversation, written: WrittenTools, profile: Profile) -> Receipt:
    """What is said of messages: a long conversation has much of it, and headers end."""
    told = (*written.receipt, *said.content.notes, *profile.betas.receipt())
    if said.unknown is None and not written.unknown:
        return told
    return told + (said.unknown or UnknownMembers(CACHING)).told(written.unknown, "Claude")


def _limit_breakpoints(said: Conversation, tools: list[Json], own: Json, more: Json) -> None:
    whole = bool(own.get("cache_control") or more.get("cache_control"))
    limit_breakpoints(said, own.get("tools") or tools, MOST_BREAKPOINTS - whole, said.content)


def _kept_as_text(
    body: Json, said: Conversation, written: WrittenTools, request: ChatRequest
) -> Json:
    if said.older.text:
        body["messages"] = array(said.older.text, body["messages"])
    tools, native = body.get("tools"), request.native
    if not tools:
        return body
    if tools is written.tools and written.text is not None:
        body["tools"] = written.text
    elif native is not None and _are(tools, declared := native.value.get("tools")):
        body["tools"] = orjson.Fragment(tools_text(declared, request.call.owner))
    return body


def _are(tools: Sequence[Json], declared: Any) -> bool:
    """Whether they are those, each as it was declared."""
    if tools is declared or not isinstance(declared, tuple):
        return tools is declared
    return len(tools) == len(declared) and all(map(is_, tools, declared))


def _note_losses(said: Conversation, notes: Notes) -> None:
    notes += said.unseen
    if said.content.lifetime and not said.content.lifetime_used:
        text = "it is for the breakpoints without a 'ttl' of their own, and there are none"
        notes.add("parameter_dropped", "prompt_cache_options.ttl", text)


def _in_own_words(body: Json, own: Json, receipt: Receipt, profile: Profile) -> Json:
    """With what the client of Messages said itself."""
    if "system" in body:
        own.pop("system", None)
    thinking = own.get("thinking")
    if thinking is not None and "thinking" not in body and thinking.get("type") != "disabled":
        del own["thinking"]  # it cannot think about this one
    said = restored(own, receipt, profile.sampling)
    if "output_format" in said and "output_config" in body:
        # The older name of the same: Claude takes one of them.
        body["output_config"].pop("format", None)
        body = _filled(body)
    return body | said


def must_stream(body: Json, capability: Capability) -> bool:
    """Whether the answer may take longer than a connection stays open in silence."""
    return body["max_tokens"] > LONGEST_PLAIN or is_on(body.get("thinking"), capability)


def _output_config(effort: str | None, form: Json | None) -> Json | None:
    return _filled({"effort": effort, "format": form}) if effort or form else None


def _filled(members: Mapping[str, Any]) -> Json:
    return {name: value for name, value in members.items() if value or value in (0, "")}


def _cache_lifetime(fields: Fields) -> str | None:
    options: Json | None = fields.take("prompt_cache_options")
    if not options:
        return None
    if options.get("mode") == "implicit":
        text = "Claude caches only what stands before a breakpoint"
        fields.note("parameter_dropped", "prompt_cache_options.mode", text)
    for name in options:
        if name not in ("mode", "ttl"):
            fields.note("parameter_dropped", f"prompt_cache_options.{name}", "Claude has no such")
    return options.get("ttl")
