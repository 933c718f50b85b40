"""JSON as loose writers write it: read for what it means, refused where it means nothing."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from adapters.errors import UpstreamError
from adapters.wire.json_text import exact, load


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'\xef\xbb\xbf \n{"a": 1}', {"a": 1}),
        (b'{"text": "a\\ud83d"}', {"text": "a\ufffd"}),
        (b'{"text": "\\udf0da", "more": "\\ud83c\\udf0d"}', {"text": "\ufffda", "more": "🌍"}),
        (b'{"\\ud83d": ["\\ud83d"]}', {"\ufffd": ["\ufffd"]}),
        (b'{"text": "a\xe6\xb2"}', {"text": "a\ufffd"}),
        ('{"text": "沈\udcff阳"}'.encode("utf-8", "surrogateescape"), {"text": "沈\ufffd阳"}),
        (b'{"logprob": -Infinity}', {"logprob": -9999.0}),
        (b'{"top": [{"logprob": -Infinity}]}', {"top": [{"logprob": -9999.0}]}),
        (b'{"logprob": NaN, "timing": Infinity}', {"logprob": None, "timing": None}),
        (b'{"n": 18446744073709551616, "x": NaN}', {"n": 2.0**64, "x": None}),
    ],
)
def test_what_means_one_thing_only_is_read(data: bytes, value: Any) -> None:
    assert load(data) == value
    assert orjson.loads(orjson.dumps(load(data))) == value


@pytest.mark.parametrize(
    "data",
    [b"", b"<html>", b'{"a": "cut', b'{"a": NaN', b'{"a": nan}', b"{'a': 1}", b"[" * 10**4],
    ids=range(7),
)
def test_what_is_no_json_is_the_upstreams_mistake(data: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        load(data)
    assert caught.value.code == "upstream_not_json"


@pytest.mark.parametrize("text", ["", "[{" * 50_000])
@pytest.mark.parametrize("value", [{}, []])
def test_objects_are_counted_by_what_is_around_them(value: Any, text: str) -> None:
    apart = [value, "a" * 40] * 5000
    assert load(orjson.dumps([apart, text])) == [apart, text]
    with pytest.raises(UpstreamError) as caught:
        load(orjson.dumps([[value] * 50_000, text]))
    assert caught.value.code == "upstream_too_large"


@pytest.mark.parametrize(
    "number",
    [
        "123456789012345678901234567890",
        "-18446744073709551617",
        "3.14159265358979323846264338",
        "1e400",
        "1E-400",
    ],
)
def test_numbers_keep_the_digits_they_were_written_with(number: str) -> None:
    data = f'{{"a":[{number},1.0,1]}}'.encode()
    assert orjson.dumps(exact(data)) == data


def test_halves_of_characters_beside_long_numbers_can_be_written_again() -> None:
    data = b'{"a":"\\ud83d","n":12345678901234567890123}'
    assert orjson.dumps(exact(data)) == '{"a":"\ufffd","n":12345678901234567890123}'.encode()


@pytest.mark.parametrize("data", [b'{"a":[1,-2.50,900719925474099,1e22,"x"]}', b"{}"])
def test_numbers_that_lose_nothing_are_read_once(data: bytes) -> None:
    assert exact(data) is None


@pytest.mark.parametrize("data", [b'{"a":12345678901234567890', b"[" * 10**5 + b"1" * 20])
def test_what_cannot_be_read_again_stays_as_it_was_read(data: bytes) -> None:
    assert exact(data) is None
