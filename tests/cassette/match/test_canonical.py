"""Which asks are the same ask: tables of what does not matter and of what does, and properties."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from adapters.protocol import Json
from middleware.cassettes.match import MatchRules, canonical_embeddings, key_of
from tests.cassette.asks import (
    BUY,
    LAMP,
    LONG,
    SHADE,
    SHORT,
    STOCK,
    Change,
    changed,
    form_of,
    match,
    put,
    round_of,
)


def say(value: Any, message: int = 1) -> Change:
    return put(value, "messages", message, "content")


def function(value: Any, *path: str) -> Change:
    return put(value, "tools", 0, "function", *path)


def argued(arguments: str) -> Change:
    return put(arguments, "messages", 2, "tool_calls", 0, "function", "arguments")


def parts(*texts: str) -> list[Json]:
    return [{"type": "text", "text": text} for text in texts]


def replaced(*messages: Json) -> Change:
    """The first round of the long ask."""
    return lambda body: body["messages"].__setitem__(slice(2, 5), messages)


def put_again(body: Json) -> None:
    """Some servers count from the same id in every answer."""
    body["messages"][5:7] = round_of(("a", "buy", '{"sku":"L-1"}', "done"))


FIRST, SECOND = ("a", "stock", LAMP, "3"), ("b", "stock", SHADE, "none")
PIXEL = base64.b64encode(bytes(range(60))).decode()


PICTURE = ("messages", 1, "content", 1, "image_url")


def picture(url: str) -> Change:
    return say([*parts("What is it?"), {"type": "image_url", "image_url": {"url": url}}])


SAME: Mapping[str, tuple[Json, Change]] = {
    "nothing": (SHORT, lambda body: None),
    "part of text": (SHORT, say(parts("还有灯吗？"))),
    "line ends": (SHORT, say("You sell lamps.\r\nBe polite.", 0)),
    "developer": (SHORT, put("developer", "messages", 0, "role")),
    "order of tools": (SHORT, lambda body: body["tools"].reverse()),
    "choice auto": (SHORT, put("auto", "tool_choice")),
    "parallel": (SHORT, put(True, "parallel_tool_calls")),
    "format text": (SHORT, put({"type": "text"}, "response_format")),
    "no logprobs": (SHORT, put(False, "logprobs")),
    "one choice": (SHORT, put(1, "n")),
    "null": (SHORT, put(None, "max_tokens")),
    "null of an extra": (SHORT, put(None, "top_k")),
    "streamed": (SHORT, put(True, "stream")),
    "usage": (SHORT, lambda body: body.update(stream=True, stream_options={"include_usage": True})),
    "lax function": (SHORT, function(False, "strict")),
    "line ends of a description": (
        changed(SHORT, function("One.\nTwo.", "description")),
        function("One.\r\nTwo.", "description"),
    ),
    "number of a schema": (
        changed(SHORT, function(1, "parameters", "properties", "shop", "minimum")),
        function(1.0, "parameters", "properties", "shop", "minimum"),
    ),
    "number": (changed(SHORT, put(1, "top_p")), put(1.0, "top_p")),
    "who asks": (SHORT, lambda body: body.update(user="u", safety_identifier="s", metadata={})),
    "seed": (SHORT, lambda body: body.update(seed=4, store=False, service_tier="auto")),
    "ids": (LONG, replaced(*round_of(("x1", *FIRST[1:]), ("x0", *SECOND[1:])))),
    "an id again": (LONG, put_again),
    "results swapped": (LONG, lambda body: body["messages"].insert(3, body["messages"].pop(4))),
    "empty text beside calls": (LONG, say("", 2)),
    "no text beside calls": (LONG, lambda body: body["messages"][2].pop("content")),
    "index of a call": (LONG, put(0, "messages", 2, "tool_calls", 0, "index")),
    "signature of a call": (LONG, put({"k": "v"}, "messages", 2, "tool_calls", 0, "extra_content")),
    "thoughts": (LONG, put("Hm, lamps.", "messages", 2, "reasoning_content")),
    "signed thoughts": (LONG, put([{"thinking": "Hm"}], "messages", 2, "thinking_blocks")),
    "annotations": (LONG, put([], "messages", 2, "annotations")),
    "no refusal": (LONG, put(None, "messages", 2, "refusal")),
    "name of a result": (LONG, put("stock", "messages", 3, "name")),
    "result as part": (LONG, say(parts("3"), 3)),
    "white space": (LONG, argued('{ "sku": "L-1",\n"shop" : 7 }')),
    "order of arguments": (LONG, argued('{"shop":7,"sku":"L-1"}')),
    "escapes": (LONG, argued('{"sku":"\\u004c-1","shop":7}')),
    "number of arguments": (LONG, argued('{"sku":"L-1","shop":70e-1}')),
    "line ends of arguments": (
        changed(LONG, argued('{"sku":"a\\nb"}')),
        argued('{"sku":"a\\r\\nb"}'),
    ),
    "great number": (changed(LONG, argued('{"n":1e21}')), argued('{"n":1000000000000000000000.0}')),
    "no arguments": (changed(LONG, argued("{}")), argued("")),
    "nothing of a picture": (
        changed(SHORT, picture(f"data:image/png;base64,{PIXEL}")),
        put({"url": f"data:image/png;base64,{PIXEL}", "detail": None}, *PICTURE),
    ),
}
OTHER: Mapping[str, tuple[Json, Change]] = {
    "word": (SHORT, say("You sell lamps.\nBe kind.", 0)),
    "space": (SHORT, say("还有灯吗？ ")),
    "form of a letter": (changed(SHORT, say("caf\u00e9")), say("cafe\u0301")),
    "two parts": (changed(SHORT, say("One two")), say(parts("One ", "two"))),
    "role": (SHORT, put("user", "messages", 0, "role")),
    "speaker": (SHORT, put("eva", "messages", 1, "name")),
    "name of a tool": (SHORT, function("stocks", "name")),
    "description": (SHORT, function("How much is left.", "description")),
    "schema": (SHORT, function("string", "parameters", "properties", "shop", "type")),
    "null in a schema": (SHORT, function(None, "parameters", "properties", "shop", "default")),
    "required": (SHORT, function([], "parameters", "required")),
    "strict": (SHORT, function(True, "strict")),
    "a tool less": (SHORT, put([STOCK], "tools")),
    "kind of a tool": (
        changed(SHORT, put([{"type": "function", "function": {"name": "run"}}], "tools")),
        put([{"type": "custom", "custom": {"name": "run"}}], "tools"),
    ),
    "no tool": (SHORT, lambda body: body.pop("tools")),
    "choice": (SHORT, put("none", "tool_choice")),
    "one call at a time": (SHORT, put(False, "parallel_tool_calls")),
    "temperature": (SHORT, put(0.21, "temperature")),
    "a default": (SHORT, put(1, "top_p")),
    "false is no zero": (changed(SHORT, put(0, "flag")), put(False, "flag")),
    "format": (SHORT, put({"type": "json_object"}, "response_format")),
    "effort": (SHORT, put("low", "reasoning_effort")),
    "extra": (SHORT, put(5, "top_k")),
    "model": (SHORT, put("clerk-2", "model")),
    "one more": (SHORT, lambda body: body["messages"].append({"role": "user", "content": "?"})),
    "order": (SHORT, lambda body: body["messages"].reverse()),
    "results of each other": (LONG, replaced(*round_of((*FIRST[:3], "none"), (*SECOND[:3], "3")))),
    "calls in another order": (LONG, replaced(*round_of(SECOND, FIRST))),
    "argument": (LONG, argued('{"sku":"L-2","shop":7}')),
    "text of a number": (LONG, argued('{"sku":"L-1","shop":"7"}')),
    "true": (changed(LONG, argued('{"sku":1}')), argued('{"sku":true}')),
    "null is something": (changed(LONG, argued("{}")), argued('{"sku":null}')),
    "last digit": (
        changed(LONG, argued('{"n":9007199254740993}')),
        argued('{"n":9007199254740992}'),
    ),
    "last of many digits": (
        changed(LONG, argued('{"n":123456789012345678901234567891}')),
        argued('{"n":123456789012345678901234567890}'),
    ),
    "text of JSON": (changed(LONG, argued('"lamp"')), argued("lamp")),
    "broken JSON": (changed(LONG, argued('{"sku":')), argued('{"sku"')),
    "another tool": (LONG, put("buy", "messages", 2, "tool_calls", 0, "function", "name")),
    "result": (LONG, say("4", 3)),
    "kind of a picture's bytes": (
        changed(SHORT, picture(f"data:image/png;base64,{PIXEL}")),
        picture(f"data:image/png;base64,{PIXEL[::-1]}"),
    ),
    "broken bytes of a picture": (
        changed(SHORT, picture(f"data:image/png;base64,{PIXEL}")),
        picture(f"data:image/png;base64,@{PIXEL}"),
    ),
    "address of a picture": (
        changed(SHORT, picture("https://img.example/1.png")),
        picture("https://img.example/2.png"),
    ),
}
STRICTLY_OTHER: Mapping[str, tuple[Json, Change]] = {
    name: SAME[name] for name in ("order of tools", "who asks", "seed", "streamed")
}
IN_CONVERSATION: Mapping[str, tuple[Json, Change]] = {
    **{name: OTHER[name] for name in ("word", "description", "schema", "temperature", "extra")},
    "no system": (SHORT, lambda body: body["messages"].pop(0)),
}


@pytest.mark.parametrize("name", SAME)
def test_does_not_matter(name: str) -> None:
    recorded, change = SAME[name]
    assert match(recorded, changed(recorded, change))


@pytest.mark.parametrize("name", OTHER)
def test_matters(name: str) -> None:
    recorded, change = OTHER[name]
    assert not match(recorded, changed(recorded, change))


@pytest.mark.parametrize("name", STRICTLY_OTHER)
def test_matters_where_everything_does(name: str) -> None:
    recorded, change = STRICTLY_OTHER[name]
    strict = MatchRules(level="strict")
    assert match(recorded, recorded, strict)
    assert not match(recorded, changed(recorded, change), strict)


@pytest.mark.parametrize("name", IN_CONVERSATION)
def test_does_not_matter_to_the_conversation(name: str) -> None:
    recorded, change = IN_CONVERSATION[name]
    assert match(recorded, changed(recorded, change), MatchRules(level="conversation"))


@pytest.mark.parametrize("name", ["argument", "result", "name of a tool", "model", "space"])
def test_matters_to_the_conversation(name: str) -> None:
    recorded, change = OTHER[name]
    assert not match(recorded, changed(recorded, change), MatchRules(level="conversation"))


OLD: Json = {
    "model": "clerk",
    "functions": [STOCK["function"], BUY["function"]],
    "messages": [
        SHORT["messages"][1],
        {"role": "assistant", "function_call": {"name": "stock", "arguments": LAMP}},
        {"role": "function", "name": "stock", "content": "3"},
    ],
}
NEW: Json = {
    "model": "clerk",
    "tools": [STOCK, BUY],
    "messages": [SHORT["messages"][1], *round_of(FIRST)],
}


def test_functions_are_tools() -> None:
    assert match(NEW, OLD)
    assert match(NEW, OLD | {"function_call": "auto"})
    assert not match(NEW, changed(OLD, put("4", "messages", 2, "content")))


def test_a_name_for_another_model() -> None:
    other = SHORT | {"model": "clerk-2"}
    assert match(SHORT, other, MatchRules(model="any"))
    assert match(SHORT, other, MatchRules(models={"clerk-2": "clerk"}))
    assert not match(SHORT, SHORT | {"model": "clerk-3"}, MatchRules(models={"clerk-2": "clerk"}))
    assert not match(SHORT, other | {"temperature": 0.3}, MatchRules(model="any"))


def test_what_answers_is_no_part_of_a_remembered_form() -> None:
    form = form_of(LONG)
    assert form_of(LONG) == form
    assert form["tools"] is form_of(LONG)["tools"]


@pytest.mark.parametrize(
    "arguments",
    ["[" * 90 + "]" * 90, "[" * 5000 + "]" * 5000, '{"n":1e999}', '{"n":NaN}', "9" * 5000],
)
def test_arguments_that_cannot_be_compared_by_value_are_text(arguments: str) -> None:
    body = changed(LONG, argued(arguments))
    assert match(body, body)
    assert not match(body, changed(LONG, argued(arguments + " ,")))


VECTORS: Json = {"model": "vectors", "input": ["lamp"], "dimensions": 8}


@pytest.mark.parametrize(
    ("more", "equal"),
    [
        ({"input": "lamp"}, True),
        ({"user": "u", "encoding_format": "float"}, True),
        ({"unknown": [1.0]}, True),
        ({"dimensions": None}, False),
        ({"input": "lamps"}, False),
        ({"input": ["lamp", "lamp"]}, False),
        ({"encoding_format": "base64"}, False),
        ({"model": "others"}, False),
    ],
)
def test_embeddings(more: Json, equal: bool) -> None:
    keys = [
        key_of("embeddings", canonical_embeddings(body), MatchRules())
        for body in (VECTORS, VECTORS | more)
    ]
    assert (keys[0] == keys[1]) is equal


def test_tokens_are_one_input() -> None:
    keys = [
        key_of("embeddings", canonical_embeddings(VECTORS | {"input": given}), MatchRules())
        for given in ([5, 6], [[5, 6]])
    ]
    assert keys[0] == keys[1]


def test_an_operation_is_part_of_the_key() -> None:
    form = form_of(SHORT)
    assert key_of("chat", form, MatchRules()) != key_of("embeddings", form, MatchRules())
