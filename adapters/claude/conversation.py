"""What Claude is told of a conversation: a system prompt, and turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from adapters.claude.content import CACHING, Content
from adapters.protocol import Json
from adapters.receipts import Receipt
from adapters.shared.beginnings import frozen
from adapters.shared.result_images import without_images
from adapters.shared.unknown_members import UnknownMembers

THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_BEGINNING = "(conversation start)"


class OlderTurns(NamedTuple):
    """Turns that nothing changes any more, as text, and what is still asked of them.

    None of them has a cache breakpoint: those of a request are counted when all are there.
    """

    text: tuple[bytes, ...] = ()
    first: str = ""
    """Role of the first of them."""
    thoughtless: bool = False
    """The conversation is, as far as they say."""


_NONE_OLDER = OlderTurns()


@dataclass(slots=True)
class Conversation:
    content: Content
    system: list[Json] = field(default_factory=list)
    turns: list[Json] = field(default_factory=list)
    """Those behind the older ones; there always is one, if there are any."""
    own_system: Any = None
    """The client's, as long as `system` holds nothing else."""
    older: OlderTurns = _NONE_OLDER
    unseen: Receipt = ()
    """Images that the model does not read."""
    unknown: UnknownMembers | None = None
    """None: nobody had to look."""

    def add_system(self, blocks: list[Json]) -> None:
        if blocks:
            self.own_system = None
            self.system += blocks

    def look(self, message: Json, position: int) -> None:
        """Find members that Claude has no place for."""
        if self.unknown is None:
            self.unknown = UnknownMembers(CACHING)
        self.unknown.look(message, position)

    def without_images(self, message: Json) -> Json:
        """The same for a model that reads none."""
        message, lost = without_images(message)
        self.unseen += lost
        return message

    def thoughts(self, message: Json, where: str) -> list[Json]:
        """Thinking blocks the client echoes; Claude checks them, so they go back as they came."""
        signed: list[Json] = []
        if "thinking_blocks" in message:
            echoed = blocks_in(message, "thinking_blocks")
            signed = [block for block in echoed if _is_signed(block)]
            self.content.marked = True  # nobody looked
            if len(signed) < len(echoed):
                text = "thinking blocks without a signature were left out"
                self.content.note("thinking_unsigned", f"{where}.thinking_blocks", text)
        if not signed and (message.get("reasoning_content") or message.get("reasoning")):
            text = "reasoning without Claude's signature cannot be sent back"
            self.content.note("reasoning_dropped", f"{where}.reasoning_content", text)
        return signed

    def mark_last(self, blocks: list[Json], message: Json, where: str) -> None:
        """A breakpoint of a whole message is that of its last block."""
        mark = self.content.breakpoint(message, where)
        if mark and (not blocks or blocks[-1]["type"] in THOUGHTS):
            text = "Claude can cache to a block of text, image, call or result, and here is none"
            self.content.note("cache_breakpoints_dropped", where, text)
        elif mark:
            blocks[-1] = {**mark, **blocks[-1]}

    @property
    def prefilled(self) -> bool:
        """The assistant is to go on with words of its own: a turn that Claude paused in the middle
        of its own tools ends otherwise.
        """
        if not self.turns or self.turns[-1]["role"] != "assistant":
            return False
        content = self.turns[-1]["content"]
        return isinstance(content, str) or bool(content[-1]["type"] == "text")

    @property
    def thoughtless(self) -> bool:
        """Calls whose results are being returned stand without the thought that led to them."""
        return _thoughtless(self.turns, self.older.thoughtless)

    def begin(self) -> None:
        """Let the user begin it, where the assistant does and must not."""
        if (self.older.first or self.turns[0]["role"]) != "assistant":
            return
        turn: Json = {"role": "user", "content": [{"type": "text", "text": _BEGINNING}]}
        if self.older.text:
            self.older = self.older._replace(text=(frozen([turn]), *self.older.text))
        else:
            self.turns.insert(0, turn)
        self.content.note("beginning_added", "messages[0]", f"'{_BEGINNING}' was put before it")

    def copy(self) -> Conversation:
        """One that goes on from here; what nothing changes any more is text from now on."""
        self._freeze()
        turns = [*self.turns]
        if turns and isinstance(turns[-1]["content"], list):  # what follows may be put into it
            turns[-1] = {**turns[-1], "content": [*turns[-1]["content"]]}
        return Conversation(
            self.content.copy(),
            [*self.system],
            turns,
            self.own_system,
            self.older,
            self.unseen,
            self.unknown and self.unknown.copy(),
        )

    def _freeze(self) -> None:
        done = self.turns[:-1]
        if self.content.marked:
            marked = (at for at, turn in enumerate(done) if marked_blocks([turn["content"]]))
            done = done[: next(marked, len(done))]
        if done:
            text, first, thoughtless = self.older
            text = (*text, frozen(done))
            self.older = OlderTurns(text, first or done[0]["role"], _thoughtless(done, thoughtless))
            self.turns = self.turns[len(done) :]


def _thoughtless(turns: Sequence[Json], before: bool) -> bool:
    for turn in reversed(turns):
        kinds = [block["type"] for block in blocks_of(turn["content"])]
        if turn["role"] == "user" and "tool_result" not in kinds:
            return False
        if "tool_use" in kinds and kinds[0] not in THOUGHTS:
            return True
    return before


def blocks_of(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def marked_blocks(places: Sequence[list[Json]]) -> list[tuple[list[Json], int]]:
    """Where cache breakpoints stand."""
    return [
        (blocks, at)
        for blocks in places
        if isinstance(blocks, list)
        for at, block in enumerate(blocks)
        if block.get("cache_control")
    ]


def blocks_in(holder: Any, name: str) -> list[Json]:
    """The blocks a client or recall put there; nobody has looked at them yet."""
    found = holder.get(name) if isinstance(holder, dict) else None
    blocks = found if isinstance(found, list) else []
    return [block for block in blocks if isinstance(block, dict) and "type" in block]


def _is_signed(block: Json) -> bool:
    return block["type"] in THOUGHTS and bool(block.get("signature") or block.get("data"))


def own_turn(turn: Any, calls: list[Json]) -> list[Json]:
    """Claude's own turn (`Finish.turn`), as it was; [] where there is none that fits the calls."""
    blocks = blocks_in(turn, "content")
    ids = [block.get("id") for block in blocks if block["type"] == "tool_use"]
    fits = len(ids) == len(calls) and all(isinstance(one, str) for one in ids)
    return blocks if fits else []
