"""Upstreams' JSON as values; what only loose writers write is read for what it means."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

from adapters.errors import UpstreamError
from adapters.protocol import Json
from adapters.shared.marks import marks, most_openers

_BYTE_ORDER_MARK = "\ufeff"
_SAYABLE: Mapping[tuple[str, float], float] = {("logprob", -math.inf): -9999.0}
"""Numbers JSON does not have, by their member → what OpenAI writes there; others are null."""
_MOST_LOOSE = 200_000
"""Values of one JSON text that are looked at one by one."""
_SHORT, _SPARSE = 1 << 16, 16
"""Bytes of a JSON text that may hold anything; of a longer one for each object and array in it.

The densest that says something, probabilities of tokens, have twice as many for each. Objects
without members take 40 times their bytes of memory, and the time to make them.
"""
# Numbers that a float or 64 bits may not hold to the last digit.
_LONG = re.compile(rb"\d[\d.]{15}|\d[eE][+-]?\d{3}")


def load(data: bytes) -> Any:
    if len(data) > _SHORT:
        _require_sparse(data)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return _loosely(data)
    except (ValueError, RecursionError) as error:
        start = data[:80].decode("utf-8", "replace")
        raise UpstreamError(
            f"The upstream sent something that is not JSON, beginning: {start!r}",
            code="upstream_not_json",
        ) from error


def objects_in(value: Any) -> list[Json]:
    """Those of an array, whatever else is in it; what is no array has none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _require_sparse(data: bytes) -> None:
    most = len(data) // _SPARSE
    if most_openers(data) > most and marks(data).count(b"[") > most:
        raise UpstreamError(
            f"The upstream sent {len(data)} bytes of JSON with more than {most} objects and "
            "arrays, which is too many.",
            code="upstream_too_large",
        )


def _loosely(data: bytes) -> Any:
    """Python's writers say NaN, JavaScript's halves of a surrogate pair, some cut UTF-8 apart."""
    if _values(data) > _MOST_LOOSE:
        raise ValueError("too many values to look at each")
    text = data.decode("utf-8", "replace").removeprefix(_BYTE_ORDER_MARK)
    return _settled(json.loads(text, parse_int=_integer), "")


def _values(data: bytes) -> int:
    """About how many there are; those in texts count too."""
    return sum(map(data.count, (b",", b"{", b"[")))


def _integer(text: str) -> int | float:
    """As orjson reads it, for orjson has to write it again."""
    number = float(text)
    return int(text) if abs(number) < 1 << 63 else number


def _settled(value: Any, name: str) -> Any:
    kind = type(value)
    if kind is dict:
        return {_whole(key): _settled(one, key) for key, one in value.items()}
    if kind is list:
        return [_settled(one, name) for one in value]
    if kind is str:
        return _whole(value)
    if kind is float and not math.isfinite(value):
        return _SAYABLE.get((name, value))
    return value


def _whole(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def exact(data: bytes) -> Any:
    """The same JSON with its numbers as they were written, to be dumped again; None where the
    numbers of `load` are as good.
    """
    if not _LONG.search(data) or _values(data) > _MOST_LOOSE:
        return None
    try:
        digits = orjson.Fragment
        return _settled(json.loads(data, parse_int=digits, parse_float=digits), "")
    except (ValueError, RecursionError):
        return None
