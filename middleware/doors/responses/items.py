"""Input items → the messages of a chat.

Most items are a message by themselves (`alone`); what the assistant said, thought and called
between two others is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from adapters.errors import BadRequest
from adapters.protocol import RESULT_OF, Json
from adapters.receipts import Notes
from adapters.shared.history import MOST_REWRITTEN, with_canonical_calls
from middleware.doors.responses.content import result_content, text_of_parts, user_content
from middleware.doors.responses.shapes import kind_of
from middleware.doors.responses.thoughts import SealedThought, as_members, summary_text, unsealed
from middleware.doors.responses.tools import flat_name

_PAIRED = ("local_shell_call", "shell_call", "apply_patch_call", "tool_search_call")
"""Calls of tools that OpenAI defines: with its output each is as good as a function's."""
_OUTPUTS: Mapping[str, str] = {
    **{f"{kind}_output": kind for kind in _PAIRED},
    "tool_search_output": "tool_search_call",
}
_FUNCTIONS = frozenset({"local_shell_call", "local_shell", "tool_search_call", "tool_search"})
"""Those that are functions here, declared too."""
_ABOUT = frozenset({"type", "id", "call_id", "status"})


@dataclass(slots=True)
class _Turn:
    """What the assistant did between two others."""

    texts: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    calls: list[Json] = field(default_factory=list)
    thoughts: list[SealedThought] = field(default_factory=list)

    def copy(self) -> _Turn:
        return _Turn([*self.texts], [*self.refusals], [*self.calls], [*self.thoughts])

    def message(self) -> Json:
        said: Json = {"role": "assistant", "content": "".join(self.texts) or None}
        if self.refusals:
            said["refusal"] = "".join(self.refusals)
        if self.calls:
            said["tool_calls"] = self.calls
        return said | as_members(self.thoughts)


@dataclass(slots=True)
class ItemReader:
    """Reads items one by one; `finish` returns the messages, their calls in one form."""

    notes: Notes
    secret: bytes = b""
    """Opens the thoughts that clients carry."""
    repair: bool = False
    """Calls without results, and results without calls, are mended later on."""
    canonical: bool = False
    """Arguments are in their one form."""
    messages: list[Json] = field(default_factory=list)
    tools: list[tuple[str, list[Json]]] = field(default_factory=list)
    """Those that are declared among the items, and where."""
    found: list[tuple[str, list[Json]]] = field(default_factory=list)
    """Those that a search of the client found, likewise."""
    regular: bool = True
    """Each round of calls has its results behind it, and each turn says something."""
    _turn: _Turn | None = None
    _waiting: dict[str, None] = field(default_factory=dict)
    """Calls without a result so far."""
    _answered: set[str] = field(default_factory=set)
    _pairs: Mapping[str, int] = field(default_factory=dict)
    _room: int = MOST_REWRITTEN

    def copy(self) -> ItemReader:
        # Written out, as `replace` looks at each field.
        return ItemReader(
            self.notes.copy(),
            self.secret,
            self.repair,
            self.canonical,
            [*self.messages],
            [*self.tools],
            [*self.found],
            self.regular,
            self._turn and self._turn.copy(),
            self._waiting.copy(),
            self._answered.copy(),
            self._pairs,
            self._room,
        )

    def add(self, said: Json) -> None:
        """Read one of the request's own input, as `alone` has it."""
        role = said.get("role")
        if role == "assistant":
            self._speak(said)
        elif role == "tool":
            self._result(said)
        elif role is not None:
            self._end_turn()
            self._end_round()
            self.messages.append(said)
        else:
            self._reasoning(said)

    def read(self, items: Iterable[tuple[str, Json]]) -> list[Json]:
        """`items` with where each stands."""
        placed = [*items]
        self._pairs = _paired(item for _, item in placed)
        for where, item in placed:
            self._take(item, where)
        return self.finish()

    def _take(self, item: Json, where: str) -> None:
        kind = kind_of(item)
        if kind in _RESULTS:
            self._require_called(item["call_id"])
        if kind in REGULAR:
            self.add(alone(item, where))
        elif kind == "additional_tools":
            self.tools.append((f"{where}.tools", item["tools"]))
        else:
            self._take_other(kind, item, where)

    def finish(self) -> list[Json]:
        self._end_turn()
        self._end_round()
        if self._waiting and not self.repair:
            identity = next(iter(self._waiting))
            raise _unpaired(f"No tool output found for function call {identity}.")
        return self.messages

    # What is said --------------------------------------------------------------------------------

    def _speak(self, said: Json) -> None:
        turn = self._open_turn()
        if said["content"] is not None:
            turn.texts.append(said["content"])
        if "refusal" in said:
            turn.refusals.append(said["refusal"])
        for call in said.get("tool_calls", ()):
            turn.calls.append(call)
            self.regular = self.regular and call["id"] not in self._waiting
            self._waiting[call["id"]] = None

    def _reasoning(self, item: Json) -> None:
        carried = item.get("encrypted_content")
        thought = SealedThought(summary_text(item))
        if carried:
            opened = unsealed(carried, self.secret)
            if opened is None:
                text = "thoughts that are sealed, and not by this gateway, were left out"
                self.notes.add("thoughts_left", "", text)
                return
            thought = opened
        turn = self._open_turn()
        thought.leads = not (turn.texts or turn.calls)
        turn.thoughts.append(thought)

    def _result(self, said: Json) -> None:
        identity = said["tool_call_id"]
        self._require_called(identity)
        if not identity or identity not in self._waiting:
            self.regular = False
        self._waiting.pop(identity, None)
        self._answered.add(identity)
        self.messages.append(said)

    def _require_called(self, identity: str) -> None:
        self._end_turn()
        if identity not in self._waiting and identity not in self._answered and not self.repair:
            text = f"No tool call found for function call output with call_id {identity}."
            raise _unpaired(text)

    # What chat has nothing like ------------------------------------------------------------------

    def _take_other(self, kind: str, item: Json, where: str) -> None:
        if kind == "compaction_trigger":
            raise BadRequest(
                "This gateway does not compact conversations: leave the item "
                "'compaction_trigger' out, and shorten the input yourself.",
                code="unsupported_parameter",
                param=where,
            )
        identity = _identity(item)
        if self._pairs.get(identity) == 2 and (kind in _PAIRED or kind in _OUTPUTS):
            if kind.removesuffix("_output") not in _FUNCTIONS:
                text = f"an item '{kind}' was sent as a function's"
                self.notes.add("item_as_function", where, text)
            if item.get("tools"):
                self.found.append((f"{where}.tools", item["tools"]))
            self._take_pair(kind, identity, item)
        else:
            text = f"an item '{kind[:60]}', for which the model has no place"
            self.notes.add("item_dropped", where, text)

    def _take_pair(self, kind: str, identity: str, item: Json) -> None:
        rest = {name: value for name, value in item.items() if name not in _ABOUT}
        if kind in _PAIRED:
            name = kind.removesuffix("_call")
            self.add(_calling("function", identity, name, _arguments(item, rest)))
            return
        output = item.get("output")
        said = output if isinstance(output, str) else _dumped(rest)
        self.add(_giving(identity, said, ""))

    # -- ------------------------------------------------------------------------------------------

    def _open_turn(self) -> _Turn:
        if self._turn is None:
            self._end_round()
            self._turn = _Turn()
        return self._turn

    def _end_turn(self) -> None:
        if self._turn is None:
            return
        message = self._turn.message()
        if message["content"] is None and not self._turn.calls:
            self.regular = False
        if not self.canonical:
            message, self._room = with_canonical_calls(message, self._room)
        self.messages.append(message)
        self._turn = None
        self._answered.clear()

    def _end_round(self) -> None:
        if self._waiting:
            self.regular = False


def _paired(items: Iterable[Json]) -> Mapping[str, int]:
    """How many halves of its pair each call of a tool of OpenAI's has: 2 are both."""
    halves: dict[str, set[bool]] = {}
    for item in items:
        kind = kind_of(item)
        if kind in _PAIRED or kind in _OUTPUTS:
            halves.setdefault(_identity(item), set()).add(kind in _OUTPUTS)
    return {identity: len(found) for identity, found in halves.items()}


def _identity(item: Json) -> str:
    return str(item.get("call_id") or item.get("id") or "")


def _arguments(item: Json, rest: Json) -> str:
    """As the model wrote them, where it called a tool that was declared as a function."""
    action = item.get("action")
    if isinstance(action, dict):
        rest = {name: value for name, value in action.items() if value and name != "type"}
    said = item.get("arguments") or rest
    return said if isinstance(said, str) else _dumped(said)


def _dumped(rest: Json) -> str:
    return orjson.dumps(rest).decode()


def _unpaired(text: str) -> BadRequest:
    return BadRequest(text, code="invalid_tool_history", param="input")


# Messages by themselves ---------------------------------------------------------------------------


def alone(item: Json, where: str) -> Json:
    """The message that a regular item is where nothing else is of its turn; a thought is none."""
    return _ALONE[kind_of(item)](item, where)


def _message(item: Json, where: str) -> Json:
    role, content = item["role"], item["content"]
    if role == "assistant":
        return _spoken(content)
    if role == "user":
        return {"role": role, "content": user_content(content, where)}
    return {"role": role, "content": text_of_parts(content, where)}


def _spoken(content: str | list[Json]) -> Json:
    if isinstance(content, str):
        return {"role": "assistant", "content": content or None}
    texts, refusals = _all(content, "text"), _all(content, "refusal")
    said = {"role": "assistant", "content": "".join(texts) or None}
    return {**said, "refusal": "".join(refusals)} if refusals else said


def _all(parts: list[Json], member: str) -> list[str]:
    return [part[member] for part in parts if member in part]


def _thought(item: Json, _: str) -> Json:
    """Without a role, which says that something is a message; a client may write one here too."""
    return {name: item[name] for name in item if name != "role"} if "role" in item else item


def _function_call(item: Json, _: str) -> Json:
    name = flat_name(item.get("namespace"), item["name"])
    return _calling("function", item["call_id"], name, item.get("arguments") or "{}")


def _custom_call(item: Json, _: str) -> Json:
    name = flat_name(item.get("namespace"), item["name"])
    return _calling("custom", item["call_id"], name, item["input"])


def _calling(kind: str, identity: str, name: str, said: str) -> Json:
    key = "input" if kind == "custom" else "arguments"
    call = {"id": identity, "type": kind, kind: {"name": name, key: said}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _output(item: Json, where: str) -> Json:
    return _giving(item["call_id"], item["output"], f"{where}.output")


def _giving(identity: str, output: str | list[Json], where: str) -> Json:
    content = result_content(output, where)
    said = {"role": "tool", "tool_call_id": identity, "content": content}
    # Where a language has no place for images in results, its leaf finds them another.
    return said if isinstance(content, str) else {**said, RESULT_OF: "client"}


_ALONE: Mapping[str, Callable[[Json, str], Json]] = {
    "message": _message,
    "reasoning": _thought,
    "function_call": _function_call,
    "custom_tool_call": _custom_call,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
}
REGULAR = _ALONE.keys()
"""Kinds of items that stand for themselves."""
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
