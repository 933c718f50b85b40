"""This door as `/openapi.json` describes it."""

from middleware.doors.chat.endpoint import ENDPOINT as CHAT
from middleware.doors.endpoint import Endpoint
from middleware.doors.responses.answers import ResponseEvent, ResponseObject
from middleware.doors.responses.shapes import ResponsesBody

ENDPOINT = Endpoint(
    path="/v1/responses",
    summary="Answer in OpenAI's Responses API",
    description="As OpenAI's own, for every model of the list; `docs/responses.md` says what is "
    "kept and what is left out. With `stream` the answer comes as numbered events, of which "
    "`response.completed`, `response.incomplete` or `response.failed` is the last. Answers are "
    "kept for `previous_response_id` unless `store` is false.",
    body=ResponsesBody,
    example={"model": "MODEL", "input": "Hello"},
    answer=ResponseObject,
    event=ResponseEvent,
    headers=CHAT.headers,
    marks=frozenset(("input", "instructions", "previous_response_id")),
)
