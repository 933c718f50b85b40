"""What a connection's failure means, in our own words: the library's texts name addresses."""

from __future__ import annotations

import aiohttp

from adapters.errors import Truncated, Unavailable, UpstreamError


def unreachable(upstream: str, error: Exception) -> Unavailable:
    reason = next((words for kind, words in _CONNECT_FAILURES if isinstance(error, kind)), "failed")
    return Unavailable(
        f"The connection to upstream '{upstream}' {reason}. Check that it runs and that its "
        "base_url (and proxy, if it needs one) in the config is right.",
        code="upstream_unreachable",
    )


_CONNECT_FAILURES: tuple[tuple[type[Exception], str], ...] = (
    (aiohttp.ClientConnectorDNSError, "failed: its host name is unknown"),
    (aiohttp.ClientConnectorCertificateError, "failed: its TLS certificate is not trusted"),
    (aiohttp.ClientSSLError, "failed: it does not speak TLS as its address says"),
    (aiohttp.ClientProxyConnectionError, "failed at the proxy"),
    (aiohttp.ClientConnectorError, "was refused"),
    (aiohttp.ServerDisconnectedError, "was closed by it before it answered"),
    (aiohttp.ClientResponseError, "brought an answer that is not HTTP"),
    (aiohttp.ClientOSError, "was closed by it before it answered"),
    (ConnectionError, "was closed by it before it answered"),
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
    if isinstance(error, aiohttp.ClientPayloadError) and "content-encoding" in str(error).lower():
        unread = UpstreamError(
            f"Upstream '{upstream}' sent a compressed answer that cannot be read.",
            code="upstream_bad_encoding",
        )
        unread.again = "elsewhere"
        return unread
    return Truncated(f"Upstream '{upstream}' broke off in the middle of its answer.")
