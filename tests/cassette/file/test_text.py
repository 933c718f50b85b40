"""Values ↔ YAML: nothing is lost, others read the same, and what is no plain data is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.file.parser import DEPTH, MOST_BYTES, parse
from middleware.cassettes.file.printer import WIDTH, dump
from tests.cassette.values import ODD, WORDS, values
from tests.linear.measuring import Work, is_within, seconds


def read(text: str) -> Any:
    return parse(text.encode(), "c.yaml").value


def refusal(text: str | bytes) -> UnreadableCassette:
    with pytest.raises(UnreadableCassette) as caught:
        parse(text if isinstance(text, bytes) else text.encode(), "shop/c.yaml")
    assert "shop/c.yaml" in str(caught.value)
    assert "expected" in str(caught.value)
    return caught.value


@settings(max_examples=150)
@given(values())
def test_what_is_written_is_read_again(value: Any) -> None:
    text = dump(value)
    assert repr(read(text)) == repr(value), text
    assert dump(read(text)) == text
    assert repr(read(text.replace("\n", "\r\n"))) == repr(value), "on Windows"


@settings(max_examples=60)
@given(values())
def test_others_read_the_same(value: Any) -> None:
    assert repr(yaml.load(dump(value), yaml.SafeLoader)) == repr(value)


@pytest.mark.parametrize("text", [*WORDS, *ODD])
@pytest.mark.parametrize(
    "wrap", [lambda t: t, lambda t: [t], lambda t: {t: t}, lambda t: [[{t: [t]}]]]
)
def test_odd_text_comes_back_wherever_it_stands(text: str, wrap: Any) -> None:
    value = wrap(text)
    written = dump(value)
    assert repr(read(written)) == repr(value)
    assert repr(yaml.load(written, yaml.CSafeLoader)) == repr(value)


def test_half_a_character_becomes_one() -> None:
    assert read(dump({"a": "x\ud83d"})) == {"a": "x\ufffd"}
    assert read(dump({"a": float("nan")})) == {"a": None}


READABLE = """\
usetool: {cassette: 1, by: '0.9.0'}
turns:
- turn: 1
  pieces: [[410, 312], [20, 88]]
  numbers: [0.25, 1.0e-07, 3]
  body:
    stream: true
    messages:
    - {role: system, content: Heute ist der 18.11.2026.}
    - role: user
      content: |
        沈阳明天冷吗？
          Not: {yaml} # no comment

        trailing{blank}
    - {role: user, content: 'first: second'}
    - {role: user, content: "a\\rb\\u2028"}
    tools: []
""".replace("{blank}", " ")


def test_people_can_read_it() -> None:
    value = read(READABLE)
    assert value["turns"][0]["body"]["messages"][1]["content"].endswith("\n\ntrailing \n")
    assert dump(value) == READABLE


def test_what_is_long_has_a_line_for_each_entry() -> None:
    fits = "x" * (WIDTH - len("b: , c: d"))
    assert dump({"a": {"b": fits, "c": "d"}}).count("\n") == 1
    assert dump({"a": {"b": fits + "x", "c": "d"}}).count("\n") == 3
    assert dump({"a": ["x"] * 40}).count("\n") == 41
    assert dump({"a": {"b": {"c": {"d": 1}}}}) == "a:\n  b: {c: {d: 1}}\n"


def test_long_lines_are_not_wrapped() -> None:
    assert len(dump({"a": "word " * 1000 + "x", "b": list(range(500))}).splitlines()) == 2


def test_keys_of_any_length() -> None:
    value = {"k" * 3000: {"k" * 1500 + ":": [1, {"a": ["x"]}]}, "b": 1}
    assert read(dump(value)) == value


AS_PEOPLE_WRITE = {
    "a: yes": {"a": True},
    "a: 2026-11-18": {"a": "2026-11-18"},
    "a: 2026-11-18 10:00:00": {"a": "2026-11-18 10:00:00"},
    "a: 010": {"a": "010"},
    "a: 1_000": {"a": 1000},
    "a: 1e3": {"a": "1e3"},
    "a: .nan": {"a": ".nan"},
    "a: =": {"a": "="},
    "a:": {"a": None},
    "1: x": {"1": "x"},
    "yes: x": {"yes": "x"},
    "# only\na: [b, 'c', \"d\"] # rest": {"a": ["b", "c", "d"]},
    "\ufeffa: b": {"a": "b"},
    "--- {a: b}": {"a": "b"},
    "": None,
}


@pytest.mark.parametrize("text", AS_PEOPLE_WRITE)
def test_what_people_write(text: str) -> None:
    assert repr(read(text)) == repr(AS_PEOPLE_WRITE[text])


REFUSED = {
    "a: 1\nb: [\n": (3, "node content"),
    "a: &x 1\n": (1, "the anchor &x"),
    "a: [1]\nb: *x\n": (2, "the alias *x"),
    "a: !!str 1\n": (1, "the tag tag:yaml.org,2002:str"),
    "a: !x {b: 1}\n": (1, "the tag !x"),
    "a: 1\n---\nb: 1\n": (2, "a second document"),
    "a: 1\nb:\n  c: 1\n  c: 2\n": (4, "'c' is here twice"),
    "? [a]\n: b\n": (1, "a list or a map as a key"),
    "a: 1\n\tb: 2\n": (2, "character"),
    "a: 1\nb: \x07\n": (2, "control characters are not allowed"),
    b"a: 1\nb: \xff\n": (2, "invalid leading UTF-8 octet"),
    "a: " + "[" * 10_000 + "]" * 10_000: (1, f"more than {DEPTH} levels"),
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text)[:24])
def test_what_is_refused_is_named_with_its_line(text: str | bytes) -> None:
    assert is_within(0.1, lambda: refusal(text))
    error = refusal(text)
    line, words = REFUSED[text]
    assert error.line == line
    assert words in str(error)


def test_a_billion_laughs() -> None:
    rows = "".join(f"{name}: &{name} [{', '.join(['*a'] * 9)}]\n" for name in "bcdefghij")
    assert refusal("a: &a [x, x]\n" + rows).line == 1


def test_a_large_file_is_refused_unread() -> None:
    assert f"at most {MOST_BYTES >> 20} MB" in str(refusal(b" " * (MOST_BYTES + 1)))


def test_the_lines_of_what_lists_hold() -> None:
    document = parse(b"a:\n- x\n- [y]\n\nturns:\n# one\n- turn: 1\n  b: [c]\n-\n  turn: 2\n", "c")
    assert document.lines == {"a": [2, 3], "turns": [7, 10]}


def test_reading_takes_time_as_the_text_is_long() -> None:
    def reading(count: int) -> Work:
        return partial(read, dump([{"role": "user", "content": "a b\nc"}] * count))

    assert is_within(16 * max(seconds(reading(1000), 3), 0.005), reading(8000))
