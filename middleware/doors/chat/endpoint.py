"""This door as `/openapi.json` describes it."""

from middleware.doors.chat.answers import Chunk, Completion
from middleware.doors.chat.shapes import ChatBody
from middleware.doors.endpoint import Endpoint

ENDPOINT = Endpoint(
    path="/v1/chat/completions",
    summary="Answer a chat, with tools",
    description="As OpenAI's own API, for every model of the list. With `stream` the answer comes "
    "as server-sent events, and `data: [DONE]` is the last. A stream that broke off ends in an "
    "event with `error` instead, without a `finish_reason`. A field the upstream cannot take is "
    "named in `x-usetool-warnings`, or refused. Fields that are not OpenAI's go on to the upstream "
    "or are named.",
    body=ChatBody,
    example={"model": "MODEL", "messages": [{"role": "user", "content": "Hello"}]},
    answer=Completion,
    event=Chunk,
    headers={
        "x-usetool-model": "The model that answered, by its public name.",
        "x-usetool-route": "Who was considered and what came of it: `sonnet=overloaded, gpt=ok`.",
        "x-upstream-model": "The model's name as the upstream says it.",
        "x-usetool-warnings": "What could not be sent as it was asked: `code:field`, with commas.",
        "x-usetool-usage": "What each model of a pipeline used, as JSON; of a plain answer.",
        "x-usetool-cost": "USD, of a plain answer that costs any; streams say it at the end.",
        "x-upstream-request-id": "The upstream's own request id.",
        "x-ratelimit-remaining-requests": "The client's limits where it has any, else the "
        "upstream's; others begin `x-ratelimit-` too.",
    },
)
