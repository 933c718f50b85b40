"""What every language needs of a conversation: calls paired with results, arguments in one form.

`settle` runs once, at the door. Below it every assistant turn with calls is followed by exactly
its results, in the order the client sent them, and arguments are canonical.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import orjson

from adapters.errors import BadRequest
from adapters.protocol import CARRIER, TURN, Json
from adapters.receipts import AddNote, Notes, Receipt

NO_RESULT = '{"error":"no result"}'
GO_ON = "(continue)"
"""A user's turn behind a last message of the assistant, where an upstream answers only to a user.

OpenAI answers with a new message; LangGraph and Dify end conversations so.
"""
_PLAIN_ROLES, _role = frozenset(("user", "system", "developer")), itemgetter("role")
# Nothing to normalise: no space outside strings, no escape inside them.
_CANONICAL = re.compile(r'(?:[^\s"\\]++|"[^"\\]*+")*+')
MOST_REWRITTEN = 1 << 20
"""Characters of a conversation's arguments that are brought into one form; more stay as sent."""


def canonical(arguments: str | None) -> str:
    """White space and escapes normalised, number text and key order kept, non-ASCII as it is.

    The same history is the same bytes whatever the client re-dumped; what is not JSON stays.
    """
    if arguments is None or not arguments.strip():
        return "{}"
    if _CANONICAL.fullmatch(arguments) or not is_json(arguments):
        return arguments
    return _compact(arguments)


def is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def is_json_object(text: str) -> bool:
    return json_object(text) is not None


def json_object(text: str) -> Json | None:
    """The object that a text is; None where it is none."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if type(value) is dict else None


def _compact(text: str) -> str:
    """Valid JSON without white space, and with the escapes that are needed."""
    # What is hidden behind a control character, which no JSON has, ends no string.
    hidden = text.replace("\\\\", "\1").replace('\\"', "\2")
    pieces = hidden.split('"')
    # Every second piece is a string.
    pieces[::2] = "".join('"'.join(pieces[::2]).split()).split('"')
    if "\\u" in hidden or "\\/" in hidden:
        pieces[1::2] = [_escaped(piece) if "\\" in piece else piece for piece in pieces[1::2]]
    return _shown('"'.join(pieces))


def _shown(hidden: str) -> str:
    return hidden.replace("\2", '\\"').replace("\1", "\\\\")


def _escaped(hidden: str) -> str:
    return orjson.dumps(orjson.loads(f'"{_shown(hidden)}"')).decode()[1:-1]


def wrapped_arguments(arguments: str, where: str, note: AddNote) -> str:
    """Arguments for a language that takes only objects: a model's own mistake is kept as `_raw`."""
    if is_json_object(arguments):
        return arguments
    note(
        "arguments_wrapped", where, 'arguments that are not a JSON object were sent as {"_raw": …}'
    )
    return orjson.dumps({"_raw": arguments}).decode()


def text_of(content: Any, separator: str = "\n") -> str:
    """The text of a string or of the text and refusal parts of a list."""
    if content is None or isinstance(content, str):
        return content or ""
    said = (part.get("text", part.get("refusal")) for part in content)
    return separator.join(text for text in said if text is not None)


def speaker(message: Json) -> str:
    """Who speaks, where that says more than the role: AutoGen names every user "user"."""
    name = message.get("name") or ""
    return "" if name.lower() == message["role"] else name


def spoken(name: str, text: str) -> str:
    """A speaker's words for a language without names; a line of its own keeps their beginning."""
    return f"{name}:\n{text}"


@dataclass(slots=True)
class _Settlement:
    """A conversation that is brought into its one form: what came so far, and the round of calls
    that waits for its results.
    """

    repair: bool
    messages: list[Json] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)
    pending: dict[str, int] = field(default_factory=dict)
    """Ids of the open round → position of their assistant message in the request."""
    results: dict[str, Json] = field(default_factory=dict)
    late: list[Json] = field(default_factory=list)
    """What stood between the calls and their results."""
    room: int = MOST_REWRITTEN
    canonical: bool = False
    """All calls are in their one form."""

    @property
    def note(self) -> AddNote:
        return self.notes.add


ARE_CANONICAL = range(0)
"""Known of messages of which none was settled before, but whose calls are in their one form."""


def settle(
    messages: Sequence[Json], repair: bool = False, known: range | None = None
) -> tuple[tuple[Json, ...], Receipt]:
    """Bring a conversation into its one form; raise `BadRequest` where it has none.

    Where something is known of it, all calls are canonical (`with_canonical_calls`), and those
    messages were settled before without a note: no result is the first of them.
    """
    new = [*messages[: known.start], *messages[known.stop :]] if known else messages
    if _PLAIN_ROLES.issuperset(map(_role, new)):
        return tuple(messages), ()
    settled = _Settlement(repair, canonical=known is not None)
    done = 0
    if known and not _goes_on(messages, known.stop):
        if known.start:
            _add(settled, messages[: known.start], 0)
        if len(settled.results) == len(settled.pending):
            if settled.pending:
                _end_round(settled)
            settled.messages += messages[known.start : known.stop]
            done = known.stop
        else:
            done = known.start
    if done < len(messages):
        _add(settled, messages[done:] if done else messages, done)
    if settled.pending:
        _end_round(settled)
    return tuple(settled.messages), settled.notes.receipt()


def _goes_on(messages: Sequence[Json], position: int) -> bool:
    """Whether a round does that seemed to be at its end."""
    return position < len(messages) and messages[position]["role"] == "tool"


def _add(settled: _Settlement, messages: Iterable[Json], first: int) -> None:
    for position, message in enumerate(messages, first):
        role = message["role"]
        if not settled.pending and role in _PLAIN_ROLES:
            settled.messages.append(message)
        elif role == "tool":
            _take_result(settled, message, position)
        elif len(settled.results) < len(settled.pending) and role != "assistant":
            settled.late.append(message)
        else:
            if settled.pending:
                _end_round(settled)
            _take(settled, message, position)


def _take(settled: _Settlement, message: Json, position: int) -> None:
    if message["role"] != "assistant":
        settled.messages.append(message)
        return
    if TURN in message:
        # Ours alone: a client cannot put words into the upstream's mouth.
        where = f"messages[{position}].{TURN}"
        settled.note("member_dropped", where, "only the gateway says what a turn was")
        message = {name: value for name, value in message.items() if name != TURN}
    calls = message.get("tool_calls")
    if not calls:
        if not message.get("content") and _says_nothing(message):
            text = "an assistant turn without text or calls"
            settled.note("empty_turn_dropped", f"messages[{position}]", text)
        else:
            settled.messages.append(message)
        return
    ids = [call["id"] for call in calls]
    pending = dict.fromkeys(ids, position)
    if len(pending) != len(ids):
        where = f"messages[{position}].tool_calls"
        text = f"Two calls in '{where}' have the same id. Give each call its own."
        raise BadRequest(text, param=where, code="invalid_tool_history")
    if not settled.canonical:
        message, settled.room = with_canonical_calls(message, settled.room)
    settled.messages.append(message)
    settled.pending = pending


def _says_nothing(message: Json) -> bool:
    said = ("refusal", "reasoning_content", "reasoning", "thinking_blocks", "audio", CARRIER)
    return not any(message.get(name) for name in said)


def with_canonical_calls(message: Json, room: int = MOST_REWRITTEN) -> tuple[Json, int]:
    """A message with its arguments in their one form; those beyond the room stay as sent."""
    calls = message.get("tool_calls") or ()
    same: list[Json] = []
    for call in calls:
        function = call.get("function")
        if function is None:
            same.append(call)
            continue
        arguments = function.get("arguments") or ""
        room -= len(arguments)
        one = arguments if room < 0 and arguments.strip() else canonical(arguments)
        known = one == function.get("arguments")
        same.append(call if known else {**call, "function": {**function, "arguments": one}})
    changed = any(one is not call for one, call in zip(same, calls, strict=True))
    return ({**message, "tool_calls": same} if changed else message), room


def _take_result(settled: _Settlement, message: Json, position: int) -> None:
    identity: str = message.get("tool_call_id") or ""
    usual = identity and identity in settled.pending and not settled.late
    if usual and identity not in settled.results:
        settled.results[identity] = message
    else:
        _take_odd_result(settled, message, position)


def _take_odd_result(settled: _Settlement, message: Json, position: int) -> None:
    """One without an id, without its call, behind another message, or the second of its call."""
    where = f"messages[{position}]"
    identity = message.get("tool_call_id")
    if not identity:
        identity = _only_open(settled, where)
        message = {**message, "tool_call_id": identity}
    if identity not in settled.pending:
        if not settled.repair:
            raise BadRequest(
                f"Invalid parameter: '{where}' has role 'tool' but its tool_call_id {identity!r} "
                "is not among the 'tool_calls' of the assistant message before it. Send each "
                "result right after the assistant message that made the call.",
                param=f"{where}.tool_call_id",
                code="invalid_tool_history",
            )
        settled.note("result_dropped", where, f"a result without a call ({identity})")
        return
    if identity in settled.results:
        settled.note("result_replaced", where, f"a second result for {identity}: the last counts")
    if settled.late:
        settled.note("messages_reordered", where, "results were put right behind their calls")
    settled.results[identity] = message


def _only_open(settled: _Settlement, where: str) -> str:
    """The call that a result without an id answers: unmistakable if one alone has no result."""
    waiting, where = _missing(settled), f"{where}.tool_call_id"
    if settled.repair and len(waiting) == 1:
        settled.note("result_paired", where, f"taken for {waiting[0]}, the one call without result")
        return waiting[0]
    if settled.repair and not waiting:
        return ""  # left out, as every result without a call
    hint = f"{len(waiting)} calls have no result so far: the id says which one this answers."
    if not waiting:
        hint = "Nor is there a call that waits for a result."
    if len(waiting) == 1:
        hint = (
            f"Send the id of the call it answers, {waiting[0]!r}; or set history_repair = true "
            "under [server] in the gateway's config: one call alone has no result."
        )
    raise BadRequest(
        f"Missing required parameter: '{where}'. {hint}",
        param=where,
        code="missing_required_parameter",
    )


def _missing(settled: _Settlement) -> list[str]:
    return [identity for identity in settled.pending if identity not in settled.results]


def _end_round(settled: _Settlement) -> None:
    missing = _missing(settled) if len(settled.results) < len(settled.pending) else ()
    if missing and not settled.repair:
        where = f"messages[{next(iter(settled.pending.values()))}]"
        raise BadRequest(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            f"to each 'tool_call_id'. No result was sent for {', '.join(missing)} of '{where}'.",
            param=f"{where}.tool_calls",
            code="invalid_tool_history",
        )
    for identity in missing:
        settled.note("result_made_up", "messages", f"no result was sent for {identity}")
        settled.results[identity] = {"role": "tool", "tool_call_id": identity, "content": NO_RESULT}
    settled.messages += settled.results.values()
    settled.messages += settled.late
    settled.pending, settled.results, settled.late = {}, {}, []


def rounds(messages: Sequence[Json]) -> dict[str, str]:
    """Id of each call in a settled conversation → the name of its tool."""
    return {
        call["id"]: call[call.get("type", "function")]["name"]
        for message in messages
        for call in message.get("tool_calls") or ()
    }
