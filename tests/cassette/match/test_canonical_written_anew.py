"""Whatever is written anew is the same ask, and any letter makes another: properties."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adapters.protocol import Json
from tests.cassette.asks import LONG, SHORT, changed, match, put, round_of

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(-1e6, 1e6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def shuffled(value: Any, order: random.Random) -> Any:
    """The same JSON with its members in another order."""
    if isinstance(value, dict):
        names = order.sample(list(value), len(value))
        return {name: shuffled(value[name], order) for name in names}
    return [shuffled(one, order) for one in value] if isinstance(value, list) else value


@given(
    arguments=st.lists(
        st.dictionaries(st.text(max_size=4), values, max_size=3), min_size=1, max_size=3
    ),
    order=st.randoms(use_true_random=False),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 2]),
)
def test_an_ask_written_anew_is_the_same(
    arguments: list[Json], order: random.Random, ascii_only: bool, indent: int | None
) -> None:
    def rounds(prefix: str, **style: Any) -> list[Json]:
        turns = [
            round_of((f"{prefix}{at}", "stock", json.dumps(one, **style), str(at)))
            for at, one in enumerate(arguments)
        ]
        return [message for turn in turns for message in turn]

    recorded = SHORT | {"messages": [*SHORT["messages"], *rounds("call_")]}
    anew = rounds("mine-", ensure_ascii=ascii_only, indent=indent)
    for message in anew:
        for call in message.get("tool_calls", ()):
            again = shuffled(json.loads(call["function"]["arguments"]), order)
            call["function"]["arguments"] = json.dumps(again, indent=indent)
    now = shuffled(SHORT | {"messages": [*SHORT["messages"], *anew]}, order)
    assert match(recorded, now)


TEXTS: tuple[tuple[str | int, ...], ...] = (
    ("messages", 0, "content"),
    ("messages", 1, "content"),
    ("messages", 3, "content"),
    ("messages", 2, "tool_calls", 0, "function", "arguments"),
    ("tools", 0, "function", "description"),
    ("model",),
)


def at(body: Any, path: tuple[str | int, ...]) -> str:
    for step in path:
        body = body[step]
    return str(body)


@given(
    path=st.sampled_from(TEXTS),
    place=st.integers(0, 100),
    letter=st.characters(codec="utf-8", exclude_characters="\r\n\t \\"),
)
def test_any_letter_of_any_text_counts(
    path: tuple[str | int, ...], place: int, letter: str
) -> None:
    text = at(LONG, path)
    place %= len(text)
    other = text[:place] + letter + text[place + 1 :]
    if other != text:
        assert not match(LONG, changed(LONG, put(other, *path)))
