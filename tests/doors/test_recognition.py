"""What was seen before changes nothing at any door but the time that a request takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import pytest

from adapters.errors import BadRequest
from adapters.protocol import Json, Opened, RequestContext, Upstream
from middleware.doors import DOORS, Doors, remembering_doors
from middleware.doors.door import ParsedRequest, Stamp
from middleware.doors.messages.answer import estimate
from middleware.doors.messages.words import signature

CALL = RequestContext(id="req_1", owner="me", secret=b"s")
SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "number", "minimum": 1.0}}}
PICTURE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "EqQBCkYIB/+=="}
UNSIGNED = {"type": "thinking", "thinking": "hm", "signature": ""}


def _of_messages(round_: int) -> list[Json]:
    use = {"type": "tool_use", "id": f"t{round_}", "name": "f"}
    inputs: list[Json] = [{"a": 1.50}, {"a": 12345678901234567890123}, {"a": "3e8 é"}, {}]
    thought = [SIGNED, UNSIGNED, {"type": "text", "text": "Look."}][round_ % 3]
    image = {"type": "image", "source": PICTURE}
    result = {"type": "tool_result", "tool_use_id": f"t{round_}", "content": [image]}
    mark = {"cache_control": {"type": "ephemeral"}} if round_ == 4 else {}
    said = [result, {"type": "text", "text": "}],[{", **mark}]
    return [
        {"role": "assistant", "content": [thought, {**use, "input": inputs[round_ % 4]}]},
        {"role": "user", "content": said if round_ != 5 else said[::-1]},
    ]


def _of_responses(round_: int) -> list[Json]:
    call = {"type": "function_call", "call_id": f"t{round_}", "name": "f"}
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    spoken = {"role": "assistant", "content": [{"type": "output_text", "text": "Look."}]}
    shown = [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]
    return [
        thought if round_ % 2 else spoken,
        {**call, "arguments": '{"a": 1.50}' if round_ % 3 else "{}"},
        {"type": "function_call_output", "call_id": f"t{round_}", "output": shown},
        {"type": "message", "role": "user", "content": f"}}],[{{ {round_}"},
    ]


def _of_ollama(round_: int) -> list[Json]:
    call = {"function": {"name": "f", "arguments": {"a": 1.5} if round_ % 2 else None}}
    result = {"role": "tool", "content": "x"} if round_ == 4 else {"role": "user", "content": "x"}
    return [
        {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call]},
        {"role": "tool", "content": "é", "tool_name": "f"},
        result,
    ]


_FUNCTION = {"name": "f", "description": "F.", "parameters": SCHEMA}
FORMS: Mapping[str, tuple[str, Json, Callable[[int], list[Json]]]] = {
    "/v1/messages": (
        "messages",
        {
            "max_tokens": 9,
            "system": [{"type": "text", "text": "Be brief."}],
            "tools": [{"name": "f", "description": "F.", "input_schema": SCHEMA}],
            "stop_sequences": ["a", "b", "c", "d", "e"],
            "thinking": {"type": "disabled"},
            "speed": "fast",
        },
        _of_messages,
    ),
    "/v1/responses": (
        "input",
        {
            "instructions": "Be brief.",
            "tools": [{"type": "function", **_FUNCTION}, {"type": "web_search"}],
            "truncation": "auto",
            "own": {"a": 1},
        },
        _of_responses,
    ),
    "/api/chat": (
        "messages",
        {"tools": [{"function": _FUNCTION}], "options": {"top_k": 3}, "keep_alive": "5m"},
        _of_ollama,
    ),
}


def read(doors: Doors, path: str, body: bytes, call: RequestContext = CALL) -> ParsedRequest | str:
    try:
        parsed = doors.at[path].parse(body, repair=False, strict=False, call=call)
    except BadRequest as error:
        return repr((error.message, error.param, error.code))
    return parsed


def told(parsed: ParsedRequest | str) -> Any:
    """All that is said of a request."""
    if isinstance(parsed, str):
        return parsed
    return orjson.dumps((parsed.request, parsed.receipt), default=repr)


def body_of(path: str, items: list[Json], dumped: Callable[[Any], bytes], **more: Any) -> bytes:
    name, rest, _ = FORMS[path]
    return dumped({"model": "m", **rest, name: items, "stream": True, **more})


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def spaced(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("dumped", [spaced, compact])
@pytest.mark.parametrize("path", FORMS)
def test_a_conversation_is_read_the_same_turn_by_turn(
    path: str, dumped: Callable[[Any], bytes]
) -> None:
    doors, items = remembering_doors(), [{"role": "user", "content": "Begin. " * 200}]
    for round_ in range(9):
        items += FORMS[path][2](round_)
        body = body_of(path, items, dumped)
        whole = told(read(DOORS, path, body))
        assert told(read(doors, path, body)) == whole
        assert told(read(doors, path, body)) == whole  # from what is there now
        cut = body_of(path, items[:-1], dumped)
        assert told(read(doors, path, cut)) == told(read(DOORS, path, cut))


@pytest.mark.parametrize("path", FORMS)
def test_messages_that_come_again_are_the_same_objects(path: str) -> None:
    doors, items = remembering_doors(), [{"role": "user", "content": "Begin. " * 200}]
    for round_ in (0, 1, 3, 6, 7):
        items += FORMS[path][2](round_)
    first = read(doors, path, body_of(path, items, spaced))
    again = read(doors, path, body_of(path, [*items, *FORMS[path][2](8)], spaced))
    assert not isinstance(first, str)
    assert not isinstance(again, str)
    pairs = zip(first.request.messages[:-4], again.request.messages, strict=False)
    assert all(one is other for one, other in pairs)


@pytest.mark.parametrize("dumped", [spaced, compact])
def test_tools_of_many_objects_come_again_as_the_same(dumped: Callable[[Any], bytes]) -> None:
    either = {"anyOf": [{"type": "string"}, {"items": {"anyOf": [{"type": "null"}]}}, {}]}
    schema = {"type": "object", "properties": {f"a{at}": either for at in range(40)}}
    tools = [{"function": {**_FUNCTION, "name": f"f{at}", "parameters": schema}} for at in "abc"]
    items, doors = [{"role": "user", "content": "Begin. " * 200}], remembering_doors()
    for round_ in range(9):
        items += _of_ollama(round_)
    body = body_of("/api/chat", items, dumped, tools=tools)
    first, again = read(doors, "/api/chat", body), read(doors, "/api/chat", body)
    assert not isinstance(first, str)
    assert not isinstance(again, str)
    assert first.request.tools is again.request.tools


@pytest.mark.parametrize(
    "more",
    [
        {"tools": 730301400000002},
        {"tools": 5},
        {"messages": 730301400000001},
        {"input": 730301400000001},
        {"metadata": {"tools": 730301400000002}},
        {"thread": "t"},
        {"model": ""},
    ],
)
@pytest.mark.parametrize("path", FORMS)
def test_what_is_odd_is_refused_or_read_as_ever(path: str, more: Json) -> None:
    doors, items = remembering_doors(), [{"role": "user", "content": "Begin. " * 200}]
    items += FORMS[path][2](1)
    read(doors, path, body_of(path, items, spaced))
    body = body_of(path, items, spaced, **more)
    assert told(read(doors, path, body)) == told(read(DOORS, path, body))


@pytest.mark.parametrize("first", ["", "Be brief. " * 200])
@pytest.mark.parametrize("order", [("tools", "items"), ("items", "tools"), ("items",)])
@pytest.mark.parametrize("path", FORMS)
def test_tools_may_stand_anywhere_and_be_written_in_any_way(
    path: str, order: tuple[str, ...], first: str
) -> None:
    doors, (name, rest, more) = remembering_doors(), FORMS[path]
    items = [{"role": "user", "content": "Begin. " * 200}, *more(1), *more(2)]
    said, others = {"tools": rest["tools"], "items": items}, {**rest}
    del others["tools"]
    for begin in (b"[{", b"[ {", b"[{"):
        members = {name if key == "items" else key: said[key] for key in order}
        body = compact({"own": first, "model": "m", **others, **members})
        body = body.replace(b'"tools":[{', b'"tools":' + begin)
        assert told(read(doors, path, body)) == told(read(DOORS, path, body))


@pytest.mark.parametrize("written", ['"tools":\n[', '"tools": [ ', '"own":{"tools":1},"tools": ['])
@pytest.mark.parametrize("path", FORMS)
def test_tools_count_however_they_are_written(path: str, written: str) -> None:
    items = [{"role": "user", "content": "Begin. " * 200}, *FORMS[path][2](1)]
    body = body_of(path, items, spaced).replace(b'"tools": [', written.encode())
    whole = read(DOORS, path, body)
    assert not isinstance(whole, str)
    assert whole.request.tools
    doors = remembering_doors()
    for _ in range(2):
        assert told(read(doors, path, body)) == told(whole)


def test_turns_that_are_one_to_claude_are_joined() -> None:
    """Two that call, one after the other: the results of both follow."""
    begun: list[Json] = [{"role": "user", "content": "Begin. " * 200}]
    first, results = _of_messages(1)
    second = {**first, "content": [{"type": "tool_use", "id": "b", "name": "f", "input": {}}]}
    both = [*results["content"], {**results["content"][0], "tool_use_id": "b"}]
    talk = [*begun, first, second, {"role": "user", "content": both[::2]}]
    doors = remembering_doors()
    for items in (talk, [*begun, *_of_messages(0), *talk[1:]], talk):
        body = body_of("/v1/messages", items, spaced)
        whole = read(DOORS, "/v1/messages", body)
        assert not isinstance(whole, str)
        assert told(read(doors, "/v1/messages", body)) == told(whole)


def test_a_turn_keeps_its_digits_for_its_own_sake_alone() -> None:
    long = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 12345678901234567890123}}
    items: list[Json] = [
        {"role": "user", "content": "Begin. " * 200},
        {"role": "assistant", "content": [UNSIGNED, long]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}], "own": 10},
    ]
    body = body_of("/v1/messages", items, spaced).replace(b'"own": 10', b'"own": 1.10')
    assert told(read(remembering_doors(), "/v1/messages", body)) == told(
        read(DOORS, "/v1/messages", body)
    )


def test_a_thought_is_whose_the_secret_says() -> None:
    """The same words from the same client, when what signs them is another."""
    signed = {**UNSIGNED, "signature": signature(b"s", "deepseek", "hm")}
    items: list[Json] = [
        {"role": "user", "content": "Begin. " * 200},
        {"role": "assistant", "content": [signed]},
    ]
    body, doors = body_of("/v1/messages", items, spaced), remembering_doors()
    for secret in (b"s", b"another", b"s"):
        call = RequestContext(owner="me", secret=secret)
        read_again = told(read(doors, "/v1/messages", body, call))
        assert read_again == told(read(DOORS, "/v1/messages", body, call))


def test_the_estimate_is_that_of_the_whole() -> None:
    doors, items = remembering_doors(), [{"role": "user", "content": "Begin. é" * 200}]
    items += _of_messages(0) + _of_messages(3)
    for _ in range(3):
        parsed = read(doors, "/v1/messages", body_of("/v1/messages", items, spaced))
        assert not isinstance(parsed, str)
        said = b"%d" % estimate(parsed.request)
        frames = parsed.stream(Stamp("req_1", 0, lambda: 0.0)).render([Opened((), Upstream("u"))])
        assert b'"input_tokens":' + said + b"," in frames
