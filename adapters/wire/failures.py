"""What a connection's failure means, in our own words: the libraries' texts name addresses."""

from __future__ import annotations

from adapters.errors import Truncated, Unavailable, UpstreamError


class WireError(Exception):
    """A connection did not bring what it was asked for."""

    what = "failed"
    """What became of it, behind 'The connection to upstream X'."""


class UnknownHost(WireError):
    what = "failed: its host name is unknown"


class UntrustedHost(WireError):
    what = "failed: its TLS certificate is not trusted"


class NoTls(WireError):
    what = "failed: it does not speak TLS as its address says"


class ProxyFailed(WireError):
    what = "failed at the proxy"


class NotAccepted(WireError):
    what = "was refused"


class NotConnected(WireError):
    """Nobody accepted it in time."""


class Unanswered(WireError):
    what = "was closed by it before it answered"

    def __init__(self, heard: bool = False) -> None:
        super().__init__()
        self.heard = heard
        """The beginning of an answer came."""


class NotHttp(WireError):
    what = "brought an answer that is not HTTP"


class CutShort(WireError):
    """In the middle of an answer."""


class Undecodable(WireError):
    """An answer's content-encoding is not what its header says."""


def unreachable(upstream: str, error: WireError) -> Unavailable:
    return Unavailable(
        f"The connection to upstream '{upstream}' {error.what}. Check that it runs and that its "
        "base_url (and proxy, if it needs one) in the config is right.",
        code="upstream_unreachable",
    )


def unconnected(upstream: str, base_url: str, seconds: float) -> Unavailable:
    """No connection in time. Behind https it is mostly a port that speaks no TLS and waits."""
    secure = base_url.startswith("https:")
    what = "no TLS connection to" if secure else "no connection to"
    error = Unavailable(
        f"There was {what} upstream '{upstream}' in {seconds:g} seconds. Check its "
        "base_url in the config: host, port, http or https.",
        code="upstream_unreachable" if secure else "upstream_timeout",
        status=502 if secure else 504,
    )
    error.again = "elsewhere"  # the time to connect is spent
    return error


def timed_out(upstream: str, what: str) -> Unavailable:
    error = Unavailable(
        f"Upstream '{upstream}' {what}. If it needs longer, raise its timeouts in the config.",
        code="upstream_timeout",
        status=504,
    )
    # It may still be at work on the request: asking it again would double the load.
    error.again = "elsewhere"
    return error


def too_large(upstream: str, most: int) -> UpstreamError:
    return UpstreamError(
        f"The answer of upstream '{upstream}' is larger than {most} bytes.",
        code="upstream_too_large",
    )


def broke_off(upstream: str, error: Exception) -> UpstreamError:
    if isinstance(error, Undecodable):
        unread = UpstreamError(
            f"Upstream '{upstream}' sent a compressed answer that cannot be read.",
            code="upstream_bad_encoding",
        )
        unread.again = "elsewhere"
        return unread
    return Truncated(f"Upstream '{upstream}' broke off in the middle of its answer.")
