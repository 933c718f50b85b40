"""`ChatRequest` → the body of chat completions that says the same: the form asks are kept in."""

from __future__ import annotations

import orjson

from adapters.protocol import CARRIED, RESULT_OF, ChatRequest, Json

_PRIVATE = CARRIED | {RESULT_OF}


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
    if _PRIVATE.isdisjoint(message):
        return message
    return {name: said for name, said in message.items() if name not in _PRIVATE}
