"""One answer as its bytes come: HTTP/1.1, without a connection and without a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, groupby

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from adapters.wire.failures import CutShort, NotHttp, Unanswered, WireError
from adapters.wire.transport.encodings import Decoder, decoder_of

MAX_HEAD = 64 << 10
"""Bytes of a head, those of interim answers included; also of what brings nothing of a body for so
long, such as trailers.
"""
MAX_HEADERS = 128
_SWITCHING_PROTOCOLS = 101
_NUL = 0
"""In a value it is a mistake."""
_ODD = "surrogateescape"


class Incoming:
    """What an upstream has answered so far; whoever reads it takes the pieces away."""

    __slots__ = (
        *("_barren", "_chunked", "_decoder", "_head_lines", "_head_size", "_interim", "_lines"),
        *("_parser",),
        *("coded", "failure", "headers", "held", "on_body", "over", "pieces", "ready"),
        *("reusable", "status"),
    )
    sizes: Sequence[int] = ()
    """Of the chunks in which the piece that was taken last was sent, where they are noted."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        """By names in small letters; of several with one name the first."""
        self.ready = False
        """The head is here."""
        self.over = False
        """The body is here to its end."""
        self.coded = False
        """It comes compressed; `take` gives it in bounded pieces."""
        self.failure: WireError | None = None
        """Why no more will come than the pieces that are here."""
        self.reusable = False
        """The connection may carry another request once this is over."""
        self.held = 0
        """Bytes that came since pieces were taken last, or are still to be inflated."""
        self.pieces: list[bytes] = []
        # The parser calls it for each piece; with no function of ours that costs next to nothing.
        self.on_body = self.pieces.append
        self._decoder: Decoder | None = None
        self._chunked = self._interim = False
        self._head_lines = self._head_size = self._barren = 0
        self._lines: list[tuple[bytes, bytes]] = []
        """Of the head that comes, or of trailers, which nobody reads."""
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        # What aiohttp lets pass: many an upstream is a server that somebody wrote in an evening.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    def feed(self, data: bytes) -> bool:
        """Hear what the connection brought; return whether there may be more."""
        parser, pieces = self._parser, self.pieces
        if parser is None:
            self.reusable = False  # nobody asked for what stands behind the end
            return False
        size, before = len(data), len(pieces)
        self.held += size
        try:
            parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.reusable = False
            self.end(CutShort() if self.ready else NotHttp())
        if len(pieces) > before:
            self._barren = 0
        else:
            self._bear(size)
        if self.over:
            self._parser = None
        return self._parser is not None

    def _bear(self, size: int) -> None:
        """Bytes that brought nothing of a body, for a while."""
        self._barren += size
        if self._barren > MAX_HEAD:
            self.end(CutShort() if self.ready else NotHttp())

    def close(self, clean: bool) -> None:
        """The connection is gone: as one that ends, or broken."""
        if not self.ready:
            self.end(Unanswered(heard=self.held > 0))
        elif clean and not self._chunked and "content-length" not in self.headers:
            self.over = True
        else:
            self.end(CutShort())
        self.reusable = False

    def end(self, failure: WireError) -> None:
        """Nothing more will come; what is over cannot fail."""
        # The parser knows our methods: without this only the garbage collector would part us.
        self._parser = None
        if not self.over:
            self.failure = self.failure or failure

    def take(self) -> bytes:
        """Return what came since it was called last; b"": nothing did."""
        self.held = 0
        pieces = self.pieces
        if len(pieces) == 1:
            piece = pieces.pop()
        else:
            piece = b"".join(pieces)
            pieces.clear()
        if self._decoder is not None:
            piece = self._decoder.decode(piece)
            self.held = len(self._decoder.left)
        return piece

    # The parser's calls ------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.over:
            raise NotHttp  # a second answer

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 100 or status == _SWITCHING_PROTOCOLS:
            raise NotHttp  # none offered another protocol
        lines, self._lines = self._lines, []
        self._head_lines += len(lines)
        if self._head_lines > MAX_HEADERS:
            raise NotHttp
        said = b"".join(chain.from_iterable(lines))
        self._head_size += len(said)
        if self._head_size > MAX_HEAD or _NUL in said:
            raise NotHttp
        self._interim = status < 200
        if self._interim:
            return
        self._take_headers(lines)
        self.status, self.ready = status, True
        self.reusable = self._parser.should_keep_alive()
        if encoding := self.headers.get("content-encoding"):
            self._decoder = decoder_of(encoding)
            self.coded = self._decoder is not None

    def _take_headers(self, lines: list[tuple[bytes, bytes]]) -> None:
        headers = self.headers = _by_names(lines)
        if len(headers) < len(lines):
            headers |= _by_names(reversed(lines))
        if "transfer-encoding" in headers:
            named = [value for name, value in lines if name.lower() == b"transfer-encoding"]
            self._chunked = b"chunked" in b",".join(named).lower()

    def on_message_complete(self) -> None:
        self.over = not self._interim


def _by_names(lines: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {
        name.decode("utf-8", _ODD).lower(): value.decode("utf-8", _ODD).rstrip(" \t")
        for name, value in lines
    }


class NotedIncoming(Incoming):
    """Notes in which chunks the body is sent, however the network joins them."""

    sizes: Sequence[int] = ()
    """Of what was taken last; empty: it was sent in one."""

    @property
    def on_chunk_complete(self) -> Callable[[], None]:
        """Puts an empty piece behind each chunk. The parser takes it once: it is no function of
        ours either.
        """
        return partial(self.pieces.append, b"")

    def take(self) -> bytes:
        pieces = self.pieces
        if len(pieces) < 2 or self._decoder is not None:
            if self.sizes:
                self.sizes = ()  # of what is coded they would be those of other bytes
        elif any(pieces[1::2]):  # the network divided some
            runs = groupby(pieces, bool)
            self.sizes = [sum(map(len, parts)) for full, parts in runs if full]
        else:
            del pieces[1::2]
            if not pieces[-1]:  # the last chunk, which is none
                pieces.pop()
            self.sizes = [*map(len, pieces)]
        return super().take()
