"""Secrets never survive, the text around them does."""

from __future__ import annotations

import base64
import copy
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import KEY_SHAPE
from middleware.cassettes.secrets.blotter import Blotter, Redaction
from middleware.cassettes.secrets.needles import leaks
from middleware.cassettes.secrets.shapes import trace_in
from tests.cassette.hiding import PLAIN, SECRETS, WAYS

KEY = "sk-live-4f9a8c7d6e5b"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN, inner, max_size=3),
    max_leaves=8,
)


def blot(text: str) -> str:
    return Blotter({KEY: "OPENAI_API_KEY"}).turn("client-key-77").text(text)


@settings(max_examples=200)
@given(st.sampled_from([*WAYS]), SECRETS, PLAIN, PLAIN)
def test_a_known_secret_is_taken_out(way: str, secret: str, before: str, after: str) -> None:
    blotter = Blotter({secret: "A_KEY"})
    text = f"{before}|{WAYS[way](secret)}|{after}"
    blotted = blotter.turn().text(text)
    assert leaks(blotted.encode(), {secret: "A_KEY"}) == []
    assert blotted.startswith(f"{before}|")
    assert blotted.endswith(f"|{after}")
    assert "[secret:A_KEY]" in blotted
    assert blotter.turn().text(blotted) == blotted


@settings(max_examples=120)
@given(st.sampled_from([*WAYS]), SECRETS, JSON)
def test_json_stays_json(way: str, secret: str, value: Any) -> None:
    hidden = {"messages": [value, {"a": {f"x {WAYS[way](secret)} y": [WAYS[way](secret), value]}}]}
    blotter = Blotter({secret: "A_KEY"})
    blotted = blotter.turn().json(copy.deepcopy(hidden))
    assert leaks(json.dumps(blotted).encode(), {secret: "A_KEY"}) == []
    assert blotted["messages"][0] == value
    assert blotter.turn().json(blotted) == blotted


def test_a_tuple_is_searched_as_a_list_is() -> None:
    blotted = Blotter({KEY: "OPENAI_API_KEY"}).turn().json({"a": ({"token": KEY},), "b": [(KEY,)]})
    assert KEY not in repr(blotted)


@given(JSON)
def test_what_holds_no_secret_is_the_same_object(value: Any) -> None:
    turn = Blotter({KEY: "OPENAI_API_KEY"}).turn()
    assert turn.json(value) is value
    assert turn.json([{"a": value}])[0]["a"] is value


# What stands in a text → what is left of it.
SHAPES = (
    (f"key {KEY}.", "key [secret:OPENAI_API_KEY]."),
    ("my client-key-77!", "my [secret:CLIENT_KEY]!"),
    ("sk-proj-abcdefgh12", "[secret:key]"),
    ("密钥是sk-proj-abcdefgh12，请用", "密钥是[secret:key]，请用"),
    ("line\nsk-abcdefgh12.", "line\n[secret:key]."),
    ("sk-abcdefgh12 sk-abcdefgh34 sk-abcdefgh12", "[secret:key] [secret:key#2] [secret:key]"),
    ("Authorization: Bearer abcDEF123456", "Authorization: Bearer [secret:key]"),
    ("-H 'authorization: bearer sk-abcdefgh12'", "-H 'authorization: bearer [secret:key]'"),
    ("Basic dXNlcjpwYXNzd29yZA==", "Basic [secret:key]"),
    (JWT, "[secret:key]"),
    ("AKIAIOSFODNN7EXAMPLE", "[secret:key]"),
    ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "[secret:key]"),
    ("hf_AbCdEfGhIjKlMnOp", "[secret:key]"),
    ("https://anna:geheim@x.example/a.png?w=3", "https://[secret:user-info]@x.example/a.png?w=3"),
    (
        "![a](https://x.example/a.png?sig=ab12cd&w=3).",
        "![a](https://x.example/a.png?sig=[secret:parameter]&w=3).",
    ),
    (
        "u?X-Amz-Credential=AK/1/s3&X-Amz-Date=2026&x=1",
        "u?X-Amz-Credential=[secret:parameter]&X-Amz-Date=[secret:parameter#2]&x=1",
    ),
    ("a?x=1&amp;token=abcd1234\n", "a?x=1&amp;token=[secret:parameter]\n"),
    ('{"password": "hunter22", "n": 1}', '{"password": "[secret:credential]", "n": 1}'),
    (r'{"api_key":"ab\"cd\"ef"}', '{"api_key":"[secret:credential]"}'),
)


@pytest.mark.parametrize(("text", "left"), SHAPES, ids=range(len(SHAPES)))
def test_shapes(text: str, left: str) -> None:
    assert blot(text) == left
    assert blot(left) == left
    body = json.dumps({"messages": [{"content": text, "role": "user"}]}).encode()
    assert json.loads(Blotter({KEY: "OPENAI_API_KEY"}).turn("client-key-77").sent(body)) == {
        "messages": [{"content": left, "role": "user"}]
    }


@settings(max_examples=200)
@given(st.dictionaries(PLAIN, JSON, max_size=4), st.sampled_from([*WAYS]), SECRETS)
def test_what_asks_are_compared_by_is_searched_as_a_whole(form: Any, way: str, secret: str) -> None:
    known = {secret: "A_KEY"}
    for said in (form, {**form, "text": WAYS[way](secret)}, {**form, "password": secret}):
        assert Blotter(known).turn().form(said) == Blotter(known).turn().json(said)
    for text, _ in SHAPES:
        said = {**form, "messages": [{"role": "user", "content": text}]}
        assert Blotter({}).turn().form(said) == Blotter({}).turn().json(said)


@pytest.mark.parametrize("slash", ["/", r"\/"])
@pytest.mark.parametrize("text", [text for text, left in SHAPES if "_KEY]" not in left])
def test_the_quick_look_finds_shapes_in_arguments_in_a_body_in_a_line(
    text: str, slash: str
) -> None:
    body = json.dumps(text, ensure_ascii=False).replace("/", slash)
    for written in (body, json.dumps(body, ensure_ascii=False)):
        assert trace_in(text)
        assert trace_in(written)


@pytest.mark.parametrize(
    "text",
    [
        "HTTP bearer authentication, Bearer YOUR_API_KEY, basic functionality",
        "CREATE INDEX pk_users_email_idx; struct sk_buff_head; order SK-10023456",
        "risk-management of task-lists with npm_config_registry and hf_hub_download",
        "git clone ssh://git@github.com/a/b.git # or https://{user}:{password}@host/?key=$KEY",
        "?page=2&monkey&key=&sort=asc a@b.example ?sig=.... ?a=1&sig=abc",
        "data:image/png;base64,eyJhbGciOiJIUzI1NiJ9eyJzdWIiOiIx",
        '{"password": {"type": "string"}, "token": "x", "api_key": "none"}',
        "[secret:OPENAI_API_KEY] [secret:sk#2] https://[secret:user-info]@x/?sig=[secret:sig]",
        '{"password": "[secret:password]"} Bearer [secret:bearer]',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert blot(text) == text


# Of each maker one key; all of `adapters.errors` are there.
HEADS = (
    *("sk-", "sk_", "pk-", "pk_", "rk_", "Bearer ", "bearer ", "AIza", "ya29.", "GOCSPX-", "ghp_"),
    *("gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "AKIA", "ASIA", "ABIA", "ACCA"),
    *("hf_", "gsk_", "xai-", "nvapi-", "tvly-", "r8_", "fw_", "pplx-", "csk-", "xoxb-", "npm_"),
    "pypi-",
)


@pytest.mark.parametrize("head", HEADS)
def test_keys_of_all_makers(head: str) -> None:
    rest = "AB1CD2EF3GH4IJ5KL6MN"
    assert KEY_SHAPE.fullmatch(head + rest)
    turn = Blotter({}).turn()
    blotted = turn.json({"messages": [{"content": f"\n{head}{rest}, äß"}]})["messages"][0]
    assert rest not in blotted["content"]
    assert blotted["content"].startswith("\n")
    assert blotted["content"].endswith("], äß")


IMAGE = base64.b64encode(Random(7).randbytes(3000)).decode()
BY_CHANCE = "/AIzan6qcVngLhiYkGtev3WR"


@pytest.mark.parametrize("at", [0, 600, 2000, len(IMAGE) - len(BY_CHANCE)])
@pytest.mark.parametrize("around", ["{}", "data:image/png;base64,{}", "See {} here."])
def test_what_only_looks_like_a_key_within_an_image_stays(at: int, around: str) -> None:
    image = IMAGE[:at] + BY_CHANCE + IMAGE[at + len(BY_CHANCE) :]
    text = around.format(image)
    assert blot(text) == text
    known = blot(text.replace(BY_CHANCE[1:], "client-key-77"))
    assert "client-key-77" not in known
    assert "AIza" not in blot(f"{text} AIzan6qcVngLhiYkGtev3WR")[-30:]


def test_names_of_members_count_in_objects() -> None:
    body = {"password": "hunter22", "client_secret": 7, "a": [{"Api-Key": "abc1234", "k": "abc"}]}
    assert Blotter({}).turn().json(body) == {
        "password": "[secret:credential]",
        "client_secret": 7,
        "a": [{"Api-Key": "[secret:credential#2]", "k": "abc"}],
    }


def test_what_was_clean_before_a_secret_was_known_is_so_no_longer() -> None:
    blotter = Blotter({}, Redaction(paths=("metadata",)))
    said = [[{"content": "Miller is old"}]]
    assert blotter.turn().json(said) is said
    turn = blotter.turn()
    turn.ask({"metadata": {"customer": "Miller"}})
    assert turn.json(said) == [[{"content": "[secret:redacted] is old"}]]


def test_what_was_clean_for_one_client_is_not_for_another() -> None:
    blotter = Blotter({})
    body = {"messages": [{"content": "use client-key-88"}]}
    assert blotter.turn("client-key-77").ask(body) is body
    assert blotter.turn("client-key-88").ask(body) == {
        "messages": [{"content": "use [secret:CLIENT_KEY]"}]
    }


def test_redactions() -> None:
    more = Redaction(("Anna",), ("metadata.customer", "messages[0].content"), (r"ACME-\d+",))
    turn = Blotter({}, more).turn()
    body = {
        "messages": [{"role": "system", "content": "Only for ACME"}, {"content": "Anna, ACME-123"}],
        "metadata": {"customer": "Müller", "n": 3},
    }
    assert turn.ask(body) == {
        "messages": [
            {"role": "system", "content": "[secret:redacted]"},
            {"content": "[secret:redacted#2], [secret:redacted#3]"},
        ],
        "metadata": {"customer": "[secret:redacted#4]", "n": 3},
    }
    assert turn.text("Hello Müller") == "Hello [secret:redacted#4]"


@pytest.mark.parametrize(
    ("more", "text", "left"),
    [
        (Redaction(patterns=(r"[A-Za-z]+",)), "x 1", "[secret:redacted] 1"),
        (Redaction(patterns=(r".*",)), "a [secret:sk] b", "[secret:redacted]"),
        (Redaction(patterns=("x*",)), "ab", "ab"),
        (Redaction(values=("abcd", "cdef")), "abcdef", "[secret:redacted]"),
        (Redaction(values=("secret", "a")), "a secret", "[secret:redacted] [secret:redacted#2]"),
    ],
)
def test_marks_are_not_redacted_again(more: Redaction, text: str, left: str) -> None:
    blotter = Blotter({}, more)
    assert blotter.turn().text(text) == left
    assert blotter.turn().text(left) == left


def test_a_secret_within_a_mark_stays() -> None:
    turn = Blotter({"redacted-key-1": "A", "REDACTED": "B"}).turn()
    assert turn.text("[secret:REDACTED] REDACTED") == "[secret:REDACTED] [secret:B]"
