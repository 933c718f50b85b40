"""Why a completion ended, in OpenAI's words; and what came instead of one, or broke it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from adapters.errors import UpstreamError, from_words, words_of
from adapters.protocol import FinishReason, Json

FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "function_call": "tool_calls",
    "eos": "stop",  # Together
    "eos_token": "stop",  # text-generation-inference
    "model_length": "length",  # Mistral
    "sensitive": "content_filter",  # Zhipu
    "safety": "content_filter",  # Gemini behind gateways
    # Claude's and Cohere's own words, where a gateway lets them through
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
}
# Reasons that say the answer failed: DeepSeek ran out of machines; OpenRouter's provider, Zhipu's
# network broke; vLLM and SGLang gave a request up.
FAILED: Mapping[str, int] = {
    "insufficient_system_resource": 503,
    "error": 502,
    "network_error": 502,
    "abort": 502,
}
_STATUS: Mapping[str, int] = {
    "invalid_request_error": 400,
    "BadRequestError": 400,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "timeout": 504,
    "overloaded_error": 529,
}
# MiniMax answers 200 whatever happens.
_MINIMAX: Mapping[int, int] = {1002: 429, 1004: 401, 1008: 402, 1039: 429, 2013: 400, 2049: 401}


def error_in(said: Json) -> Any:
    """The error that stands where choices belong, if one does."""
    if said.get("error"):
        return said["error"]
    # vLLM's older form is the error object itself; others say its type.
    if said.get("object") == "error" or said.get("type") == "error":
        return said
    if isinstance(said.get("base_resp"), dict):
        return _minimax(said["base_resp"])
    # FastAPI's; and that of servers which name a code beside their words.
    named = said.get("message") and (said.get("code") or said.get("status"))
    return said if "choices" not in said and (said.get("detail") or named) else None


def _minimax(said: Json) -> Json | None:
    code = said.get("status_code")
    if not code:
        return None
    known = _MINIMAX.get(code) if isinstance(code, int) else None
    return {"message": f"{said.get('status_msg')} ({code})", "code": known}


def failure(error: Any, status: int, upstream: str, secrets: tuple[str, ...]) -> UpstreamError:
    """An error that came as an answer: its status is in its words, if anywhere."""
    if isinstance(error, dict):
        said = [str(error.get(name)) for name in ("code", "status", "type")]
        numbers = (int(one) if one.isdecimal() else _STATUS.get(one, 0) for one in said)
        status = next((number for number in numbers if 400 <= number < 600), status)
    return from_words(status, words_of(orjson.dumps(error)), upstream, secrets, within=True)
