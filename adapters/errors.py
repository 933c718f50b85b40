"""Every way a request can fail, in one tree:

    GatewayError
    ├── BadRequest        400   the client must change the request
    ├── Unauthorized      401   the client's own key
    ├── UnknownModel      404
    ├── TooLarge          413
    ├── Busy              503   we, not the upstream
    └── UpstreamError
        ├── Refused             it will not do this (400, 401, 402, 403, 404, 409, 413, 422)
        ├── RateLimited   429
        ├── Unavailable         it did not answer, or answered with a failure of its own
        └── Truncated     502   it stopped in the middle

`again` says what may help: the `same` upstream once more, one `elsewhere`, or `never`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

import orjson

Again = Literal["same", "elsewhere", "never"]
_LONGEST = 2000


class GatewayError(Exception):
    """What the client is told, in OpenAI's terms."""

    status = 500
    type = "api_error"
    code: str | None = "internal_error"
    again: Again = "never"
    begun = False
    """The answer had begun: what was said may be billed, so whatever may help, it is not redone."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        status: int | None = None,
        retry_after: str | None = None,
    ) -> None:
        super().__init__(message)
        # It may quote what the client sent, and that may be megabytes.
        self.message = message if len(message) <= _LONGEST else message[:_LONGEST] + "…"
        self.param = param
        self.code = code or self.code
        self.status = status or self.status
        self.retry_after = retry_after
        self.headers: Mapping[str, str] = {}
        """The upstream's request id and rate limits, where it answered at all."""


class BadRequest(GatewayError):
    status, type, code = 400, "invalid_request_error", "invalid_value"


class Unauthorized(GatewayError):
    status, type, code = 401, "invalid_request_error", "invalid_api_key"


class UnknownModel(GatewayError):
    status, type, code = 404, "invalid_request_error", "model_not_found"


class TooLarge(GatewayError):
    status, type, code = 413, "invalid_request_error", "request_too_large"


class Busy(GatewayError):
    status, type, code = 503, "api_error", "overloaded"
    again: Again = "same"


class UpstreamError(GatewayError):
    status, type, code = 502, "api_error", "upstream_error"


class Refused(UpstreamError):
    status, type, code = 400, "invalid_request_error", "upstream_bad_request"


class RateLimited(UpstreamError):
    status, type, code, again = 429, "rate_limit_error", "rate_limit_exceeded", "same"


class Unavailable(UpstreamError):
    again: Again = "same"


class Truncated(UpstreamError):
    code = "upstream_truncated"


class _Row(NamedTuple):
    kind: type[UpstreamError]
    status: int
    type: str
    code: str
    again: Again


# Upstream status → what the client sees. A 401 is only for the client's own key, so an upstream
# that refuses ours is a 502.
BY_STATUS: Mapping[int, _Row] = {
    400: _Row(Refused, 400, "invalid_request_error", "upstream_bad_request", "never"),
    401: _Row(Refused, 502, "api_error", "upstream_auth", "elsewhere"),
    402: _Row(Refused, 503, "api_error", "upstream_billing", "elsewhere"),
    403: _Row(Refused, 502, "api_error", "upstream_auth", "elsewhere"),
    404: _Row(Refused, 404, "invalid_request_error", "model_not_found", "elsewhere"),
    408: _Row(Unavailable, 504, "api_error", "upstream_timeout", "same"),
    409: _Row(Refused, 409, "invalid_request_error", "conflict", "never"),
    413: _Row(Refused, 413, "invalid_request_error", "request_too_large", "never"),
    422: _Row(Refused, 400, "invalid_request_error", "upstream_bad_request", "never"),
    429: _Row(RateLimited, 429, "rate_limit_error", "rate_limit_exceeded", "same"),
    # As OpenAI itself says it: LiteLLM and the Vercel AI SDK tell a 500 from a 502.
    500: _Row(Unavailable, 500, "api_error", "upstream_error", "same"),
    502: _Row(Unavailable, 502, "api_error", "upstream_error", "same"),
    503: _Row(Unavailable, 503, "api_error", "overloaded", "same"),
    504: _Row(Unavailable, 504, "api_error", "upstream_timeout", "same"),
    529: _Row(Unavailable, 503, "api_error", "overloaded", "same"),
}
_OTHER_4XX = _Row(Refused, 400, "invalid_request_error", "upstream_bad_request", "never")
_OTHER = _Row(Unavailable, 502, "api_error", "upstream_error", "same")

_SHOWN = 300
_CONTEXT = re.compile(
    r"context[ _-]?(length|window|size)|prompt is too long|maximum context|num_ctx|too many tokens",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"tool_use.{0,3} ids|unexpected .?tool_use_id|each tool_use must|tool_call_id|role 'tool'"
    r"|reasoning_content.{0,60}passed back|Expected .?thinking",
    re.IGNORECASE,
)
# What looks like a key, whoever it belongs to: by how its maker lets it begin, and by its place in
# an address. Each begins at a fixed word, and no part of one can run into the next.
KEY_SHAPES = (
    r"\b(?:(?i:[sp]k[-_]|rk_|Bearer )[\w\-.]{8,}"  # OpenAI, Anthropic, DeepSeek, Stripe
    r"|(?i:Basic )(?=[a-zA-Z+/]{0,60}(?:[0-9=]|[a-z][A-Z]))[\w+/=]{8,}"  # not "basic functionality"
    r"|eyJ[\w\-.]{20,}"  # a JSON web token
    r"|(?:AIza|ya29\.|GOCSPX-)[\w\-]{16,}"  # Google
    r"|(?:gh[pousr]_|github_pat_|glpat-)[\w\-]{16,}"  # GitHub, GitLab
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"  # Amazon
    r"|(?:hf_|gsk_|xai-|nvapi-|tvly-|r8_|fw_|pplx-|csk-|xox[a-z]-|npm_|pypi-)[\w\-]{12,})"
)
KEY_SHAPE = re.compile(
    KEY_SHAPES + r"|(?<=://)[^\s/@\"'<>]++(?=@)"  # http://user:password@host
    r"|[?&](?i:[\w\-]{0,20}(?:key|token|secret|password|signature|sig))=[^\s&\"'<>]{4,}"  # …?key=…
)
# What an edge or a debug server shows instead of a sentence. A script without an end goes on to the
# end of the page: it would be looked for again from every tag behind it.
_TAGS = re.compile(
    r"<(?:style|script)\b(?:.*?</(?:style|script)>|.*)|<[^<>]*>", re.DOTALL | re.IGNORECASE
)
_TRACEBACK = "Traceback (most recent call last)"
_QUOTA = ("insufficient_quota", "exceeded your current quota", "billing")


def from_status(
    status: int, headers: Mapping[str, str], body: bytes, upstream: str, secrets: tuple[str, ...]
) -> UpstreamError:
    """Turn an upstream's HTTP failure into the error the client sees."""
    if 300 <= status < 400:
        redirect = UpstreamError(
            f"Upstream '{upstream}' answered with a redirect, which is never followed: "
            "set its base_url to the address it redirects to.",
            code="upstream_redirect",
        )
        redirect.again = "elsewhere"
        return redirect
    error = from_words(status, words_of(body), upstream, secrets)
    error.retry_after = headers.get("retry-after")
    return error


def from_words(
    status: int, words: str, upstream: str, secrets: tuple[str, ...] = (), within: bool = False
) -> UpstreamError:
    """Make the error for a status and what the upstream said about it.

    `within` an answer that began well the status is our reading of the words, and is not told.
    """
    row = BY_STATUS.get(status) or (_OTHER_4XX if 400 <= status < 500 else _OTHER)
    code = row.code
    if row.kind is Refused and row.status == 400:
        code = _bad_request_code(words)
    shown = scrub(words, secrets) or "it gave no reason"
    told = "broke its answer off with an error" if within else f"answered {status}"
    error = row.kind(f"Upstream '{upstream}' {told}: {shown}", code=code, status=row.status)
    error.type = row.type
    error.again = row.again
    if row.kind is RateLimited and any(word in words for word in _QUOTA):
        error.code, error.again = "insufficient_quota", "elsewhere"
    return error


def _bad_request_code(words: str) -> str:
    if _CONTEXT.search(words):
        return "context_length_exceeded"
    return "invalid_tool_history" if _HISTORY.search(words) else "upstream_bad_request"


def words_of(body: bytes) -> str:
    """Find the human sentence in an error body of any provider."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _TAGS.sub(" ", body.decode("utf-8", "replace")).strip()
    for _ in range(3):
        if not isinstance(data, dict):
            break
        data = data.get("error") or data.get("message") or data.get("detail") or data
    if not data or isinstance(data, str):
        return data or ""
    return orjson.dumps(data).decode()


def scrub(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Cut to a readable length, on one line, without anything that looks like a key."""
    for secret in filter(None, secrets):
        text = text.replace(secret, "[secret]")
    if _TRACEBACK in text:
        text = text.partition(_TRACEBACK)[0] + "(a traceback)"
    text = text[: _SHOWN * 4]
    text = " ".join(KEY_SHAPE.sub("[secret]", text).split())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
