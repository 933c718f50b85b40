"""An upstream that costs next to nothing: canned Claude and OpenAI answers over raw asyncio.

python -m tests.bench.upstream PORT
"""

from __future__ import annotations

import asyncio
import sys

import orjson

DELTAS = 100
PIECES = 50
_WORDS = ("the ", "gateway ", "turns ", "one ", "wire ", "format ", "into ", "another, ")
_USAGE = {"input_tokens": 512, "output_tokens": DELTAS}


def _event(kind: str, **said: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **said}))


def _message(**said: object) -> dict[str, object]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "bench", **said}


def _stream(block: dict[str, object], deltas: list[dict[str, str]], reason: str) -> list[bytes]:
    begun = _message(content=[], stop_reason=None, usage=_USAGE)
    return [
        _event("message_start", message=begun),
        _event("content_block_start", index=0, content_block=block),
        *(_event("content_block_delta", index=0, delta=delta) for delta in deltas),
        _event("content_block_stop", index=0),
        _event("message_delta", delta={"stop_reason": reason}, usage=_USAGE),
        _event("message_stop"),
    ]


def _text() -> list[str]:
    return [_WORDS[number % len(_WORDS)] for number in range(DELTAS)]


def _answers() -> dict[str, bytes]:
    """Script → the whole HTTP response."""
    call: dict[str, object] = {"type": "tool_use", "id": "toolu_1", "name": "web_search"}
    call["input"] = {}
    pieces = ['{"query":"', *["book fair "] * (PIECES - 2), '"}']
    content = [{"type": "text", "text": "".join(_text())}]
    plain = orjson.dumps(_message(content=content, stop_reason="end_turn", usage=_USAGE))
    streams = {
        "stream": _stream(
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": word} for word in _text()],
            "end_turn",
        ),
        "tools": _stream(
            call,
            [{"type": "input_json_delta", "partial_json": piece} for piece in pieces],
            "tool_use",
        ),
    }
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n%b\r\n\r\n"
    answers = {
        "plain": head % (b"application/json", b"content-length: %d" % len(plain)) + plain,
    }
    for name, events in streams.items():
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events)
        chunked = head % (b"text/event-stream", b"transfer-encoding: chunked")
        answers[name] = chunked + chunks + b"0\r\n\r\n"
    return answers


class _Peer(asyncio.Protocol):
    """Reads just enough of HTTP to know where a request ends."""

    answers = _answers()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._held = b""

    def data_received(self, data: bytes) -> None:
        self._held += data
        head, found, body = self._held.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        if len(body) < length:
            return
        self._held = b""
        self._transport.write(self.answers[_script(body)])


def _script(body: bytes) -> str:
    """The script's name travels in the system prompt."""
    return next((name for name in ("tools", "stream") if b"[%b]" % name.encode() in body), "plain")


async def main(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Peer, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
