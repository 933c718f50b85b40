"""Bodies as they were heard: no secret, wherever network or model cut it, and sizes that fit."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from middleware.cassettes.secrets.blotter import Blotter, Redaction, TurnBlotter
from middleware.cassettes.secrets.needles import leaks
from tests.cassette.hiding import PLAIN, SECRETS, WAYS

KEY = "sk-live-4f9a8c7d6e5b"
NAMES = {KEY: "A_KEY"}
NUMBERS = st.lists(st.floats(0, 1), max_size=8)


def cut(data: bytes, places: list[float]) -> list[bytes]:
    ends = sorted({0, len(data), *(int(len(data) * place) for place in places)})
    return [data[start:end] for start, end in pairwise(ends)]


def events(texts: list[str], ascii_only: bool = False) -> bytes:
    frames = [
        {"n": 1.50, "choices": [{"index": 0, "delta": {"content": text}}], "x": None}
        for text in texts
    ]
    said = [json.dumps(frame, ensure_ascii=ascii_only) for frame in frames]
    return "".join(f"event: delta\ndata: {one}\n\n" for one in said).encode() + b"data: [DONE]\n\n"


def spoken(data: bytes) -> list[str]:
    lines = [line[6:] for line in data.decode().split("\n") if line[:7] == "data: {"]
    return [json.loads(line)["choices"][0]["delta"]["content"] for line in lines]


def heard(turn: TurnBlotter, pieces: list[bytes]) -> tuple[bytes, list[int]]:
    return turn.heard(b"".join(pieces), [*map(len, pieces)])


def told(secret: str) -> TurnBlotter:
    """A turn whose ask had the secret."""
    turn = Blotter({secret: "A_KEY"}).turn()
    turn.ask({"messages": [{"content": f"It is {secret}."}]})
    return turn


@settings(max_examples=200)
@given(SECRETS, st.sampled_from([*WAYS]), st.lists(PLAIN, max_size=3), PLAIN, NUMBERS)
def test_a_secret_within_an_event(
    secret: str, way: str, texts: list[str], near: str, places: list[float]
) -> None:
    hidden = f"{near}|{WAYS[way](secret)}|{near}"
    data = events([*texts, hidden, *texts], ascii_only=near.isascii())
    pieces = cut(data, places)
    new, lengths = heard(Blotter({secret: "A_KEY"}).turn(), pieces)
    assert leaks(new, {secret: "A_KEY"}) == []
    assert len(lengths) == len(pieces)
    assert sum(lengths) == len(new)
    said = spoken(new)
    assert [*said[: len(texts)], *said[len(texts) + 1 :]] == [*texts, *texts]
    assert said[len(texts)].startswith(f"{near}|")
    assert said[len(texts)].endswith(f"|{near}")
    assert new.endswith(b"data: [DONE]\n\n")


@given(SECRETS, PLAIN, NUMBERS, NUMBERS)
def test_a_secret_a_model_said_in_parts(
    secret: str, near: str, places: list[float], cuts: list[float]
) -> None:
    text = f"{near}|{secret}|{near}"
    ends = sorted({0, len(text), *(int(len(text) * place) for place in places)})
    texts = [text[start:end] for start, end in pairwise(ends)]
    pieces = cut(events(texts), cuts)
    new, lengths = heard(told(secret), pieces)
    assert "".join(spoken(new)) == f"{near}|[secret:A_KEY]|{near}"
    assert (len(lengths), sum(lengths), len(spoken(new))) == (len(pieces), len(new), len(texts))


@given(st.binary(max_size=300), NUMBERS)
def test_bytes_without_secrets_stay(data: bytes, places: list[float]) -> None:
    pieces = cut(data, places)
    for turn in (told(KEY), Blotter(NAMES).turn()):
        assert heard(turn, pieces) == (data, [len(piece) for piece in pieces])


@given(st.integers(0, 200), NUMBERS)
def test_a_stream_that_broke_off(end: int, places: list[float]) -> None:
    data = events([f"\n{KEY}", "é sk-abcdefgh1234", "x"], ascii_only=True)[:end]
    new, lengths = heard(Blotter(NAMES).turn(), cut(data, places))
    assert b"4f9a8c7d6e5b" not in new
    assert b"abcdefgh" not in new
    assert sum(lengths) == len(new)


def test_sizes_follow_their_pieces() -> None:
    data = [b'data: {"a":"x ', KEY[:5].encode(), KEY[5:].encode(), b' y"}\n\ndata: {}\n', b"\n"]
    new, lengths = heard(Blotter(NAMES).turn(), data)
    assert new == b'data: {"a":"x [secret:A_KEY] y"}\n\ndata: {}\n\n'
    assert lengths == [32, 0, 0, 11, 1]


@pytest.mark.parametrize(
    ("data", "left"),
    [
        (f'Wrong key: {KEY}, "{KEY[:9]}', 'Wrong key: [secret:A_KEY], "sk-live-4'),
        (
            f"<a href='http://u:pw@x/?key={KEY}'>",
            "<a href='http://[secret:user-info]@x/?key=[secret:A_KEY]'>",
        ),
        ('{"a":"x\\nsk-abcdefgh12","n":1.0}\n', '{"a":"x\\n[secret:key]","n":1.0}\n'),
        (
            '{"u":"http://x/?w=1\\u0026sig=abcd1234"}',
            '{"u":"http://x/?w=1&sig=[secret:parameter]"}',
        ),
        ('[{"t": "sk-abcdefgh12"\n},\n{"t": "é"}]', '[{"t":"[secret:key]"},{"t":"é"}]'),
        ('data: {"a":"x sk-abcdefgh12 y', 'data: {"a":"x [secret:key] y'),
        (f"event: error\ndata: {KEY}\n\n", "event: error\ndata: [secret:A_KEY]\n\n"),
        ('{"password": "hunter22", "x": "ab"}', '{"password":"[secret:credential]","x":"ab"}'),
    ],
)
def test_bodies(data: str, left: str) -> None:
    turn = Blotter(NAMES).turn()
    assert heard(turn, [data.encode()]) == (left.encode(), [len(left.encode())])
    assert heard(turn, [left.encode()])[0] == left.encode()


def test_numbers_are_no_texts() -> None:
    turn = Blotter({}, Redaction(values=("412",), patterns=("true|4",)), shapes=False).turn()
    data = b'data: {"a":412,"b":true,"c":"412 4"}\n\n'
    left = b'data: {"a":412,"b":true,"c":"[secret:redacted] [secret:redacted#2]"}\n\n'
    assert heard(turn, [data])[0] == left
    assert turn.sent(b'{"a":412,"c":"412"}') == b'{"a":412,"c":"[secret:redacted]"}'


def test_what_is_sent_says_the_same_marks_as_the_ask() -> None:
    turn = Blotter({}).turn()
    turn.ask({"messages": [{"content": "sk-abcdefgh12"}, {"content": "sk-abcdefgh34"}]})
    sent = b'{"system":"sk-abcdefgh34","messages":["sk-abcdefgh12"],"n":1e3}'
    left = b'{"system":"[secret:key#2]","messages":["[secret:key]"],"n":1000.0}'
    assert turn.sent(sent) == left
