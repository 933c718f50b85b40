"""What is said at addresses the gateway does not have: which base URL leads to those it has."""

from __future__ import annotations

import re

from adapters.errors import BadRequest

CHAT = "/v1/chat/completions"
_SHOWN = 100
# What clients add to a base URL, with the base in front of it.
_ADDED = re.compile(
    r"(.*?)(/(?:chat/completions|responses|messages|models|embeddings)(?:/.*)?|/api(?:/.*)?)"
)
_MESSAGES = re.compile(r"/messages(/.*)?")


def closed(door: str) -> BadRequest:
    """Of a protocol that the config has switched off."""
    return BadRequest(
        f"This gateway does not serve the door '{door}': its config leaves it out. Add it to "
        "`doors` under [server], or point the client at another address: GET /docs shows all.",
        status=501,
        code="door_closed",
    )


def unknown_url(method: str, path: str) -> BadRequest:
    shown = path[:_SHOWN]
    if path in ("/completions", "/v1/completions"):
        text = f"This gateway has no text completions. Send 'messages' to POST {CHAT}."
        return BadRequest(text, status=404, code="unsupported_api")
    found = _ADDED.fullmatch(path.rstrip("/")[:_SHOWN])
    added = found[2] if found else ""
    right = added if added.startswith("/api") else f"/v1{added}"
    if added and right != path:
        # Claude Code hides the text of a 404 ("issue with the selected model").
        hidden = _MESSAGES.fullmatch(added) and not path.startswith("/v1/v1")
        status = 400 if hidden else 404
        told = f"The path is {right}, and this was {shown}. {_base(added)}"
        return BadRequest(told, status=status, code="unknown_url")
    text = (
        f"Unknown request URL: {method[:20]} {shown}. The endpoints are POST {CHAT}, "
        "POST /v1/responses, POST /v1/messages, POST /api/chat, POST /v1/embeddings and "
        "GET /v1/models; GET /docs shows all. Clients of OpenAI add the part behind /v1 "
        "themselves, so their base URL must end in /v1; those of Anthropic and Ollama add all of "
        "the path."
    )
    return BadRequest(text, status=404, code="unknown_url")


def _base(added: str) -> str:
    """What the base URL must be for clients that add this."""
    if added.startswith("/api"):
        return (
            "Clients of Ollama add /api themselves, so their base URL has no path; one that posts "
            "to /v1 as OpenAI's clients do wants a base URL that ends in /v1."
        )
    if _MESSAGES.fullmatch(added):
        return (
            "Claude Code and Anthropic's SDKs add /v1/messages themselves, so their base URL has "
            "no path: remove /v1 from the base URL (ANTHROPIC_BASE_URL). The Vercel AI SDK adds "
            "/messages alone: its base URL must end in /v1."
        )
    return f"Clients add {added} themselves, so their base URL must end in /v1."


def wrong_method(method: str, path: str, allowed: str) -> BadRequest:
    return BadRequest(
        f"Method {method[:20]} is not allowed on {path[:_SHOWN]}: send {allowed}. GET /docs shows "
        "what there is.",
        status=405,
        code="method_not_allowed",
    )
