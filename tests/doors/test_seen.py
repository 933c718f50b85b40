"""What a memory of pieces keeps, and for how long."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from adapters.protocol import Json
from middleware.doors.chat.parse import parse
from middleware.doors.seen import Piece, Seen

KB = 1 << 10


def _piece(name: str, length: int = KB) -> Piece:
    raw = name.encode() * length
    return Piece(("a", raw), raw, name)


def _keys(seen: Seen, *pieces: Piece) -> list[bool]:
    return [seen.find(piece.key) is piece for piece in pieces]


def test_what_was_not_used_for_longest_is_forgotten_first() -> None:
    seen, pieces = Seen(20 * KB), [_piece(name) for name in "abcdefgh"]
    for piece in pieces:
        seen.keep([piece, pieces[0]])
        assert seen.size <= 20 * KB
    assert _keys(seen, *pieces[:3], *pieces[-3:]) == [True, False, False, True, True, True]


def test_one_piece_drives_out_no_others() -> None:
    seen, small, large = Seen(20 * KB), _piece("a"), _piece("b", 5 * KB)
    seen.keep([small, large])
    assert _keys(seen, small, large) == [True, False]


def test_a_forgotten_piece_is_not_found_behind_another() -> None:
    seen, first, second = Seen(), _piece("a"), _piece("b")
    seen.keep([first, second])
    first.lead_to(second)
    body = second.raw
    assert first.behind(body, 0) is second
    seen.forget(second)
    del second
    assert first.behind(body, 0) is None
    assert seen.size == first.size


_TEXTS: dict[str, Callable[[int], str]] = {
    "short": lambda at: f"{at}",
    "ASCII": lambda at: f"{at} line of source " * 50,
    "Chinese": lambda at: f"{at}中文字符" * 50,
    "one emoji": lambda at: f"{at} line of source 😀" + "line of source " * 50,
    "many lines": lambda at: f"{at}\n" * 300,
}


@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize("text", _TEXTS)
def test_it_takes_no_more_than_it_counts(text: str, escaped: bool) -> None:
    talks = [_talk(_TEXTS[text], at) for at in range(40)]
    _require_modest([json.dumps(talk, ensure_ascii=escaped).encode() for talk in talks])


@pytest.mark.parametrize("value", [[], {}, 0.5, "ab", [[]]])
@pytest.mark.parametrize("where", ["messages", "tools", "rest"])
def test_many_small_values_are_counted(where: str, value: Any) -> None:
    message, own = {"role": "user", "content": "hi"}, {"own": [value] * 400}
    bodies = []
    for at in range(120):
        function = {"name": f"f{at}", "parameters": own if where == "tools" else {}}
        tools = [{"type": "function", "function": function}]
        said = {**message, "at": at, **(own if where == "messages" else {})}
        rest = {"user": f"{at}", **(own if where == "rest" else {})}
        bodies.append(
            json.dumps({"model": "m", "messages": [said], "tools": tools, **rest}).encode()
        )
    _require_modest(bodies)


def _require_modest(bodies: Sequence[bytes]) -> None:
    seen = Seen(1 << 20, least_body=0)
    gc.collect()
    tracemalloc.start()
    for body in bodies:
        parse(body, seen=seen)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < seen.size * 1.1 < 1.2 * (1 << 20)


def _talk(text: Callable[[int], str], at: int) -> Json:
    messages = []
    for turn in range(at, at + 40, 2):
        call = {"name": "f", "arguments": json.dumps({"path": f"/src/{turn}", "start": turn})}
        made = {"id": f"c{turn}", "type": "function", "function": call}
        messages += [
            {"role": "user", "content": [{"type": "text", "text": text(turn)}]},
            {"role": "assistant", "content": text(turn + 1), "tool_calls": [made]},
            {"role": "tool", "tool_call_id": made["id"], "content": text(-turn)},
        ]
    return {"model": "m", "messages": messages, "user": f"{at}"}
