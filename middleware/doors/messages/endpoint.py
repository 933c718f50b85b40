"""This door as `/openapi.json` describes it."""

from middleware.doors.chat.endpoint import ENDPOINT as CHAT
from middleware.doors.endpoint import Endpoint
from middleware.doors.messages.answers import AnsweredMessage, MessageEvent
from middleware.doors.messages.shapes import MessagesBody
from middleware.doors.messages.words import limits

ENDPOINT = Endpoint(
    path="/v1/messages",
    summary="Answer a conversation, as Anthropic's Messages API does",
    description="For every model of the list. With `stream` the answer comes as named events, of "
    "which `message_stop` is the last; one that broke off ends in `error` instead. Thoughts of "
    "models that sign none are signed by the gateway. What only Claude can take is named in "
    "`x-usetool-warnings` elsewhere, or refused. Keys come as `x-api-key` or `Authorization`.",
    body=MessagesBody,
    example={
        "model": "MODEL",
        "max_tokens": 1024,
        "messages": [{"role": "user", "content": "Hello"}],
    },
    answer=AnsweredMessage,
    event=MessageEvent,
    headers={
        "request-id": "Names this request, as Anthropic's own.",
        **{name: said for name, said in CHAT.headers.items() if "ratelimit" not in name},
        "anthropic-ratelimit-requests-remaining": "The client's limits where it has any, else the "
        "upstream's; others begin `anthropic-ratelimit-` too.",
    },
    reads=("anthropic-beta",),
    limits=limits,
    marks=frozenset(("system", "stop_sequences", "input_schema", "output_config")),
)
