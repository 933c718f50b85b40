"""`ChatRequest` → the body of chat completions that says the same: the form asks are kept in."""

from __future__ import annotations

import orjson

from adapters.protocol import CARRIER, ChatRequest, Json


def says_more(request: ChatRequest) -> bool:
    """Whether its own door can say what this form cannot."""
    native = request.native
    carries = any(CARRIER in message for message in request.messages)
    says = native is not None and native.value is not None
    return carries or says or request.call.most_calls is not None


def chat_body(request: ChatRequest) -> bytes:
    """Without what only its own door can say."""
    body: Json = {
        "model": request.model,
        "messages": [_public(message) for message in request.messages],
        **request.params,
        **request.extra,
    }
    if request.tools:
        body["tools"] = request.tools
    if request.tool_choice is not None:
        body["tool_choice"] = request.tool_choice
    if request.call.streamed:
        body["stream"] = True
    return orjson.dumps(body)


def _public(message: Json) -> Json:
    if CARRIER not in message:
        return message
    return {name: said for name, said in message.items() if name != CARRIER}
