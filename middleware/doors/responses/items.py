"""Input items → the messages of a chat.

What the assistant said, thought and called between two others is one message.
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
    _turn: _Turn | None = None
    _waiting: dict[str, None] = field(default_factory=dict)
    """Calls without a result so far."""
    _answered: set[str] = field(default_factory=set)
    _pairs: Mapping[str, int] = field(default_factory=dict)
    _position: int = 0
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
            self._turn and self._turn.copy(),
            self._waiting.copy(),
            self._answered.copy(),
            self._pairs,
            self._position,
            self._room,
        )

    def add(self, item: Json) -> None:
        """Read one of the request's own input, of a kind that stands for itself."""
        _TAKE[item.get("type") or "message"](self, item, f"input[{self._position}]")
        self._position += 1

    def read(self, items: Iterable[tuple[str, Json]]) -> list[Json]:
        """`items` with where each stands."""
        placed = [*items]
        self._pairs = _paired(item for _, item in placed)
        for where, item in placed:
            self._take(item, where)
        return self.finish()

    def _take(self, item: Json, where: str) -> None:
        take = _TAKE.get(kind := kind_of(item))
        if take is not None:
            take(self, item, where)
        else:
            self._take_other(kind, item, where)

    def finish(self) -> list[Json]:
        self._end_turn()
        if self._waiting and not self.repair:
            identity = next(iter(self._waiting))
            raise _unpaired(f"No tool output found for function call {identity}.")
        return self.messages

    # What is said --------------------------------------------------------------------------------

    def _message(self, item: Json, where: str) -> None:
        role, content = item["role"], item["content"]
        if role == "assistant":
            self._spoken(content)
            return
        self._end_turn()
        if role == "user":
            self.messages.append({"role": role, "content": user_content(content, where)})
        else:
            self.messages.append({"role": role, "content": text_of_parts(content, where)})

    def _spoken(self, content: str | list[Json]) -> None:
        turn = self._open_turn()
        if isinstance(content, str):
            turn.texts.append(content)
            return
        turn.texts += (part["text"] for part in content if "text" in part)
        turn.refusals += (part["refusal"] for part in content if "refusal" in part)

    def _reasoning(self, item: Json, where: str) -> None:
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

    # Calls and their results ---------------------------------------------------------------------

    def _function_call(self, item: Json, _: str) -> None:
        name = flat_name(item.get("namespace"), item["name"])
        self._call("function", item["call_id"], name, item.get("arguments") or "{}")

    def _custom_call(self, item: Json, _: str) -> None:
        name = flat_name(item.get("namespace"), item["name"])
        self._call("custom", item["call_id"], name, item["input"])

    def _call(self, kind: str, identity: str, name: str, said: str) -> None:
        key = "input" if kind == "custom" else "arguments"
        call = {"id": identity, "type": kind, kind: {"name": name, key: said}}
        self._open_turn().calls.append(call)
        self._waiting[identity] = None

    def _output(self, item: Json, where: str) -> None:
        self._result(item["call_id"], item["output"], f"{where}.output")

    def _result(self, identity: str, output: str | list[Json], where: str) -> None:
        self._end_turn()
        if identity not in self._waiting and identity not in self._answered and not self.repair:
            text = f"No tool call found for function call output with call_id {identity}."
            raise _unpaired(text)
        self._waiting.pop(identity, None)
        self._answered.add(identity)
        content = result_content(output, where)
        said = {"role": "tool", "tool_call_id": identity, "content": content}
        # Where a language has no place for images in results, its leaf finds them another.
        self.messages.append(said if isinstance(content, str) else {**said, RESULT_OF: "client"})

    # What chat has nothing like ------------------------------------------------------------------

    def _more_tools(self, item: Json, where: str) -> None:
        self.tools.append((f"{where}.tools", item["tools"]))

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
            self._call("function", identity, kind.removesuffix("_call"), _arguments(item, rest))
            return
        output = item.get("output")
        self._result(identity, output if isinstance(output, str) else _dumped(rest), "")

    # -- ------------------------------------------------------------------------------------------

    def _open_turn(self) -> _Turn:
        if self._turn is None:
            self._turn = _Turn()
        return self._turn

    def _end_turn(self) -> None:
        if self._turn is None:
            return
        message = self._turn.message()
        if not self.canonical:
            message, self._room = with_canonical_calls(message, self._room)
        self.messages.append(message)
        self._turn = None
        self._answered.clear()


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


_TAKE: Mapping[str, Callable[[ItemReader, Json, str], None]] = {
    "message": ItemReader._message,
    "reasoning": ItemReader._reasoning,
    "function_call": ItemReader._function_call,
    "custom_tool_call": ItemReader._custom_call,
    "function_call_output": ItemReader._output,
    "custom_tool_call_output": ItemReader._output,
    "additional_tools": ItemReader._more_tools,
}
