"""What upstreams answer is read in linear time, and in memory that is bounded."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import orjson
import pytest

from adapters.compatible import completions
from adapters.compatible.state import State
from adapters.protocol import Json
from adapters.shared.cache import bounded
from adapters.shared.think_tags import Splitter
from adapters.wire.exchange import Exchange, Listener
from adapters.wire.framing import Ndjson, Sse
from adapters.wire.http import Link, Transport
from tests.linear.measuring import is_long, require_linear

claude = import_module("adapters.claude.decode")
ollama = import_module("adapters.ollama.decode")


# Answers: of every wire, in reads of the size the network has, and in single bytes ---------------


WIRES: Mapping[str, Callable[[bool], Any]] = {
    "compatible": lambda shaped: (State(), Sse, completions),
    "claude": lambda shaped: (claude.State(), Sse, claude),
    "ollama": lambda shaped: (
        ollama.State(
            schemas={f"f{at}": {"items": {"items": {"type": "integer"}}} for at in range(1024)},
            shaped=shaped,
            thought=None if shaped else Splitter(),
        ),
        Ndjson,
        ollama,
    ),
}
_READ = 1 << 16


def _listener(wire: str, streamed: bool = True) -> Listener[Any]:
    state, framing, read = WIRES[wire](streamed)
    exchange = Exchange(
        "", {}, (), state, streamed, framing, read.decode, read.close, read.decode_answer
    )
    return Listener(Link("upstream", "", Transport()), exchange, {})


def hear(wire: str, data: bytes, read: int = _READ) -> float:
    """Read an answer; the longest time that one piece of it held the loop."""
    listener, longest = _listener(wire), 0.0
    for at in range(0, len(data), read):
        begun = time.thread_time()
        listener.feed(data[at : at + read])
        longest = max(longest, time.thread_time() - begun)
        if listener.over or listener.failure:
            break
    return longest


def _sse(value: Any) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def _delta(delta: Json) -> bytes:
    return _sse({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def _piece(arguments: str, **said: Any) -> bytes:
    name = {"name": said.pop("name")} if "name" in said else {}
    return _delta({"tool_calls": [{**said, "function": {**name, "arguments": arguments}}]})


def _claude(kind: str, **delta: Any) -> bytes:
    """A block with many deltas: the first event, and then the one that is repeated."""
    begun = [
        {"type": "message_start", "message": {"model": "m", "content": [], "usage": {}}},
        {"type": "content_block_start", "content_block": {"type": kind, "name": "f", "id": "a"}},
    ]
    return b"".join(map(_sse, begun)) + b"|" + _sse({"type": "content_block_delta", "delta": delta})


def _line(**message: Any) -> bytes:
    said = {"role": "assistant", "content": "", **message}
    return orjson.dumps({"model": "m", "message": said, "done": False}) + b"\n"


def _call(arguments: Any) -> Json:
    return {"function": {"name": "f1", "arguments": arguments}}


# The wire, and what its answer is made of: what stands before the bar once, the rest repeated.
ANSWERS: Mapping[str, tuple[str, bytes]] = {
    "text": ("compatible", _delta({"content": "a"})),
    "a name with every piece": ("compatible", _piece("{", index=0, name="f")),
    "an end in every piece": (
        "compatible",
        _piece("{", index=0, id="a", name="f")
        + (_piece("{", index=1, id="b", name="f") + b"|" + _piece('"}', index=0)),
    ),
    "pieces without a place": (
        "compatible",
        _delta({"tool_calls": [{"id": one, "function": {"name": "f"}} for one in "ab"]})
        + (b"|" + _delta({"tool_calls": [{"function": {"arguments": "x"}}] * 2})),
    ),
    "calls behind a long one": (
        "compatible",
        _piece("{" + "a" * 400_000, index=0, id="a", name="f")
        + (b"|" + _delta({"tool_calls": [{"index": 1, "function": {"name": "g"}}]})),
    ),
    "probabilities": (
        "compatible",
        _sse({"choices": [{"delta": {}, "logprobs": {"content": [{"token": "a"}]}}]}),
    ),
    "signatures": ("claude", _claude("thinking", type="signature_delta", signature="s" * 90)),
    "citations": ("claude", _claude("text", type="citations_delta", citation={})),
    "summaries": ("claude", _claude("compaction", type="compaction_delta", content="s" * 90)),
    "arguments": ("claude", _claude("tool_use", type="input_json_delta", partial_json="}")),
    "texts and pings in turn": (
        "claude",
        _claude("text", type="text_delta", text="a") + _sse({"type": "ping"}),
    ),
    "lines": ("ollama", _line(content="a")),
    "blank lines": ("ollama", _line(content=" ")),
    "thoughts": ("ollama", _line(content="<think>") + b"|" + _line(content="<")),
    "what may be a call": (
        "ollama",
        _line(content='{"name":"f1","arguments":') + b"|" + _line(content="a"),
    ),
    "calls in lines": ("ollama", _line(tool_calls=[_call({"a": 1})])),
    "arguments to be checked": ("ollama", _line(tool_calls=[_call([[1] * 900])])),
    "comments": ("compatible", b":\n\n"),
    "line ends": ("compatible", b"\r"),
    "data without end": ("compatible", b"data: a\n"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_no_answer_holds_the_loop(name: str) -> None:
    wire, said = ANSWERS[name]
    once, _, again = said.rpartition(b"|")

    def grow(size: int) -> bytes:
        return once + again * (size // len(again))

    require_linear(partial(hear, wire), grow, 1 << 19)
    assert not is_long(hear(wire, grow(1 << 13), 1))


WHOLE: Mapping[str, tuple[str, bytes, bytes, bytes]] = {
    "calls in a line": (
        "ollama",
        b'{"message":{"tool_calls":[1',
        b"," + orjson.dumps(_call({"a": 1.5})).replace(b"1.5", b"1." + b"5" * 20),
        b"]}}\n",
    ),
    **{
        f"{kind} {name}": (wire, begin + b"[", again, b"{}]" + end)
        for kind, again in (("empty", b"{},"), ("short", b'{"type":"x","text":"a"},'))
        for name, wire, begin, end in (
            ("values", "compatible", b'data: {"a":', b"}\n\n"),
            ("choices", "compatible", b'data: {"choices":', b"}\n\n"),
            ("calls", "compatible", b'data: {"choices":[{"delta":{"tool_calls":', b"}}]}\n\n"),
            ("parts", "compatible", b'data: {"choices":[{"delta":{"content":', b"}}]}\n\n"),
            ("details", "compatible", b'data: {"choices":[{"delta":{"logprobs":', b"}}]}\n\n"),
            ("calls in a line", "ollama", b'{"message":{"tool_calls":', b"}}\n"),
            ("blocks", "claude", b'data: {"type":"message_start","message":{"content":', b"}}\n\n"),
        )
    },
    "nested": (
        "compatible",
        b'data: {"a":[NaN,[]',
        b"," + b'{"a":' * 40 + b"1" + b"}" * 40,
        b"]}\n\n",
    ),
    "not a number": ("compatible", b'data: {"a":[NaN', b",[]", b"]}\n\n"),
    "never closed": ("compatible", b'data: {"a":NaN,"b":', b"[", b"\n\n"),
    "digits": (
        "ollama",
        b'{"message":{"tool_calls":[{"function":{"name":"f1","arguments":[1',
        b",1234567890123456789.5",
        b"]}}]}}\n",
    ),
    "a long number": (
        "ollama",
        b'{"message":{"tool_calls":[{"function":{"name":"f1","arguments":[1',
        b"9",
        b"]}}]}}\n",
    ),
    "an error": ("compatible", b"event: error\ndata: ", b"<script ", b"\n\n"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_no_frame_holds_the_loop(name: str) -> None:
    wire, begin, again, end = WHOLE[name]
    data = begin + again * ((1 << 22) // len(again)) + end
    assert not is_long(hear(wire, data, 1 << 23))


@pytest.mark.parametrize(
    ("wire", "begin"),
    [
        ("compatible", b'{"choices":[{"message":{"content":['),
        ("compatible", b'{"choices":[{"message":{"tool_calls":['),
        ("claude", b'{"stop_reason":"end_turn","content":['),
        ("ollama", b'{"done":true,"message":{"tool_calls":['),
    ],
)
def test_no_whole_answer_holds_the_loop(wire: str, begin: bytes) -> None:
    for again in (b"{},", b'{"type":"text","text":"a"},', b'{"type":"thinking"},'):
        assert not all(is_long(_held_by_whole(wire, begin, again)) for _ in range(3))


def _held_by_whole(wire: str, begin: bytes, again: bytes) -> float:
    """How long the end of an unfit whole answer holds the loop."""
    listener = _listener(wire, streamed=False)
    listener.feed(begin + again * ((1 << 22) // len(again)))
    listener.feed(b"{}]}" if wire == "claude" else b"{}]}}" + b"]}" * (wire == "compatible"))
    begun = time.thread_time()
    assert not listener.feed(b"")
    assert listener.failure is not None
    return time.thread_time() - begun


def test_a_long_answer_may_have_a_probability_of_each_token() -> None:
    top = [{"token": "a", "logprob": -1.5, "bytes": [97]}] * 20
    token = {"token": "a", "logprob": -1.5, "bytes": [97], "top_logprobs": top}
    choice = {"message": {"content": "a"}, "logprobs": {"content": [token] * 4000}}
    listener = _listener("compatible", streamed=False)
    listener.feed(orjson.dumps({"choices": [{**choice, "finish_reason": "stop"}]}))
    assert listener.feed(b"")
    assert listener.failure is None


def test_an_answer_in_small_pieces_takes_no_more_memory_than_it_has_bytes() -> None:
    listener = _listener("compatible")
    listener.feed(b"data: ")
    tracemalloc.start()
    for at in range(1 << 15):
        listener.feed(b"%02x" % (at % 256))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 18


# Memory ------------------------------------------------------------------------------------------


def test_what_is_remembered_is_bounded_in_bytes_for_all_together() -> None:
    made: list[bytes] = []

    @bounded(10_000)
    def length(key: bytes, more: int = 0) -> int:
        made.append(key)
        return len(key) + more

    assert [length(b"a" * 500), length(b"a" * 500), length(b"a" * 500, 1)] == [500, 500, 501]
    assert made == [b"a" * 500] * 2
    for letter in (b"b", b"c", b"d"):
        length(letter * 800)  # the first two are out
    made.clear()
    assert length(b"d" * 800) == 800
    assert not made
    length(b"a" * 500)
    assert made == [b"a" * 500]
    length(b"e" * 2501)  # too long to be kept, and drives nothing out
    made.clear()
    length(b"a" * 500)
    length(b"e" * 2501)
    assert made == [b"e" * 2501]
