"""The client's messages → OpenAI's, each with what the client itself said: `Carried`.

A message of results and texts becomes several, in OpenAI's order; they carry it together, as
`(message, place, number of places)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import orjson

from adapters.errors import GatewayError
from adapters.protocol import CARRIED, CARRIER, RESULT_OF, THOUGHTS_OF, Carried, Json
from adapters.receipts import Notes, Receipt
from adapters.shared.history import canonical
from adapters.wire.json_text import exact
from middleware.doors.messages.content import Losses, parts_of, result_content, text_part
from middleware.doors.messages.words import LANGUAGE, may_be_claudes, signer

_BILLING = "x-anthropic-billing-header:"
"""Begins a block of Claude Code's system prompt that is another one in each request."""


# What a float may not hold to the last digit, or what was made one.
_LONG = re.compile(rb"\d[\d.]{15}|\d[eE][+-]?\d")


class Exact:
    """The turns of one body, with all their digits where any of a call's would be lost."""

    def __init__(self, body: bytes, turns: list[Json]) -> None:
        self._body = body
        self._turns = turns
        self._precise: dict[int, Json] | None = None
        """Turns and calls as they were written, by the identity of what was read."""
        self._is_long = False
        """A call of the turn that is read has such numbers."""

    def begin(self) -> None:
        """A turn is read from here on: what was found in the one before says nothing of it."""
        self._is_long = False

    def arguments(self, block: Json) -> str:
        """The input of a call as JSON."""
        written = orjson.dumps(block.get("input") or {})
        if _LONG.search(written):
            self._is_long = True
            precise = self._read().get(id(block), block)
            written = orjson.dumps(precise.get("input") or {})
        return written.decode()

    def turn(self, turn: Json) -> Json:
        """The whole of it, when its calls were read."""
        return self._read().get(id(turn), turn) if self._is_long else turn

    def _read(self) -> dict[int, Json]:
        if self._precise is None:
            found = exact(self._body)
            turns = [] if found is None else found["messages"]
            self._precise = {}
            for one, precise in zip(self._turns, turns, strict=False):
                self._precise[id(one)] = precise
                if isinstance(one["content"], list):
                    pairs = zip(one["content"], precise["content"], strict=True)
                    self._precise |= {id(block): meant for block, meant in pairs}
        return self._precise


def system_messages(system: str | Sequence[Json] | None) -> list[Json]:
    """None where nothing of it is left for others than Claude."""
    blocks = [text_part(system)] if isinstance(system, str) else system or ()
    parts = [text_part(block["text"]) for block in blocks if _is_said(block)]
    if not parts:
        return []
    content = parts[0]["text"] if len(parts) == 1 else parts
    said = {"role": "system", "content": content}
    return _carrying({"system": system}, [said], Losses("system"))


def _carrying(turn: Json, messages: Sequence[Json], losses: Losses) -> list[Json]:
    """The messages that a turn became, with what it was."""
    own = _visible(turn)
    if own is None:
        return [*messages]
    # What is lost of a turn is told once, with its first message.
    lost, refusal, marked = losses.notes.receipt(), losses.refusal, _is_marked(own)
    carrying: list[Json] = []
    for place, message in enumerate(messages):
        part = own, place, len(messages)
        carried = Carried(LANGUAGE, part, lost, refusal, message, marked=marked)
        carrying.append({**message, CARRIER: carried})
        lost, refusal = (), None
    return carrying


@dataclass(slots=True)
class ReadConversation:
    secret: bytes
    exact: Exact
    notes: Notes
    messages: list[Json] = field(default_factory=list)

    def add(self, turn: Json, position: int) -> None:
        losses, content = Losses(f"messages[{position}]"), turn["content"]
        self.exact.begin()
        if turn["role"] == "user":
            self._add_user(turn, content, losses)
        elif turn["role"] == "assistant":
            self._add_assistant(turn, content, losses)
            self._join_calls()
        else:
            parts = parts_of(content, f"{losses.where}.content", losses)
            said = {"role": "system", "content": "\n".join(part.get("text", "") for part in parts)}
            self._carry(turn, [said], losses)

    def _carry(self, turn: Json, messages: Sequence[Json], losses: Losses) -> None:
        self.messages += _carrying(self.exact.turn(turn), messages, losses)

    # Users --------------------------------------------------------------------------------------

    def _add_user(self, turn: Json, content: str | list[Json], losses: Losses) -> None:
        if isinstance(content, str):
            self._carry(turn, [{"role": "user", "content": content}], losses)
            return
        where = f"{losses.where}.content"
        kinds = [block["type"] == "tool_result" for block in content]
        said: list[Json] = []
        others: list[Json] = []
        for at, block in enumerate(content):
            if kinds[at]:
                said.append(_result(block, f"{where}[{at}]", losses))
            else:
                others.append(block)
        parts = parts_of(others, where, losses)
        if parts or not said:
            said.append({"role": "user", "content": _plain(parts)})
        if kinds == sorted(kinds, reverse=True):
            self._carry(turn, said, losses)
            return
        # Claude refuses it so: it gets the results first, as all others.
        text = "results were put before the texts of their message"
        self.notes.add("messages_reordered", where, text)
        self._tell_lost(losses.notes.receipt(), losses.refusal)
        self.messages += said

    def _tell_lost(self, lost: Receipt, refusal: GatewayError | None) -> None:
        """Of what nobody carries it is lost for all."""
        if refusal is not None:
            raise refusal
        self.notes.add_all(lost)

    # Assistants ---------------------------------------------------------------------------------

    def _add_assistant(self, turn: Json, content: str | list[Json], losses: Losses) -> None:
        if isinstance(content, str):
            self._carry(turn, [{"role": "assistant", "content": content}], losses)
            return
        said = _Said(self.secret, self.exact)
        for at, block in enumerate(content):
            said.take(block, f"{losses.where}.content[{at}]", losses)
        if said.unsigned:
            # Claude refuses a thought without a signature of its own, or with one of ours.
            self._tell_lost(losses.notes.receipt(), losses.refusal)
            self.messages.append(said.message())
        else:
            self._carry(turn, [said.message()], losses)

    def _join_calls(self) -> None:
        """Two turns in a row are one to Claude, so results may follow the calls of both."""
        if len(self.messages) < 2 or not all(map(_calls, self.messages[-2:])):
            return
        joined: Json = {}
        for message in self.messages[-2:]:
            if CARRIER in message:
                self._tell_lost(message[CARRIER].lost, message[CARRIER].refusal)
            for name in message:
                said = message[name]
                if name == "role" or not joined.get(name):
                    joined[name] = said
                elif name not in CARRIED and said:
                    joined[name] = joined[name] + said
        self.messages[-2:] = [{name: joined[name] for name in joined if name not in CARRIED}]


@dataclass(slots=True)
class _Said:
    """One turn of the assistant, block by block."""

    secret: bytes
    exact: Exact
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    signed: list[Json] = field(default_factory=list)
    calls: list[Json] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    """Whose each of the thoughts is, where we signed it; empty: nobody knows."""

    @property
    def unsigned(self) -> bool:
        return bool(self.owners)

    def take(self, block: Json, where: str, losses: Losses) -> None:
        match block["type"]:
            case "text":
                self.texts.append(block["text"])
            case "tool_use":
                self._call(block)
            case "thinking":
                self._think(block)
            case "redacted_thinking":
                self.signed.append(block)
            case "web_search_tool_result":
                self.texts += _found(block.get("content"))
                losses.drop(where, block["type"])
            case kind:
                losses.drop(where, kind)

    def _call(self, block: Json) -> None:
        function = {"name": block["name"], "arguments": canonical(self.exact.arguments(block))}
        self.calls.append({"id": block["id"], "type": "function", "function": function})

    def _think(self, block: Json) -> None:
        thought, signed = block["thinking"], block.get("signature") or ""
        if thought:
            self.thoughts.append(thought)
        if may_be_claudes(signed):
            self.signed.append(block)
        else:
            self.owners.append(signer(self.secret, signed, thought))

    def message(self) -> Json:
        text = "".join(self.texts)
        message: Json = {"role": "assistant", "content": text or (None if self.calls else "")}
        known = {*self.owners} - {""}
        others = {
            "tool_calls": self.calls,
            "reasoning_content": "".join(self.thoughts),
            "thinking_blocks": self.signed,
            THOUGHTS_OF: known.pop() if len(known) == 1 and not self.signed else "",
        }
        return message | {name: said for name, said in others.items() if said}


def _result(block: Json, where: str, losses: Losses) -> Json:
    content = result_content(block, where, losses)
    message: Json = {"role": "tool", "tool_call_id": block["tool_use_id"], "content": content}
    if not isinstance(content, str):
        message[RESULT_OF] = block["tool_use_id"]
    return {**message, "is_error": True} if block.get("is_error") else message


def have_calls_in_a_row(messages: Sequence[Json]) -> bool:
    """Whether they are of turns that are joined to one, and so say nothing each alone."""
    return any(_calls(one) and _calls(after) for one, after in pairwise(messages))


def _calls(message: Json) -> bool:
    return message["role"] == "assistant" and bool(message.get("tool_calls"))


def _visible(turn: Json) -> Json | None:
    """Without texts that nobody sees: SDKs send them back, and Claude refuses its own."""
    name = "content" if "content" in turn else "system"
    content = turn[name]
    if isinstance(content, str):
        return turn if content.strip() else None
    for one in content:
        if one["type"] == "text" and not one["text"].strip():
            kept = [one for one in content if one["type"] != "text" or one["text"].strip()]
            return {**turn, name: kept} if kept else None
    return turn if content else None


def _is_marked(own: Json) -> bool:
    """Whether a block has a cache breakpoint."""
    content = own.get("content", own.get("system"))
    return isinstance(content, list) and any(block.get("cache_control") for block in content)


def _plain(parts: list[Json]) -> str | list[Json]:
    """One text is no list."""
    if any(part["type"] != "text" for part in parts) or len(parts) > 1:
        return parts
    return "".join(part["text"] for part in parts)


def _is_said(block: Json) -> bool:
    return bool(block["text"]) and not block["text"].startswith(_BILLING)


def _found(content: Any) -> Iterator[str]:
    """What a search of Claude's found, for those who cannot read it otherwise."""
    for one in content if isinstance(content, list) else ():
        if isinstance(one, dict) and one.get("url"):
            yield f"\n{one.get('title') or 'Found'}: {one['url']}\n"
