"""The quick look at a body overlooks nothing that the careful one would find."""

from __future__ import annotations

import json

import pytest

from middleware.cassettes.secrets import Blotter
from middleware.cassettes.secrets.search import search_for_any

MEMBERS = (
    *("api_key", "api-key", "apikey", "X-Api-Key", "openai_api_key", "authorization"),
    *("Proxy-Authorization", "password", "PASSWD", "secret", "client_secret", "app_secret"),
    *("access_token", "auth_token", "bearer_token", "refresh_token"),
)
KEYS = (
    *("sk-ant-api03-", "pk-lf-", "csk-", "xai-", "nvapi-", "tvly-", "pplx-", "pypi-", "glpat-"),
    *("GOCSPX-", "xoxb-", "sk_live_", "pk_test_", "rk_live_", "ghp_", "gho_", "ghu_", "ghs_"),
    *("ghr_", "github_pat_", "hf_", "gsk_", "r8_", "fw_", "npm_", "AIzaSy", "ya29."),
    *("AKIA", "Bearer ", "basic ", "eyJhbGciOiJIUzI1NiJ9."),
)
PARAMETERS = ("key", "X-Token", "sig", "Signature", "secret", "passwd", "PASSWORD", "credential")
ADDRESSES = (
    *("http://me:{}@host/", "https://host/?a=b&token={}", "wss://host/x?sig={}#top"),
    *(f"http://host/?{parameter}={{}}" for parameter in PARAMETERS),
)
VALUE = "A7D0BQ49ZKT1XW8CY3UJ5M"


def levels(text: str) -> list[bytes]:
    """A text in a body, as Python and as PHP write it, and in JSON that is a text of a body."""
    body = json.dumps({"content": f"see {text} there"})
    return [body.encode(), body.replace("/", "\\/").encode(), json.dumps({"a": body}).encode()]


@pytest.mark.parametrize("member", MEMBERS)
def test_members_by_their_names(member: str) -> None:
    plain = json.dumps({"a": 1, member: VALUE})
    for body in (plain, json.dumps({"arguments": plain}), plain.replace(": ", ":")):
        assert not Blotter({}).turn().is_clean(body.encode())
        assert VALUE.encode() not in Blotter({}).turn().sent(body.encode())


@pytest.mark.parametrize("text", [*(key + VALUE for key in KEYS), *map(str, ADDRESSES)])
def test_keys_and_addresses(text: str) -> None:
    for body in levels(text.format(VALUE)):
        assert not Blotter({}).turn().is_clean(body)
        assert VALUE.encode() not in Blotter({}).turn().sent(body)


def test_what_streams_are_full_of_is_no_trace() -> None:
    stream = (
        b'data: {"type":"content_block_delta","content_type":"text","created_at":"x","next":null,'
        b'"max_tokens":5,"input_tokens":1,"parent":"a","event":"ping","id":"msg_1","end":"a"}\n\n'
    )
    assert Blotter({}).turn().is_clean(stream)


def framed(texts: list[str], member: str = "text") -> bytes:
    """A stream whose frames begin alike."""
    frames = [
        {"type": "delta", "index": 0, "delta": {"type": "text", member: one}} for one in texts
    ]
    return b"".join(
        b"data: %b\n\n" % json.dumps(frame, separators=(",", ":")).encode() for frame in frames
    )


@pytest.mark.parametrize("text", [*(key + "{}" for key in KEYS), *ADDRESSES])
def test_streams_whose_frames_begin_alike(text: str) -> None:
    said = text.format(VALUE)
    streams = [[said if number == at else "words" for number in range(6)] for at in range(6)]
    # What is alike goes on into the text, to the middle of the secret or to its end.
    streams.append([text.format(f"{letter}{VALUE}") for letter in "ABCDEF"])
    streams.append([f"{said} {number}" for number in range(6)])
    for texts in streams:
        assert not Blotter({}).turn().is_clean(framed(texts))


@pytest.mark.parametrize("member", MEMBERS)
def test_members_of_frames_that_begin_alike(member: str) -> None:
    for texts in ([VALUE] * 6, [f"{number}{VALUE}" for number in range(6)]):
        assert not Blotter({}).turn().is_clean(framed(texts, member))
    within = [json.dumps({"b": number, member: VALUE}) for number in range(6)]
    assert not Blotter({}).turn().is_clean(framed(within))
    assert not Blotter({}).turn().is_clean(framed(["words", "words", within[0], "words"]))


LETTERS = "".join(map(chr, (*range(1, 128), 0xE9, 0x4E2D, 0x1F511)))
LONG = 400_000
"""More than the engine takes."""


@pytest.mark.parametrize("texts", [[*LETTERS], [LETTERS, "quiet"], ["x" * LONG, "quiet"]])
def test_texts_are_found_as_they_stand(texts: list[str]) -> None:
    has_any = search_for_any(texts)
    assert all(has_any(f"before{text}behind") for text in texts)
    assert not has_any("\ufffd")
    assert not search_for_any([])("anything")


def test_a_known_secret_is_found_beside_bytes_that_are_no_text() -> None:
    turn = Blotter({"schlüssel-中": "KEY"}).turn()
    for before in (b"", b"\xe4", b"\xe4\xb8", b"\xff"):
        assert not turn.finds_nothing(before + "schlüssel-中".encode() + b"\xe4")
    assert turn.finds_nothing("schlüssel-".encode())
