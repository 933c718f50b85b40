"""What strangers send is read in linear time: the worst texts of every reader, grown.

Twice as much may take twice as long, and nothing of a few megabytes may hold the event loop.
CPU time of this thread is what counts, the least of several tries, so that other load says nothing.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import orjson
import pytest

from adapters import claude, compatible, deepseek
from adapters.claude.capabilities import capability
from adapters.claude.encode import Profile
from adapters.claude.encode import encode as claude_encode
from adapters.claude.tools import box_of
from adapters.compatible import completions
from adapters.errors import GatewayError, from_words, words_of
from adapters.ollama.encode import Setup
from adapters.ollama.encode import encode as ollama_encode
from adapters.protocol import ChatRequest, Events, Json, Planned
from adapters.shared.cache import bounded
from adapters.shared.schema import mismatch
from adapters.shared.think_tags import Splitter
from adapters.shared.toolbox import toolbox
from adapters.wire.exchange import Exchange, Listener
from adapters.wire.framing import Ndjson, Sse
from middleware.doors.chat import parse
from middleware.doors.chat.parse import MAX_VALUES
from middleware.wrappers.emulation.ask.asking import Emulation, prompted
from middleware.wrappers.emulation.judge.schemas import coerced
from middleware.wrappers.recall import MemoryStore, Recall
from middleware.wrappers.recall import fingerprint as said

LONGEST_HOLD = 0.25
"""Seconds of CPU that may go by in one piece."""
_NOISE = 0.04

ollama = import_module("adapters.ollama.decode")
Work = Callable[[], Any]


def seconds(work: Work, tries: int = 2) -> float:
    """The CPU time of the quickest try."""
    gc.collect()
    return min(_once(work) for _ in range(tries))


def _once(work: Work) -> float:
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def is_long(held: float) -> bool:
    """Whether it held the loop for too long, on a machine as quick as this was written on."""
    return held > LONGEST_HOLD and held > LONGEST_HOLD * min(4, seconds(_reference) / 0.02)


def _reference() -> None:
    """What takes 20 ms of CPU there while nothing else runs."""
    made: dict[str, Any] = {}
    for at in range(40_000):
        made[str(at)] = [at, {"a": at}]


def require_linear(read: Callable[[Any], Any], grow: Callable[[int], Any], size: int) -> None:
    """A reader takes not much more than twice as long for what is twice as large."""
    for part in (64, 16, 4):  # so that what is worse fails soon
        begun = _once(partial(read, grow(size // part)))
        assert not is_long(begun), f"{begun:.2f} s for one part of {part}"
    small, large = grow(size // 2), grow(size)
    half, whole = seconds(partial(read, small)), seconds(partial(read, large))
    assert not is_long(whole), f"{whole:.2f} s"
    assert whole <= 3 * half + _NOISE, f"{half:.4f} s, then {whole:.4f} s"


# Texts: what a message, a schema or an error says -----------------------------------------------

RECALLED: Mapping[str, Callable[[int], str]] = {
    "openers": lambda size: "<think>" * (size // 7),
    "closers": lambda size: "</think>" * (size // 8),
    "closers with words": lambda size: "</think> x" * (size // 10),
    "closers with blanks": lambda size: ("</think>" + " " * 1000 + "x") * (size // 1009),
    "pairs": lambda size: "<think></think>" * (size // 15),
    "blanks": lambda size: " " * size + "</think>",
    "openers behind a closer": lambda size: "</think>" + "<think>" * (size // 7),
    "openers before a closer": lambda size: "<think>" * (size // 7) + "</think>",
}


@pytest.mark.parametrize("text", RECALLED)
def test_thoughts_in_texts_are_found_in_linear_time(text: str) -> None:
    require_linear(said.words, RECALLED[text], 1 << 20)


ERRORS: Mapping[str, Callable[[int], str]] = {
    "scripts": lambda size: "<script " * (size // 8),
    "styles": lambda size: "<style>" * (size // 7),
    "closers": lambda size: "</script>" * (size // 9),
    "brackets": lambda size: "<" * size,
    "words": lambda size: "context " * (size // 8),
    "histories": lambda size: "reasoning_content tool_use " * (size // 27),
    "keys": lambda size: "sk-" * (size // 3),
    "blanks": lambda size: " " * size,
}


@pytest.mark.parametrize("text", ERRORS)
def test_an_upstreams_error_is_worded_in_linear_time(text: str) -> None:
    def read(body: bytes) -> None:
        from_words(400, words_of(body), "upstream", ("a-secret",))

    require_linear(read, lambda size: ERRORS[text](size).encode(), 1 << 18)


# Values and schemas: each may be made for the other ---------------------------------------------


def _nested(keyword: str, depth: int) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = {keyword: [schema, schema]}
    return schema


PATTERNS = (
    *(
        "^(a+)+$",
        "^(a|a)*b",
        "^(a|aa)+$",
        "^(a?){25}a{25}$",
        "a*a*a*a*b",
        "(?:(?:(?:){99}){99}){99}",
    ),
    *("^" + "a?" * 25 + "a" * 25 + "$", "^(?=(a+)+b)", "(((a{1,60}){1,60}){1,60})c"),
)
CHECKED: Mapping[str, tuple[Any, Any]] = {
    **{pattern: ("a" * 60, {"items": {}, "pattern": pattern}) for pattern in PATTERNS},
    **{keyword: ("x", _nested(keyword, 12)) for keyword in ("anyOf", "oneOf", "allOf")},
    "wide": ([["x" * 1_000_000]] * 99, {"anyOf": [{"items": {"type": "null"}}] * 50_000}),
    "required": ({"x": "y"}, {"anyOf": [{"required": ["name" * 250_000]}] * 9000}),
    "enum": ("x", {"allOf": [{"anyOf": [{"enum": ["y"] * 20_000}, {}]}] * 9000}),
    "unlike": ([{}] * 100_000, {"items": {"anyOf": [{"required": ["a"]}] * 20}}),
    "patterns": ("a" * 60, {"anyOf": [{"pattern": "b" * 400 + str(at)} for at in range(9000)]}),
    "paths": ({"a" * 1_000_000: 1}, {"anyOf": [{"additionalProperties": False}] * 9000}),
    "references": (
        "x",
        {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 9}}, "$ref": "#/$defs/a"},
    ),
}


@pytest.mark.parametrize("case", CHECKED)
def test_a_value_is_checked_within_a_budget(case: str) -> None:
    value, schema = CHECKED[case]
    assert not is_long(seconds(lambda: mismatch(value, schema), 1))
    assert not is_long(seconds(lambda: coerced(value, schema), 1))


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        (r"^\d{4}-\d{2}-\d{2}$", "2026-11-18", "18.11.2026"),
        (r"^[^@\s]+@[^@\s]+\.[^@\s]+$", "a@b.example", "a.example"),
        (r"^\+?[1-9]\d{1,14}$", "+4930123456", "none"),
        (r"^#?([a-f0-9]{6}|[a-f0-9]{3})$", "#c0ffee", "#coffee"),
        (r"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}\d+$", "127.0.0.1", "127.0.1"),
        (r"^\d+(?:\.\d+)?$", "1.5", "1.5.0"),
        (r"^(?=.*\d)(?=.*[a-z]).{8,}$", "passw0rd", "password"),
    ],
)
def test_usual_patterns_are_still_checked(pattern: str, fits: str, does_not: str) -> None:
    assert mismatch(fits, {"pattern": pattern}) is None
    assert mismatch(does_not, {"pattern": pattern})


# Requests: parsed, and written for every upstream ------------------------------------------------


class Silent:
    """Says what it would be sent."""

    async def stream(self, request: ChatRequest) -> Events:
        yield ()

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        return (Planned("", "", {"messages": request.messages}),)


_CLAUDE = capability("claude-sonnet-4-5", {})
LEAVES: Mapping[str, Callable[[ChatRequest], Any]] = {
    "claude": lambda prompted: claude_encode(prompted, box_of(prompted, _CLAUDE), Profile(_CLAUDE))[
        0
    ],
    "ollama": lambda prompted: ollama_encode(prompted, toolbox(prompted), Setup())[0],
    "deepseek": lambda prompted: deepseek.encode(prompted, deepseek.Habits())[0],
    "compatible": lambda prompted: compatible.encode(prompted, compatible.Dialect())[0],
    "emulated": lambda request: prompted(request, Emulation(), True),
    "recall": lambda prompted: Recall(Silent(), MemoryStore()).plan(prompted)[0].body,
}
USER = {"role": "user", "content": "hi"}
_MANY = MAX_VALUES * 9 // 10
_LONG = 4_000_000


def _tool(parameters: Json, name: str = "f") -> Json:
    function = {"name": name, "parameters": parameters, "strict": True}
    return {"type": "function", "function": function}


def _round(at: int, arguments: str = '{"a": 1}') -> list[Json]:
    function = {"name": "f", "arguments": arguments}
    call = {"id": f"c{at}", "type": "function", "function": function}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [said, {"role": "tool", "tool_call_id": f"c{at}", "content": "x"}]


def _laughing(levels: int, words: str) -> Json:
    two = [{"$ref": f"#/$defs/l{level + 1}"} for level in range(levels)]
    shapes = {
        f"l{level}": {"properties": {"a": two[level], "b": two[level]}} for level in range(levels)
    }
    last = {"type": "string", "description": words}
    return {"properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": {**shapes, f"l{levels}": last}}


def _properties(schema: Json, count: int) -> Json:
    return {"type": "object", "properties": {f"a{at}": schema for at in range(count)}}


_DESCRIBED = {"type": "string", "description": "d" * 60_000}
_MEMBERS = _properties({"type": "string"}, 5000)
SCHEMAS: Mapping[str, list[Json]] = {
    "billion laughs in each of 800 tools": [_laughing(6, "ha" * 100)] * 800,
    "long laughs": [_laughing(20, "ha" * 30_000)],
    "one description 10,000 times": [
        {**_properties({"$ref": "#/$defs/a"}, 10_000), "$defs": {"a": _DESCRIBED}}
    ],
    "one description 10,000 times, by recursion": [
        {**_properties({"$ref": "#"}, 10_000), "description": "d" * 60_000}
    ],
    "one object in many branches": [
        {"anyOf": [{"$ref": "#/$defs/a"}] * 9000, "$defs": {"a": {**_DESCRIBED, **_MEMBERS}}}
    ],
    "branches": [{"anyOf": [_properties({"const": at}, 1) for at in range(_MANY // 6)]}],
    "properties": [_properties({}, _MANY // 2)],
    "names": [_properties({"required": ["a" * 1000] * 4}, 900)],
    "tools": [_properties({"type": "string", "pattern": "a"}, 12)] * 1000,
    "values": [{"properties": {"a": {"enum": ["a" * 60] * _MANY}}}],
}
BODIES: Mapping[str, Json] = {
    "text": {"messages": [{"role": "user", "content": "a" * _LONG}]},
    "escapes": {"messages": [{"role": "user", "content": '"\\\n' * (_LONG // 6)}]},
    "thoughts": {"messages": [{"role": "assistant", "content": "<think>" * (_LONG // 7)}, USER]},
    "messages": {"messages": [USER] * (_MANY // 3)},
    "turns": {"messages": [{"role": "assistant", "content": "a"}, USER] * (_MANY // 6)},
    "parts": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * (_MANY // 3)}]
    },
    "rounds": {"messages": [USER, *(m for at in range(_MANY // 14) for m in _round(at))]},
    "calls of one id": {"messages": [USER, *_round(0) * (_MANY // 14)]},
    "long arguments": {"messages": [USER, *_round(0, "[" + "1, " * (_LONG // 3) + "1]")]},
    "arguments": {"messages": [USER, *_round(0, "[" + "1, " * 340_000 + "1]")]},
    "escaped arguments": {"messages": [USER, *_round(0, "[" + r'"\u0041", ' * 90_000 + "1]")]},
    "fields": {"messages": [USER], **{f"x{at}": 1 for at in range(_MANY)}},
    "members": {"messages": [{**USER, **{f"x{at}": 1 for at in range(_MANY)}}]},
    **{
        name: {
            "messages": [USER],
            "tools": [_tool(one, f"f{at}") for at, one in enumerate(schemas)],
        }
        for name, schemas in SCHEMAS.items()
    },
    **{
        f"format: {name}": {
            "messages": [USER],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "schema": schemas[0]},
            },
        }
        for name, schemas in SCHEMAS.items()
    },
}


@pytest.fixture(autouse=True)
def collecting_as_the_server_does() -> Iterator[None]:
    """See `serving`: the collector runs seldom there."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 50)
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("name", BODIES)
def test_no_request_holds_the_loop(name: str) -> None:
    body = orjson.dumps({"model": "m", **BODIES[name]})
    assert len(body) < 9_000_000
    parsed = seconds(lambda: parse(body), 2)
    assert not is_long(parsed)
    for leaf in LEAVES:
        sent: list[int] = []
        written = seconds(partial(_write, leaf, parse(body).request, sent), 2)
        assert not is_long(written + parsed), f"{leaf}: {parsed:.2f} s and {written:.2f} s"
        assert max(sent, default=0) < 2 * len(body) + 4_000_000, f"{leaf}: {max(sent)} bytes"


def _write(leaf: str, request: ChatRequest, sent: list[int]) -> None:
    try:
        written = LEAVES[leaf](request)
    except GatewayError:
        return  # a refusal is an answer too
    if isinstance(written, dict):
        sent.append(len(orjson.dumps(written)))


@pytest.mark.parametrize("value", ["0", "[]", '""', "{}", '{"a":0}'])
@pytest.mark.parametrize("broken", [False, True])
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(value: str, broken: bool) -> None:
    body = (
        '{"model":"m","messages":[],"x":[' + f"{value}," * MAX_VALUES + value + "]}" * (not broken)
    )
    with pytest.raises(GatewayError) as caught:
        parse(body.encode())
    begun = time.thread_time()
    with pytest.raises(GatewayError):
        parse(body.encode())
    assert time.thread_time() - begun < 0.05
    assert (caught.value.status, caught.value.code) == (413, "request_too_large")


def test_commas_and_brackets_in_strings_are_no_values() -> None:
    text = ',[{"\\' * MAX_VALUES
    body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})
    assert parse(body).request.messages[0]["content"] == text


def test_halves_of_characters_are_found_in_linear_time() -> None:
    for text in (r"\n", r"\ud83d", r"\ud83d\ude00", r"\\ud83d", r"\ude00\ud83d"):
        body = f'{{"model":"m","messages":[{{"role":"user","content":"{text * 300_000}\\ud83d"}}]}}'
        assert not is_long(seconds(partial(parse, body.encode()), 2))


# Answers: of every wire, in reads of the size the network has, and in single bytes ---------------

WIRES: Mapping[str, Callable[[bool], Any]] = {
    "compatible": lambda shaped: (completions.State(), Sse, completions),
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
    return Listener("upstream", exchange, {})


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
        listener = _listener(wire, streamed=False)
        listener.feed(begin + again * ((1 << 22) // len(again)))
        listener.feed(b"{}]}" if wire == "claude" else b"{}]}}" + b"]}" * (wire == "compatible"))
        begun = time.thread_time()
        assert not listener.feed(b"")
        assert listener.failure is not None
        assert time.thread_time() - begun < LONGEST_HOLD


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

    @bounded(100)
    def length(key: bytes, more: int = 0) -> int:
        made.append(key)
        return len(key) + more

    assert [length(b"a" * 20), length(b"a" * 20), length(b"a" * 20, 1)] == [20, 20, 21]
    assert made == [b"a" * 20] * 2
    for letter in (b"b", b"c", b"d"):
        length(letter * 25)  # the first two are out
    made.clear()
    assert length(b"d" * 25) == 25
    assert not made
    length(b"a" * 20)
    assert made == [b"a" * 20]
    length(b"e" * 26)  # too long to be kept, and drives nothing out
    made.clear()
    length(b"a" * 20)
    length(b"e" * 26)
    assert made == [b"e" * 26]


@pytest.mark.parametrize("leaf", ["claude", "ollama"])
def test_large_tools_are_read_once(leaf: str) -> None:
    tools = tuple(
        _tool(_properties({"type": "string", "description": leaf * 9}, 20), f"f{at}")
        for at in range(60)
    )
    request = ChatRequest("m", (USER,), tools=tools)
    assert len(orjson.dumps(tools)) > 60_000
    first = seconds(lambda: LEAVES[leaf](request), 1)
    assert seconds(lambda: LEAVES[leaf](request)) < first / 4
