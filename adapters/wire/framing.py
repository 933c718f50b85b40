"""Bytes → frames: SSE payloads and NDJSON lines, whatever the network cut them into. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import orjson

from adapters.errors import UpstreamError

# An image in an event has megabytes; what never ends must not fill the memory.
MAX_FRAME = 16 << 20
_END = b"\n\n"
"""Of an event."""
_THREE = b"\n\n\n"
_LINE_FEED, _RETURN = 0x0A, 0x0D  # `in` is dear for bytes in bytes: it asks for a number first
_LONGEST_NAME = 64
"""Bytes in front of an event's data that are remembered."""
_BURST = 1024
"""Bytes that come at once from which on they are split by what most frames begin with."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Framer(Protocol):
    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames this piece completed."""
        ...

    def close(self) -> list[bytes]:
        """Return what stood without its end when the input ended."""
        ...


class _Splitter:
    """Collects pieces until a separator completes them; linear for any cut."""

    def __init__(self, separator: bytes) -> None:
        self._separator = separator
        self.held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        return self.split(data) if (data := self.joined(data)) else []

    def joined(self, data: bytes) -> bytes:
        """This piece behind what is held, if that completes a frame; else it is held, too."""
        if data.find(self._separator) < 0 and not self._straddles(data):
            if data:
                self._hold(data)
            return b""
        if self.held:
            self.held += data
            data, self.held = bytes(self.held), bytearray()
        return data

    def split(self, data: bytes) -> list[bytes]:
        whole = data.split(self._separator)
        if rest := whole.pop():
            self._hold(rest)
        if len(data) > MAX_FRAME and any(len(frame) > MAX_FRAME for frame in whole):
            raise _too_long()
        return whole

    def _straddles(self, data: bytes) -> bool:
        separator, held = self._separator, self.held
        return bool(held) and held[-1:] + data[:1] == separator

    def _hold(self, data: bytes) -> None:
        self.held += data
        if len(self.held) > MAX_FRAME:
            raise _too_long()

    def close(self) -> bytes:
        rest, self.held = bytes(self.held), bytearray()
        return rest


def _too_long() -> UpstreamError:
    return UpstreamError(
        f"The upstream sent one event of more than {MAX_FRAME} bytes.", code="upstream_too_large"
    )


class Sse:
    """Server-sent events: the joined `data` of each; comments and names are skipped."""

    def __init__(self) -> None:
        self._blocks = _Splitter(_END)
        self._half_newline = False
        self._started = False
        self._usual = b""
        """What stood in front of the last data; nearly always the next has the same."""
        self._around = -1
        """Bytes of a usual frame beside its data, where none is held; else no frame has so few."""

    def feed(self, data: bytes) -> list[bytes]:
        payload = data.removeprefix(self._usual).removesuffix(_END)
        usual = payload and len(payload) + self._around == len(data) <= MAX_FRAME
        if usual and _LINE_FEED not in payload and _RETURN not in payload:
            return [payload]  # a frame, alone: a piece
        if self._half_newline or _RETURN in data:
            data = self._one_newline(data)
        data = self._blocks.joined(data)
        if _BURST < len(data) <= MAX_FRAME:
            payloads = self._many(data)
        else:
            payloads = self._payloads(self._blocks.split(data)) if data else []
        whole = not (self._half_newline or self._blocks.held)
        self._around = len(self._usual) + len(_END) if whole and self._usual else -1
        return payloads

    def _many(self, data: bytes) -> list[bytes]:
        """Payloads of frames, most of which begin alike: those come bare of one split."""
        # Of three newlines a split would take the last two, where it is the first two that end.
        usual = _usual_in(data) if data.find(_THREE) < 0 else b""
        first, *others = data.split(_END + usual) if usual else (data,)
        if not others:
            return self._payloads(self._blocks.split(data))
        last = others.pop()
        payloads = self._payloads(first.split(_END))
        for payload in others:
            if _LINE_FEED in payload:  # another frame stands behind it, or it has several lines
                payloads += self._payloads((usual + payload).split(_END))
            elif payload:
                payloads.append(payload)
        return payloads + self._payloads(self._blocks.split(usual + last))

    def _payloads(self, blocks: list[bytes]) -> list[bytes]:
        if blocks and not self._started:
            self._started = True
            blocks[0] = blocks[0].removeprefix(BYTE_ORDER_MARK)
        usual, payloads = self._usual, []
        for block in filter(None, blocks):
            data = block.removeprefix(usual)
            if len(data) == len(block) or _LINE_FEED in data:
                data = self._payload(block)
                usual = self._usual
            if data:
                payloads.append(data)
        return payloads

    def _payload(self, block: bytes) -> bytes:
        # The two forms every provider sends, `data: …` alone and after one `event: …` line.
        before, found, data = block.partition(b"data: ")
        if found and len(before) < _LONGEST_NAME and _is_name(before) and _LINE_FEED not in data:
            self._usual = before + found
            return data
        return _odd_payload(block)

    def _one_newline(self, data: bytes) -> bytes:
        """CRLF and CR become LF; a CR at the very end waits for what follows."""
        if self._half_newline:
            data = b"\r" + data
        self._half_newline = data.endswith(b"\r")
        if self._half_newline:
            data = data[:-1]
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def close(self) -> list[bytes]:
        return self._payloads([self._blocks.close()])


def _usual_in(data: bytes) -> bytes:
    """What stands in front of the data of the frame in the middle; empty: nothing usual."""
    start = data.find(_END, len(data) // 2) + len(_END)
    before, found, _ = data[start : start + _LONGEST_NAME].partition(b"data: ")
    return before + found if found and _is_name(before) else b""


@lru_cache(maxsize=64)
def _is_name(before: bytes) -> bool:
    """Whether what stands before the data is nothing, or the name of an event."""
    name, newline, rest = before.removeprefix(b"event:").partition(b"\n")
    named = before.startswith(b"event:") and newline and not rest and name.strip() != b"error"
    return bool(named) or not before


def _odd_payload(block: bytes) -> bytes:
    start = block.find(b"\n") + 1 if block[:6] == b"event:" else 0
    if 0 < start < 14 and block[6:start].strip() == b"error":
        return _error(_data(block))
    return _data(block)


def _data(block: bytes) -> bytes:
    lines = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if line[:5] == b"data:"]
    return b"\n".join(lines)


def _error(data: bytes) -> bytes:
    """What an `error` event says, in the form every language reads: some send a bare sentence."""
    try:
        said = orjson.loads(data)
    except orjson.JSONDecodeError:
        said = data.decode("utf-8", "replace")
    if isinstance(said, dict) and said.get("error"):
        return data
    return orjson.dumps({"error": said or "it gave no reason"})


class Ndjson:
    """One JSON object a line."""

    def __init__(self) -> None:
        self._lines = _Splitter(b"\n")

    def feed(self, data: bytes) -> list[bytes]:
        return [line for line in self._lines.feed(data) if not line.isspace() and line]

    def close(self) -> list[bytes]:
        rest = self._lines.close().strip()
        return [rest] if rest else []
