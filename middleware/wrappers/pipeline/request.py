"""What of a request goes to the reasoner, what to the answerer, and where thoughts stand. Pure.

The answerer finds a thought at the end of the turn it was about, and finds it there again in every
later request: what it once read never changes, so its cache and its signatures stay valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from adapters.protocol import TURN, ChatRequest, Json
from adapters.receipts import Note, Receipt
from adapters.shared.history import text_of
from adapters.shared.search import Searcher

When = Literal["tools", "always", "never"]
Rethink = Literal["once", "on-results", "always"]
OnFailure = Literal["answer", "error"]
_SYSTEM = ("system", "developer")
_SMALL = 32
"""Tokens: titles, and the ping by which Dify checks a credential."""
_ECHOES = frozenset({TURN, "reasoning_content", "reasoning"})
INSTRUCTIONS = (
    "Another assistant will answer this conversation; you think it through first. Work out what "
    "is asked, what is known, what has to be found out and how, and what a good answer holds. "
    "Think in the language of the user. Do not write the answer itself and do not call tools."
)
TEMPLATE = (
    "\n\n<thought>\n{thought}\n</thought>\n"
    "(The thought above was prepared for you about this message. Check it, use what is right in "
    "it, and answer the user without mentioning it.)"
)
_RESULTS = "\n\n<search_results>\n{results}\n</search_results>"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """How a reasoner and an answerer work together, as the config says it."""

    rethink: Rethink = "once"
    reasoner_failure: OnFailure = "answer"
    instructions: str = INSTRUCTIONS
    """What the reasoner is told."""
    template: str = TEMPLATE
    """How the answerer is given the `{thought}`."""
    separator: str = ""
    """Shown between thought and answer."""
    reasoner_fields: Mapping[str, Any] = field(default_factory=lambda: {"max_tokens": 16_384})
    """The reasoner's own parameters; the client's are the answerer's."""
    vision: bool = False
    """The reasoner reads images."""
    search: Searcher | None = None
    search_when: When = "tools"
    search_show: bool = False


@dataclass(frozen=True, slots=True)
class PipelineRequest:
    """One request, as the pipeline reads it."""

    request: ChatRequest
    pipeline: Pipeline

    @property
    def on_user_turn(self) -> bool:
        return self._last_role == "user"

    @property
    def _last_role(self) -> str:
        messages = self.request.messages
        return str(messages[_last(messages)]["role"]) if messages else ""

    @property
    def thinks(self) -> bool:
        """Does this request want a new thought?"""
        if self._skipped() or _point(self.request.messages, len(self.request.messages)) is None:
            return False
        match self.pipeline.rethink:
            case "once":
                return self.on_user_turn
            case "on-results":
                return self._last_role in ("user", "tool")
        return True

    def _skipped(self) -> bool:
        params, thinking = self.request.params, self.request.extra.get("thinking")
        if params.get("reasoning_effort") == "none":
            return True
        if isinstance(thinking, dict) and thinking.get("type") == "disabled":
            return True
        limit = params.get("max_completion_tokens") or params.get("max_tokens")
        return limit is not None and limit <= _SMALL and not self.request.tools

    @property
    def searches(self) -> bool:
        when = self.pipeline.search_when
        wanted = when == "always" or (when == "tools" and bool(self.request.tools))
        return self.pipeline.search is not None and wanted and self.on_user_turn

    def question(self) -> str:
        """What the user said last."""
        return text_of(self.request.messages[_last(self.request.messages)]["content"])

    # The reasoner -------------------------------------------------------------------------------

    def to_reasoner(self, results: str, deadline: float | None) -> tuple[ChatRequest, Receipt]:
        messages = [_without(message, _ECHOES) for message in self.request.messages]
        receipt: Receipt = ()
        if not self.pipeline.vision:
            messages, receipt = _without_images(messages)
        if results:
            asked = _last(messages)
            messages[asked] = _with_text(messages[asked], _RESULTS.replace("{results}", results))
        leading = _leading_system(messages)
        instructions: Json = {"role": "system", "content": self._instructions()}
        effort = self.request.params.get("reasoning_effort")
        wanted = {} if effort is None else {"reasoning_effort": effort}
        return ChatRequest(
            model=self.request.model,
            messages=(*messages[:leading], instructions, *messages[leading:]),
            params={**self.pipeline.reasoner_fields, **wanted},
            configured=frozenset(self.pipeline.reasoner_fields.keys() - wanted.keys()),
            # Whoever wants to stop it in time must hear it thinking.
            call=replace(self.request.call, streamed=True, deadline=deadline),
        ), receipt

    def _instructions(self) -> str:
        tools = [tool[tool.get("type", "function")] for tool in self.request.tools]
        if not tools:
            return self.pipeline.instructions
        lines = "\n".join(f"- {tool['name']}: {tool.get('description') or ''}" for tool in tools)
        return f"{self.pipeline.instructions}\n\nThe other assistant can call these tools:\n{lines}"

    # The answerer -------------------------------------------------------------------------------

    def to_answerer(self, thought: str) -> ChatRequest:
        params = {
            name: value
            for name, value in self.request.params.items()
            if name != "reasoning_effort" or value == "none"
        }
        return replace(self.request, messages=tuple(self._messages(thought)), params=params)

    def _messages(self, thought: str) -> list[Json]:
        messages = self.request.messages
        thoughts = {at: recalled(message) for at, message in enumerate(messages)}
        thoughts[len(messages)] = thought
        placed = {_point(messages, at): text for at, text in thoughts.items() if text}
        answerers: list[Json] = []
        for at, message in enumerate(messages):
            answerers.append(_without(message, _ECHOES))
            if at in placed:
                _place(answerers, self.pipeline.template.replace("{thought}", placed[at]))
        return answerers

    @property
    def lost(self) -> bool:
        """A thought of this round of tools should be known, and is not."""
        turn = None
        for message in reversed(self.request.messages):
            if message["role"] == "user":
                break
            if message["role"] == "assistant":
                turn = message
        return turn is not None and TURN not in turn and not self._skipped()


def recalled(message: Json) -> str:
    """The thought that stood before an assistant turn, if it is remembered."""
    turn = message.get(TURN)
    thought = turn.get("thought") if isinstance(turn, dict) else None
    return thought if isinstance(thought, str) else ""


def _last(messages: Sequence[Json]) -> int:
    """The last that was said: agents put words of their own behind a question."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] not in _SYSTEM:
            return at
    return len(messages) - 1


def _point(messages: Sequence[Json], end: int) -> int | None:
    """The message a thought before `end` is about: the user's last, or the last result."""
    for at in range(end - 1, -1, -1):
        role = messages[at]["role"]
        if role in ("user", "tool"):
            return at
        if role == "assistant":
            return None
    return None


def _place(messages: list[Json], block: str) -> None:
    if messages[-1]["role"] == "user":
        messages[-1] = _with_text(messages[-1], block)
    else:
        messages.append({"role": "user", "content": block.strip()})


def _with_text(message: Json, text: str) -> Json:
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": content + text}
    return {**message, "content": [*content, {"type": "text", "text": text.strip()}]}


def _without(message: Json, names: frozenset[str]) -> Json:
    if not names & message.keys():
        return message
    return {name: value for name, value in message.items() if name not in names}


def _leading_system(messages: Sequence[Json]) -> int:
    for at, message in enumerate(messages):
        if message["role"] not in _SYSTEM:
            return at
    return len(messages)


def _without_images(messages: Sequence[Json]) -> tuple[list[Json], Receipt]:
    """What a reasoner that cannot see is told of images and files."""
    told = [_in_words(message) for message in messages]
    notes = tuple(
        Note("image_not_seen", f"reasoner.messages[{at}]", "told [image] or [file] in its place")
        for at, message in enumerate(messages)
        if told[at] is not message
    )
    return told, notes


def _in_words(message: Json) -> Json:
    content = message.get("content")
    if not isinstance(content, list) or all(part["type"] in _WORDS for part in content):
        return message
    return {**message, "content": [_part_in_words(part) for part in content]}


_WORDS = frozenset({"text", "refusal"})


def _part_in_words(part: Json) -> Json:
    if part["type"] in _WORDS:
        return part
    return {"type": "text", "text": "[image]" if part["type"] == "image_url" else "[file]"}
