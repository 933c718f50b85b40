"""What two answers to one ask are called, and what is named of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.protocol import Json
from middleware.cassettes.cassette import RecordedAnswer
from middleware.cassettes.diff.rules import DiffRules, differences, read_diff_rules
from middleware.cassettes.diff.verdict import verdict
from middleware.cassettes.errors import UnreadableCassette
from tests.cassette.deciding import ASK, SHAPED, failed, said

NONE = DiffRules()
Case = tuple[str, RecordedAnswer, RecordedAnswer, str]


def book(**arguments: Any) -> tuple[str, Json]:
    return "book", arguments


def find(**arguments: Any) -> tuple[str, Json]:
    return "find", {"words": "x", **arguments}


# What was recorded, what is said now, the word for it, and a path that is named ("" = none is).
CALLS: Sequence[Case] = (
    ("same", said("Yes."), said("Yes."), ""),
    ("same", said(None, book(seat=1)), said("", book(seat=1)), ""),
    ("same", said(None, ("book", '{"seat":1,"class_":"first"}')),
     said(None, ("book", ' {"class_" : "\\u0066irst",\n"seat": 1.0} ')), ""),
    ("same", said(None, ("wait", "{}")), said(None, ("wait", " ")), ""),
    ("same", said(None, book(seat=1), find()), said(None, find(), book(seat=1)), ""),
    ("same", said(None, ("find", "{oops")), said(None, ("find", "{oops")), ""),
    ("worded", said("Yes."), said("Yes"), "answer"),
    ("worded", said("4", reasoning_content="2+2"), said("4"), "reasoning"),
    ("worded", said(None, refusal="No."), said(None, refusal="Never."), "refusal"),
    ("worded", said("\u00e9"), said("e\u0301"), "answer"),
    ("changed", said(None, book(seat=1)), said(None, book(seat=2)), "book.seat"),
    ("changed", said(None, book(seat=1)), said(None, book(seat=1, class_="first")), "book.class_"),
    ("changed", said(None, find(most=1)), said(None, find()), "find.most"),
    ("changed", said(None, find(filter=None)), said(None, find()), "find.filter"),
    ("changed", said(None, find(filter=1)), said(None, find(filter=True)), "find.filter"),
    ("changed", said(None, find(filter="1")), said(None, find(filter=1)), "find.filter"),
    ("changed", said(None, find(filter=["a", {"b": 1}])),
     said(None, find(filter=["a", {"b": 2}])), "find.filter[1].b"),
    ("same", said(None, find(words="a\r\nb")), said(None, find(words="a\nb")), ""),
    ("changed", said(None, find(filter={"a.b": 1})), said(None, find(filter={"a.b": 2})),
     'find.filter["a.b"]'),
    ("changed", said(None, book(seat="x")), said(None, book(seat=1)), "book.seat"),
    ("changed", said("A", book(seat=1)), said("B", book(seat=2)), "answer"),
    ("different", said(None, book(seat=1)), said(None, find()), "find"),
    ("different", said(None, book(seat=1)), said(None, book(seat=1), book(seat=2)), "book"),
    ("different", said(None, book(seat=1), ("wait", {})), said(None, book(seat=1)), "wait"),
    ("different", said("Yes."), said(None, book(seat=1)), "finish_reason"),
    ("different", said("Yes."), said(None, refusal="No."), "refusal"),
    ("different", said("Yes."), replace(said("Yes."), finish_reason="length"), "finish_reason"),
    ("different", failed(), said("Yes."), "error"),
    ("different", failed(500), failed(503), "error"),
    ("worded", failed(500), failed(500, message="not now"), "error"),
    ("broken", said("Yes."), failed(), "error"),
    ("broken", said("Yes."), replace(said("Y"), error={"message": "it broke off"}), "error"),
    ("broken", said(None, book(seat=1)), said(None, book(seat="1")), "book.seat"),
    ("broken", said(None, book(seat=1)), said(None, book(class_="first")), "book"),
    ("broken", said(None, book(seat=1)), said(None, ("book", '{"seat":')), "book"),
    ("broken", said(None, book(seat=1)), said(None, ("book", "[1]")), "book"),
    ("broken", said(None, book(seat=1)), said(None, find(most="many")), "find"),
)  # fmt: skip


@pytest.mark.parametrize(("word", "old", "new", "path"), CALLS)
def test_answers_are_told_apart(
    word: str, old: RecordedAnswer, new: RecordedAnswer, path: str
) -> None:
    found = verdict(ASK, old, new, NONE)
    assert found.word == word
    assert not path or path in [each.path for each in found.differences]
    assert bool(found.differences) == (word != "same")


STRUCTURED: Sequence[tuple[str, str, str, str]] = (
    ("same", '{"seat": 1, "note": "a"}', '{"note":"a","seat":1.0}', ""),
    ("changed", '{"seat": 1}', '{"seat": 2}', "answer.seat"),
    ("changed", '{"seat": 1}', '{"seat": 1, "more": 2}', "answer.more"),
    ("changed", "Seat 1", '{"seat": 1}', "answer"),
    ("broken", '{"seat": 1}', '{"seat": "1"}', "answer.seat"),
    ("broken", '{"seat": 1}', "Seat 1", "answer"),
    ("broken", '{"seat": 1}', "NaN", "answer"),
    ("worded", "Seat 1", "Seat one", "answer"),
)


@pytest.mark.parametrize(("word", "old", "new", "path"), STRUCTURED)
def test_structured_output_is_held_to_its_schema(word: str, old: str, new: str, path: str) -> None:
    found = verdict(SHAPED, said(old), said(new), NONE)
    assert (found.word, not path or path in [each.path for each in found.differences]) == (
        word,
        True,
    )


def test_structured_output_that_became_a_refusal_is_another_decision() -> None:
    assert verdict(SHAPED, said('{"seat": 1}'), said(None, refusal="No."), NONE).word == "different"


def test_json_mode_wants_an_object() -> None:
    ask = {**SHAPED, "response_format": {"type": "json_object"}}
    assert verdict(ask, said('{"a": 1}'), said('{"a": 2}'), NONE).word == "changed"
    assert verdict(ask, said('{"a": 1}'), said("[1]"), NONE).word == "broken"


def test_other_calls_than_functions() -> None:
    def custom(text: str) -> RecordedAnswer:
        call = {"id": "c", "type": "custom", "custom": {"name": "draw", "input": text}}
        return said(None, tool_calls=[call])

    assert verdict(ASK, custom("{"), custom("{"), NONE).word == "same"
    found = verdict(ASK, custom("a cat"), custom("a dog"), NONE)
    assert (found.word, found.differences[0].path) == ("changed", "draw")
    old, new = (said(None, function_call={"name": "f", "arguments": text}) for text in "12")
    assert verdict({**ASK, "functions": [{"name": "f"}]}, old, new, NONE).word == "changed"


def test_vectors_are_compared_without_usage() -> None:
    old = RecordedAnswer(body={"data": [{"embedding": [0.5, 1]}], "usage": {"total_tokens": 1}})
    new = RecordedAnswer(body={"data": [{"embedding": [0.5, 1.0]}], "usage": {}})
    assert verdict({}, old, new, NONE).word == "same"
    moved = RecordedAnswer(body={"data": [{"embedding": [0.5, 2]}]})
    assert verdict({}, old, moved, NONE).differences[0].path == "answer[0].embedding[1]"


def paths(old: list[Json], new: list[Json]) -> list[str]:
    before, now = (
        said(None, *[("find", {"words": "x", **each}) for each in side]) for side in (old, new)
    )
    return [each.path for each in verdict(ASK, before, now, NONE).differences]


def test_parallel_calls_stand_beside_the_nearest() -> None:
    one, two = {"most": 1, "filter": {"a": 1, "b": 2}}, {"most": 2, "filter": {"a": 3, "b": 4}}
    assert paths([one, two], [{**two, "most": 5}, one]) == ["find.most"]
    near = [{**two, "most": 5}, {**one, "most": 6}]
    assert paths([one, two], near) == ["find.most", "find.most"]


def test_many_changed_calls_take_no_time() -> None:
    old, new = ([{"most": at} for at in range(start, start + 500)] for start in (0, 1000))
    assert len(paths(old, new)) == 100


RULES: Sequence[tuple[Json, str]] = (
    ({}, "changed"),
    ({"ignore": ["find.most", "find.filter"], "text": ["find.words"]}, "worded"),
    ({"ignore": ["*.most", "*.filter", "*.words"]}, "same"),
    ({"ignore": ["find"]}, "same"),
    ({"ignore": ["find.filter", "find.words"], "near": {"*.most": 0.1}}, "same"),
    ({"ignore": ["find.filter", "find.words"], "near": {"*.most": 0.09}}, "changed"),
    ({"ignore": ["find.filter[*].a", "find.most"], "text": ["*.words"]}, "worded"),
    ({"ignore": ["find.filter[0].a", "find.most"], "text": ["*.words"]}, "worded"),
    ({"ignore": ["find.filter[1]", "find.most"], "text": ["*.words"]}, "changed"),
    ({"ignore": ["fin", "find.mos", "book.most"]}, "changed"),
    ({"ignore": ["find.most", "find.filter"], "near": {"find.words": 9}}, "changed"),
    ({"ignore": ["find.words", "find.filter"], "text": ["find.most"]}, "changed"),
)


@pytest.mark.parametrize(("rules", "word"), RULES)
def test_rules_let_values_differ(rules: Json, word: str) -> None:
    old = said(None, find(words="cold?", most=1, filter=[{"a": 1}]))
    new = said(None, find(words="is it cold", most=1.1, filter=[{"a": 2}]))
    schema: Json = {"type": "object"}
    tools = [{"type": "function", "function": {"name": "find", "parameters": schema}}]
    assert verdict({"tools": tools}, old, new, read_diff_rules(rules, "x")).word == word


def test_rules_of_two_places_add_up() -> None:
    rules = read_diff_rules({"ignore": ["a.b"]}, "x").joined(read_diff_rules({"text": ["c"]}, "x"))
    assert (rules.ignores("a.b.c"), rules.frees("c"), rules.ignores("c")) == (True, True, False)


MISTAKES: Sequence[tuple[Any, str]] = (
    ({"ignored": []}, "property 'ignored' is not known. Rules are such as {ignore: [get_weath"),
    (["a"], 'must be of type "object"'),
    ({"ignore": "a.b"}, 'ignore: must be of type "array"'),
    ({"ignore": ["$.a"]}, "ignore[0]: does not match"),
    ({"text": [1]}, 'text[0]: must be of type "string"'),
    ({5: 1}, "property '5' is not known"),
    ({"near": ["a"]}, 'near: must be of type "object"'),
    ({"near": {"a": "1"}}, 'near.a: must be of type "number"'),
    ({"near": {"a": True}}, 'near.a: must be of type "number"'),
    ({"near": {"a": -1}}, "near.a: must be at least 0"),
)


@pytest.mark.parametrize(("rules", "text"), MISTAKES)
def test_mistakes_in_rules_are_named(rules: Any, text: str) -> None:
    with pytest.raises(UnreadableCassette) as caught:
        read_diff_rules(rules, "shop: diff")
    assert str(caught.value).startswith("shop: diff")
    assert text in str(caught.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e15, 1e15) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.", max_size=3), inner),
    max_leaves=8,
)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    else:
        yield value


@given(VALUES, VALUES)
def test_comparing_finds_what_python_finds(one: Any, other: Any) -> None:
    assert not list(differences("x", one, one, NONE))
    if not any(isinstance(leaf, bool) for side in (one, other) for leaf in leaves(side)):
        assert (not list(differences("x", one, other, NONE))) == (one == other)


NUMBERS: Sequence[tuple[str, str, bool]] = (
    ("1", "1.0", True),
    ("1e2", "100", True),
    ("0.10", "0.1", True),
    ("9007199254740993", "9007199254740992", False),
    ("-0.0", "0", True),
    ("true", "1", False),
    ("null", "0", False),
)


@pytest.mark.parametrize(("one", "other", "equal"), NUMBERS)
def test_numbers_are_equal_by_value(one: str, other: str, equal: bool) -> None:
    old, new = (
        said(None, ("find", f'{{"words": "x", "filter": {text}}}')) for text in (one, other)
    )
    assert (verdict(ASK, old, new, NONE).word == "same") == equal
