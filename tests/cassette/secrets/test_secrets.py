"""Every way a known secret may be written is found; nothing else is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from middleware.cassettes.secrets.needles import known_secrets, leaks
from tests.cassette.hiding import SECRETS, TEXTS, WAYS, in_base64

KEY = "sk-live-4f9a8c7d6e5b"


@settings(max_examples=200)
@given(st.sampled_from([*WAYS]), SECRETS, TEXTS, TEXTS)
def test_a_leak_is_named(way: str, secret: str, before: str, after: str) -> None:
    data = f"{before}\x00{WAYS[way](secret)}\x00{after}".encode()
    assert leaks(data, {secret: "A_KEY", "another-secret-1": "OTHER"}) == ["A_KEY"]


def test_escapes_that_nobody_needs_hide_nothing() -> None:
    assert leaks(b"?k=%73k%2Dlive-4f9a8c7d6e5b", {KEY: "A_KEY"}) == ["A_KEY"]


@pytest.mark.parametrize("before", range(3))
def test_both_alphabets_of_base64_are_searched(before: int) -> None:
    secret = "a>>>???b>>>???c>>>???"
    coded = in_base64(secret, before)
    assert "+" in coded
    assert "/" in coded
    safe = coded.replace("+", "-").replace("/", "_")
    for data in (coded, safe):
        assert leaks(data.encode(), {secret: "A_KEY"}) == ["A_KEY"]


@given(st.binary(max_size=200))
def test_any_bytes_can_be_searched(data: bytes) -> None:
    assert leaks(data, {KEY: "A_KEY"}) == []


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("none", {}),
        ("", {}),
        ("lm-studio", {}),
        ("Ollama", {}),
        ("OPENAI_API_KEY", {}),
        (KEY, {KEY: "OPENAI_API_KEY"}),
        (f"Bearer {KEY}", {KEY: "OPENAI_API_KEY", f"Bearer {KEY}": "OPENAI_API_KEY"}),
        ("http://proxy.example:3128", {}),
        (
            "http://anna:p%40ssword@proxy.example:3128",
            dict.fromkeys(("anna:p%40ssword", "p%40ssword", "p@ssword"), "OPENAI_API_KEY"),
        ),
    ],
)
def test_what_of_a_value_is_secret(value: str, names: dict[str, str]) -> None:
    assert known_secrets({value: "$OPENAI_API_KEY"}) == names


def test_marks_say_the_name() -> None:
    assert known_secrets({"other-key-123": "my upstream.KEY"}) == {
        "other-key-123": "MY_UPSTREAM_KEY"
    }


def test_stand_ins_are_passed_over() -> None:
    data = json.dumps({"kind": "ollama", "key": "none"}).encode()
    assert leaks(data, {"ollama": "A", "none": "B"}) == []
