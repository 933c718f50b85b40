"""How far Claude caches a request: within what it takes, and behind what a client sends anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.claude.content import Content
from adapters.claude.conversation import THOUGHTS, Conversation, blocks_of, marked_blocks
from adapters.protocol import Json

_MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}


def limit_breakpoints(said: Conversation, tools: list[Json], most: int, content: Content) -> None:
    """Leave out what Claude would refuse of the cache breakpoints, those of least use first.

    The last ones of the conversation reach furthest, and Claude looks for a shorter prefix behind
    each by itself. The last one before the conversation is what other conversations share, and
    what is left when this one was edited; those before it are parts of it.
    """
    before = marked_blocks([tools, said.system])
    inside = marked_blocks([turn["content"] for turn in said.turns])
    if len(before) + len(inside) <= most:
        return
    # The client's own turns stay as they are for whoever asks again.
    said.turns = [_copied(turn) for turn in said.turns]
    inside = marked_blocks([turn["content"] for turn in said.turns])
    by_use = [*before[:-1], *inside, *before[-1:]]
    surplus = by_use[: max(0, len(by_use) - most)]
    for blocks, at in surplus:
        blocks[at] = {k: v for k, v in blocks[at].items() if k != "cache_control"}
        said.own_system = None
    if surplus:
        text = f"{len(surplus)} cache breakpoints were left out: there may be {most}"
        content.note("cache_breakpoints_dropped", "messages", text)


def _copied(turn: Json) -> Json:
    """A text has no breakpoint: it stays what it is in a beginning that is kept."""
    content = turn["content"]
    return {**turn, "content": [*content]} if isinstance(content, list) else turn


def with_breakpoints(body: Json) -> Json:
    """Where the client set none: one behind what other conversations share, one behind this one.

    Claude looks for a shorter prefix behind each by itself, so each request pays for what is new.
    """
    if _has_breakpoints(body):
        return body
    marked = {**body}
    for name in ("system", "tools"):
        if blocks := blocks_of(body.get(name) or []):
            marked[name] = [*blocks[:-1], {**blocks[-1], **_MARK}]
            break
    *before, last = body["messages"]
    blocks = blocks_of(last["content"])
    if blocks and blocks[-1]["type"] not in THOUGHTS:
        content = [*blocks[:-1], {**blocks[-1], **_MARK}]
        marked["messages"] = [*before, {**last, "content": content}]
    return marked


def _has_breakpoints(body: Json) -> bool:
    places = [body.get("tools") or [], body.get("system") or []]
    places += [turn["content"] for turn in body["messages"]]
    return bool(body.get("cache_control") or marked_blocks(places))
