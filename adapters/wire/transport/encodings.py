"""Content-Encoding, which some upstreams use unasked: bounded pieces come out of what inflates."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import Protocol

from adapters.wire.failures import Undecodable

MOST_DECODED = 256 << 10
"""Bytes at once, however far those that came would inflate."""
_DEFLATE_METHOD = 8


class Decoder(Protocol):
    left: bytes
    """What came and is not inflated yet."""

    def decode(self, data: bytes) -> bytes:
        """Return the next piece of the text; b"": more is needed for one."""
        ...


def decoder_of(encoding: str) -> Decoder | None:
    """None: the body is passed on as it is."""
    match encoding.strip().lower():
        case "gzip" | "x-gzip":
            return _Zlib(16 + zlib.MAX_WBITS)
        case "deflate":
            return _Zlib(zlib.MAX_WBITS)
        case "br":
            return _Brotli()
    return None


class _Zlib:
    """Also members of gzip one behind the other, and deflate as some send it, without its head."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._inflater = zlib.decompressobj(window)
        self._begun = False
        self.left = b""

    def decode(self, data: bytes) -> bytes:
        data = self.left + data
        if data and not self._begun:
            self._begin(data[0])
        try:
            while True:
                text = self._inflater.decompress(data, MOST_DECODED)
                data = self.left = self._inflater.unconsumed_tail or self._inflater.unused_data
                if self._inflater.eof and data:
                    self._inflater = zlib.decompressobj(self._window)
                if text or not data:
                    return text
        except zlib.error as error:
            raise Undecodable from error

    def _begin(self, first: int) -> None:
        self._begun = True
        if self._window == zlib.MAX_WBITS and first & 0xF != _DEFLATE_METHOD:
            self._window = -zlib.MAX_WBITS
            self._inflater = zlib.decompressobj(self._window)


class _Brotli:
    def __init__(self) -> None:
        brotli = import_module("brotli")  # it ships no types
        self._error = brotli.error
        self._inflater = brotli.Decompressor()
        self.left = b""

    def decode(self, data: bytes) -> bytes:
        self.left += data
        try:
            while True:
                data = b""
                if self._inflater.can_accept_more_data():
                    data, self.left = self.left, b""
                text: bytes = self._inflater.process(data, output_buffer_limit=MOST_DECODED)
                if text or not self.left:
                    return text
        except self._error as error:
            raise Undecodable from error
