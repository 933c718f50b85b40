"""The small fields of a request, one by one: what Claude has of them, and what is lost."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from adapters.protocol import Json, RequestContext
from adapters.receipts import Code, Note, Receipt
from adapters.shared.fields import Fields, unsupported
from adapters.wire.http import Link

# Values that mean what leaving the field out means.
_NEUTRAL: Mapping[str, Any] = {
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "logit_bias": {},
    "logprobs": False,
    "top_logprobs": 0,
    "modalities": ["text"],
    "n": 1,
    "service_tier": "auto",
    "store": False,
    "verbosity": "medium",
}
_DEFAULTS: Mapping[str, float] = {"temperature": 1, "top_p": 1}
_SAMPLING = (*_DEFAULTS, "top_k")
_DROPPED: Mapping[str, Code] = {
    "temperature": "temperature_dropped",
    "top_p": "top_p_dropped",
    "top_k": "top_k_dropped",
}
_REFUSED: Mapping[str, str] = {
    "n": "Claude gives one answer. Send the request n times instead.",
    "logprobs": "Claude has no log probabilities. Leave 'logprobs' out.",
    "top_logprobs": "Claude has no log probabilities. Leave 'top_logprobs' out.",
    "modalities": "Claude answers in text only. Leave 'modalities' out.",
    "audio": "Claude answers in text only. Leave 'audio' out.",
    "web_search_options": "This model cannot search the web. Leave 'web_search_options' out.",
}
BETAS = "anthropic-beta"
_MOST_BETAS = 64
# Members of a request that a beta brought: without it they are refused.
_BROUGHT_BY: Mapping[str, str] = {
    "context_management": "context-management-",
    "mcp_servers": "mcp-client-",
    "speed": "fast-mode-",
    "output_format": "structured-outputs-",
}
# Fields of Claude's own that go up as the client sent them; `thinking` and `top_k` are read first.
_PASSED = ("cache_control", "container", "diagnostics", "inference_geo", "speed")
_OTHERS = ("stop", "safety_identifier", "user", "service_tier", *_PASSED)
# These have their say elsewhere: in tool_choice, and at the door.
_SAID_ELSEWHERE = ("parallel_tool_calls", "stream_options")
# Long enough for a random id, with letters and digits: no name, address or phone number.
_OPAQUE = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9_-]{16,256}")


def without_neutral(params: Mapping[str, Any], extra: Mapping[str, Any]) -> Fields:
    """The fields that ask for something Claude can give."""
    asked = params
    if not _NEUTRAL.keys().isdisjoint(params):
        asked = {k: v for k, v in params.items() if k not in _NEUTRAL or v != _NEUTRAL[k]}
    fields = Fields({**asked, **extra} if extra else asked)
    if not _REFUSED.keys().isdisjoint(params):
        for name, message in _REFUSED.items():
            fields.refuse(name, message)
    for name in _SAID_ELSEWHERE:
        fields.left.pop(name, None)
    return fields


def token_limit(fields: Fields) -> int | None:
    """The client's limit; the newer name outranks the older."""
    take = fields.left.pop
    older: int | None = take("max_tokens", None)
    newer: int | None = take("max_completion_tokens", None)
    if older is not None and newer not in (None, older):
        fields.note("parameter_dropped", "max_tokens", "'max_completion_tokens' outranks it")
    limit = older if newer is None else newer
    if limit is not None and limit < 1:
        name = "max_tokens" if newer is None else "max_completion_tokens"
        raise unsupported(name, f"'{name}' must be at least 1, not {limit}.")
    return limit


def sampling(fields: Fields, accepted: bool, thinking: bool) -> Json:
    """temperature, top_p and top_k, as far as the model takes them now."""
    asked: Json = {}
    kept: Json = {}
    left = fields.left
    for name in _SAMPLING:
        if name in left and (value := left.pop(name)) != _DEFAULTS.get(name):
            asked[name] = value
    for name, value in asked.items():
        why = _why_not(name, asked, accepted, thinking)
        if why:
            fields.note(_DROPPED[name], name, why)
        elif name == "temperature" and value > 1:
            # Claude's own default is 1 too.
            fields.note("temperature_clamped", name, "Claude's goes up to 1")
        else:
            kept[name] = value
    return kept


def _why_not(name: str, asked: Json, accepted: bool, thinking: bool) -> str:
    if not accepted:
        return "this model takes no sampling parameters"
    # "`temperature` may only be set to 1 when thinking is enabled", top_p to 0.95 and more.
    if thinking and not (name == "top_p" and asked["top_p"] >= 0.95):
        return "Claude takes none while it thinks"
    if name == "top_p" and "temperature" in asked and not thinking:
        return "Claude takes temperature or top_p, not both"
    return ""


def others(fields: Fields) -> Json:
    """What few requests say; None where they do not say it."""
    if not fields.left or fields.left.keys().isdisjoint(_OTHERS):
        return {}
    return {
        "stop_sequences": _stop_sequences(fields),
        "metadata": _metadata(fields),
        "service_tier": _service_tier(fields),
        **fields.take_all(_PASSED),
    }


def _stop_sequences(fields: Fields) -> list[str] | None:
    asked = fields.take("stop")
    if asked is None:
        return None
    stops = [asked] if isinstance(asked, str) else asked
    if len(stops) > 4:
        raise unsupported("stop", f"'stop' may have up to 4 entries, not {len(stops)}.")
    kept = [stop for stop in stops if stop.strip()]
    if len(kept) < len(stops):
        text = "Claude refuses stop sequences without a visible character"
        fields.note("stop_blank_dropped", "stop", text)
    return kept


def _metadata(fields: Fields) -> Json | None:
    """The end user as an id; what could be a person's name or address is hashed."""
    identity, user = fields.take("safety_identifier"), fields.take("user")
    if identity and user and identity != user:
        fields.note("parameter_dropped", "user", "'safety_identifier' outranks it")
    said = identity or user
    if not said:
        return None
    if not _OPAQUE.fullmatch(said):
        name = "safety_identifier" if identity else "user"
        fields.note("user_hashed", name, "Claude takes opaque ids only: a digest was sent")
        said = hashlib.sha256(said.encode()).hexdigest()
    return {"user_id": said}


def _service_tier(fields: Fields) -> str | None:
    tier: str | None = fields.take("service_tier")
    if tier not in (None, "standard_only"):
        fields.note("parameter_dropped", "service_tier", f"Claude has no tier '{tier}'")
        return None
    return tier


class Betas(NamedTuple):
    """Those a client asks for, as far as the upstream knows them."""

    passed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def headers(self) -> Mapping[str, str]:
        return {BETAS: ",".join(self.passed)} if self.passed else {}

    def receipt(self) -> Receipt:
        if not self.dropped:
            return ()
        text = f"not sent, as the upstream may refuse them: {', '.join(self.dropped)[:500]}"
        return (Note("beta_dropped", "", text),)

    def without_theirs(self, own: Json) -> Json:
        """The client's members but for those of betas that were dropped."""
        if not self.dropped:
            return own
        lost = {
            name
            for name, beta in _BROUGHT_BY.items()
            if any(one.startswith(beta) for one in self.dropped)
        }
        return {name: value for name, value in own.items() if name not in lost}


_NONE = Betas()


def betas_of(call: RequestContext, allowed: Sequence[str] | None, link: Link) -> Betas:
    """Anthropic itself knows them all; elsewhere those that the config allows."""
    said = call.headers.get(BETAS)
    asked = dict.fromkeys(_names(said)) if said else {}
    if not asked:
        return _NONE
    own = dict.fromkeys(_names(link.headers.get(BETAS, "")))
    every = allowed is None and _is_anthropics(link.base_url)
    known = own | (asked if every else dict.fromkeys(allowed or ()))
    passed = own | {beta: None for beta in asked if beta in known}
    return Betas(tuple(passed), tuple(beta for beta in asked if beta not in known))


def _names(header: str) -> list[str]:
    named = (one.strip() for one in header.split(","))
    return [*dict.fromkeys(filter(None, named))][:_MOST_BETAS]


def _is_anthropics(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return host == "anthropic.com" or host.endswith(".anthropic.com")
