"""A settled OpenAI conversation → Claude's system and turns.

Deterministic and append-only: what a message becomes depends on what stands before it alone, so a
longer conversation begins with the same bytes and Claude's cache and signatures stay valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter

from adapters.claude.content import CACHING, Content
from adapters.claude.conversation import Conversation, blocks_of, own_turn
from adapters.claude.verbatim import encoded_anew
from adapters.errors import BadRequest
from adapters.protocol import CARRIER, RESULT_OF, TURN, Carried, Json
from adapters.shared.beginnings import writer_of
from adapters.shared.calls import call_id
from adapters.shared.fields import unsupported
from adapters.shared.history import GO_ON

_CACHING = frozenset(CACHING)
_PLAIN = frozenset(("role", "content", "tool_calls", "tool_call_id"))
"""Members of most messages: one that has no others needs no look for what is rare."""
_ASKING = frozenset(("user", "tool"))
_SPEAKING = _ASKING | {"assistant"}
_role_of = itemgetter("role")
_IDENTITY = re.compile(r"[a-zA-Z0-9_-]+")


def conversation(
    messages: Sequence[Json],
    content: Content,
    last_words: str = "",
    prefill: bool = True,
    kept: bool = False,
) -> Conversation:
    """Encode a conversation; `last_words` are the gateway's own, put behind it.

    Without `prefill` the answer is a turn of its own, also where the model could go on with one;
    with `kept` turns that earlier requests had too are not encoded again.
    """
    if _SPEAKING.isdisjoint(map(_role_of, messages)):
        raise BadRequest(
            "At least one user message is required: Claude does not answer a system prompt alone.",
            param="messages",
        )
    context = ("claude", content.capability, content.lifetime, content.error_results)
    begin = partial(_Writer, content, Conversation(content))
    writer = writer_of(messages, begin, context, kept)
    writer.end(messages, prefill and content.capability.prefill)
    if last_words:
        writer.add_system([{"type": "text", "text": last_words}])
        writer.flush()
    return writer.said


@dataclass(slots=True)
class _Writer:
    content: Content
    said: Conversation
    late: list[Json] = field(default_factory=list)
    """System blocks that wait for the end of the user's turn."""
    used: dict[str, int] = field(default_factory=dict)
    """Call id → how often it was used: a second use needs another id."""
    open_calls: Mapping[str, str] = field(default_factory=dict)
    """Ids of the calls whose results follow, and what they are upstream."""
    whole: bool = False
    """The last turn is the client's own: nothing is put into it."""
    held: list[Json] = field(default_factory=list)
    """Messages that become a turn of the client's own, if all of them come."""
    position: int = 0
    """Of the next message that is written."""

    def copy(self) -> _Writer:
        said, late, used = self.said.copy(), [*self.late], {**self.used}
        held, position = [*self.held], self.position
        return _Writer(said.content, said, late, used, self.open_calls, self.whole, held, position)

    def add(self, message: Json) -> None:
        if CARRIER in message:
            self._add_own(message)
            return
        if self.held:
            self._release()
        if message.keys() <= _PLAIN:
            self._write(message)
        else:
            self._write_odd(message)

    def _add_own(self, message: Json) -> None:
        """What the client said itself, or a part of it, goes up so if nobody changed it."""
        if RESULT_OF in message and not self.content.capability.vision:
            self.said.look(message, self.position + len(self.held))
            message = self.said.without_images(message)
        carried: Carried = message[CARRIER]
        if message != {**(carried.beside or {}), CARRIER: carried}:
            self._release()
            self._write_anew(message)
            return
        own, place, length = carried.value
        if length > 1 or self.held:
            self._hold(message, own, place, length)
        elif self._take(own, message, carried):
            self.position += 1
        else:
            self._write_anew(message)

    def _hold(self, message: Json, own: Json, place: int, length: int) -> None:
        """One of several, which are the client's turn together."""
        if self.held and self.held[-1][CARRIER].value != (own, place - 1, length):
            self._release()
        if place != len(self.held):
            self._write_anew(message)
            return
        self.held.append(message)
        if len(self.held) < length:
            return
        if self._take(own, self.held[0], message[CARRIER]):
            self.position += length
            self.held = []
        else:
            self._release()

    def _release(self) -> None:
        """Encode them after all."""
        held, self.held = self.held, []
        for message in held:
            self._write_anew(message)

    def _write_anew(self, message: Json) -> None:
        """One that is none of the client's own turns."""
        message = encoded_anew(message, self.content.notes)
        write = self._write if message.keys() <= _PLAIN else self._write_odd
        write(message)

    def _take(self, own: Json, message: Json, carried: Carried) -> bool:
        """Let a turn of the client's go up as it is, where it may."""
        role = own.get("role")
        if role == "assistant":
            self._begin_answer()
            if calls := message.get("tool_calls"):
                ids = [call["id"] for call in calls]
                self.open_calls = dict(zip(ids, ids, strict=True))
                self.used.update(dict.fromkeys(ids, 1))
        elif role != "user" and not self._may_take_system(own):
            return False
        if carried.marked:
            self.content.marked = True
        if role is None:
            self.said.own_system, self.said.system = own["system"], [*blocks_of(own["system"])]
        else:
            self.said.turns.append(own)
            self.whole = True
        return True

    def _may_take_system(self, own: Json) -> bool:
        said = self.said
        if "role" not in own:
            return not (said.turns or said.system)
        self.flush()
        return self.content.capability.mid_system and bool(said.turns)

    def _write(self, message: Json) -> None:
        """One that has nothing rare, as most have."""
        position, role, said = self.position, message["role"], message.get("content")
        self.position = position + 1
        if type(said) is str and said and not said.isspace() and role != "tool":
            blocks = [{"type": "text", "text": said}]
        else:
            blocks = self._blocks(message, position)
        if role == "assistant":
            if "tool_calls" in message:
                self._add_calls(blocks, message, position)
            self._answer(blocks, position)
        elif role in _ASKING:
            self._say("user", blocks, position)
        else:
            self.add_system(blocks, position)

    def _blocks(self, message: Json, position: int) -> list[Json]:
        """What is more, or less, than one text."""
        role, said = message["role"], message.get("content")
        if type(said) is list:
            self.said.look(message, position)
        if role == "tool":
            return [self._result(message, position)]
        if role == "user":
            return self.content.user(message, position)
        return self.content.texts(said, position)

    def _write_odd(self, message: Json) -> None:
        self.said.look(message, self.position)
        if RESULT_OF in message and not self.content.capability.vision:
            message = self.said.without_images(message)
        position, role = self.position, message["role"]
        self.position = position + 1
        if role != "user" and message.get("name"):
            where = f"messages[{position}].name"
            self.content.note("name_dropped", where, "only a user's turn can say a name")
        if role == "assistant":
            blocks = self._odd_answer(message, position)
        else:
            blocks = self._blocks(message, position)
        if not _CACHING.isdisjoint(message):
            self.said.mark_last(blocks, message, f"messages[{position}]")
        if role in _ASKING:
            self._say("user", blocks, position)
        elif role == "assistant":
            self._answer(blocks, position)
        else:
            self.add_system(blocks, position)

    def _result(self, message: Json, position: int) -> Json:
        return self.content.result(message, self.open_calls[message["tool_call_id"]], position)

    def _answer(self, blocks: list[Json], position: int) -> None:
        self._begin_answer(bool(blocks))
        self._say("assistant", blocks, position)

    def _begin_answer(self, says: bool = True) -> None:
        if self.late:
            self.flush()
        # What was once put behind a turn stands there in later requests too: the cache and the
        # signatures of thoughts hold only behind the same bytes.
        if says and not self.content.capability.prefill and self.said.prefilled:
            self._ask_to_go_on()

    def add_system(self, blocks: list[Json], position: int = -1) -> None:
        """A system message: in its own place before the conversation, else inside it; one without
        a position is the gateway's own.
        """
        if not self.said.turns:
            self.said.add_system(blocks)
        elif self.content.capability.mid_system:
            self.late += blocks
        elif blocks:
            if position >= 0:
                text = "a later system message was sent as text"
                self.content.note("system_as_user_text", f"messages[{position}]", text)
            noted = [{**block, "text": f"[system note] {block['text']}"} for block in blocks]
            self._say("user", noted, position)

    def end(self, messages: Sequence[Json], prefill: bool) -> None:
        if self.held:
            self._release()
        turns = self.said.turns
        # An empty last user turn cannot be left out.
        if not turns or (turns[-1]["role"] == "assistant" and messages[-1]["role"] == "user"):
            where = f"messages[{len(messages) - 1}].content"
            text = f"'{where}' has no visible text, which Claude refuses. Send some text."
            raise BadRequest(text, param=where)
        if self.late:
            self.flush()
        if not self.content.capability.assistant_first:
            self.said.begin()
        if not self.said.prefilled:
            return
        if not prefill:
            self._ask_to_go_on()
            where = f"messages[{len(messages) - 1}]"
            self.content.note("ending_added", where, f"'{GO_ON}' was put behind it")
        else:
            blocks = [*blocks_of(turns[-1]["content"])]
            # "final assistant content cannot end with trailing whitespace"
            if blocks[-1]["text"] != blocks[-1]["text"].rstrip():
                blocks[-1] = {**blocks[-1], "text": blocks[-1]["text"].rstrip()}
                turns[-1] = {**turns[-1], "content": blocks}

    def _say(self, role: str, blocks: list[Json], position: int = -1) -> None:
        """Append to the last turn if it is of the same role: they would be merged upstream too."""
        if not blocks:
            if role == "assistant":
                text = "a turn without text or calls"
                self.content.note("empty_turn_dropped", f"messages[{position}]", text)
            return
        if self.late and role == "user":
            text = "a system message was put behind the user's turn"
            self.content.note("system_moved", f"messages[{position}]", text)
        turns = self.said.turns
        if not turns or turns[-1]["role"] != role:
            turns.append({"role": role, "content": blocks})
        elif self.whole:
            turns[-1] = {"role": role, "content": [*blocks_of(turns[-1]["content"]), *blocks]}
        else:
            turns[-1]["content"] += blocks
        self.whole = False

    def flush(self) -> None:
        if self.late:
            blocks, self.late = self.late, []
            self._say("system", blocks)

    def _ask_to_go_on(self) -> None:
        self.said.turns.append({"role": "user", "content": [{"type": "text", "text": GO_ON}]})

    def _add_calls(self, blocks: list[Json], message: Json, position: int) -> None:
        self.open_calls = opened = {}
        for place, call in enumerate(message.get("tool_calls") or ()):
            identity = call["id"]
            mine = opened[identity] = self._identity(identity)
            blocks.append(self.content.call(call, mine, position, place))

    def _odd_answer(self, message: Json, position: int) -> list[Json]:
        calls = message.get("tool_calls") or []
        if own := own_turn(message[TURN], calls) if TURN in message else []:
            self.content.marked = True  # nobody looked
            self._take_ids(own, calls)
            return own
        blocks = self._more_than_plain(message, position)
        self._add_calls(blocks, message, position)
        return blocks

    def _more_than_plain(self, message: Json, position: int) -> list[Json]:
        """Thoughts, text and refusal of an answer."""
        where = f"messages[{position}]"
        if message.get("audio"):
            raise unsupported(f"{where}.audio", "Claude has no such audio. Send its text instead.")
        blocks = self.said.thoughts(message, where)
        blocks += self.content.texts(message.get("content"), position)
        if message.get("refusal"):
            self.content.note("refusal_as_text", f"{where}.refusal", "a refusal was sent as text")
            blocks += self.content.texts(message["refusal"], position)
        return blocks

    def _take_ids(self, own: list[Json], calls: list[Json]) -> None:
        """Results follow the ids of Claude's own turn."""
        ids = [block["id"] for block in own if block["type"] == "tool_use"]
        self.used.update(dict.fromkeys(ids, 1))
        self.open_calls = {call["id"]: mine for call, mine in zip(calls, ids, strict=True)}

    def _identity(self, identity: str) -> str:
        """An id Claude accepts: its characters, and used once in the whole conversation."""
        count = self.used[identity] = self.used.get(identity, 0) + 1
        if count == 1 and _IDENTITY.fullmatch(identity):
            return identity
        return call_id(identity if count == 1 else f"{identity}#{count}")
