"""One exchange as other recorders keep it, read whichever of them it was.

vcrpy has `body: {string}`, text or bytes; cassetter `body: {type, content}` and a bare status;
pydantic-ai's serializer for vcrpy has `parsed_body`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from adapters.wire.headers import REQUEST_ID_HEADERS
from adapters.wire.reply import MAX_ANSWER
from middleware.cassettes.cassette import RecordedExchange
from middleware.cassettes.file.bodies import packed

_KEPT = ("content-type", "location", "retry-after", *REQUEST_ID_HEADERS)
"""Headers of an answer; keys and cookies stand in others."""
_GZIP, _ONLY_GZIP = b"\x1f\x8b", 31


def read_exchange(found: object) -> RecordedExchange:
    """Read one of `interactions`, or raise a `ValueError` that says what is wrong with it.

    Its upstream is scheme, host and port, without who is allowed in; its body is one piece.
    """
    request, response = _table(found, "request"), _table(found, "response")
    parts = urlsplit(str(request.get("uri")))
    status = response.get("status")
    code = status.get("code") if isinstance(status, dict) else status
    if not parts.netloc or type(code) is not int:
        raise ValueError("it has no 'uri', or no 'status'")
    headers = _headers(response.get("headers"))
    body = _unpacked(_body(response), headers.get("content-encoding", ""))
    return RecordedExchange(
        upstream=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        path=parts.path + (f"?{parts.query}" if parts.query else ""),
        sent=_body(request),
        method=str(request.get("method") or "GET"),
        status=code,
        headers={name: headers[name] for name in _KEPT if name in headers},
        body=body,
        pieces=((0, len(body)),) if body else (),
    )


def _table(found: object, name: str) -> Mapping[str, Any]:
    table = found.get(name) if isinstance(found, dict) else None
    if not isinstance(table, dict):
        raise ValueError(f"it has no table '{name}'")
    return table


def _headers(found: object) -> Mapping[str, str]:
    headers = {}
    for name, said in found.items() if isinstance(found, dict) else ():
        headers[name.lower()] = str(said[0] if isinstance(said, list) and said else said)
    return headers


def _body(holder: Mapping[str, Any]) -> bytes:
    if holder.get("parsed_body") is not None:
        return _written(holder["parsed_body"])
    body = holder.get("body")
    if isinstance(body, dict) and body.keys() <= {"string"}:
        body = body.get("string")
    elif isinstance(body, dict) and "type" in body and body.keys() <= {"type", "content"}:
        kind, body = body["type"], body.get("content")
        if kind == "json":
            return _written(body)
        body = bytes.fromhex(body) if kind == "binary" and isinstance(body, str) else body
    return _plain(body)


def _plain(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode("utf-8", "replace")
    return b"" if body is None else _written(body)


def _written(value: object) -> bytes:
    try:
        return packed(value)
    except TypeError as error:  # bytes within
        raise ValueError(f"its body cannot be written as JSON ({error})") from error


def _unpacked(data: bytes, encoding: str) -> bytes:
    """Undo gzip; a recorder that unpacked it itself may have left the header there."""
    try:
        if data[:2] == _GZIP:
            data = zlib.decompressobj(_ONLY_GZIP).decompress(data, MAX_ANSWER + 1)
        elif encoding in ("br", "zstd", "deflate"):
            data.decode()
    except (zlib.error, UnicodeDecodeError) as error:
        told = f"its body is compressed by {encoding}; expected gzip, or none ({error})"
        raise ValueError(told) from error
    if len(data) > MAX_ANSWER:
        raise ValueError(f"its body has more than {MAX_ANSWER} bytes")
    return data
