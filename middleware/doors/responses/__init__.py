"""OpenAI's Responses API: body → `ChatRequest`, events → numbered events or one response object.

What clients name instead of sending it (`previous_response_id`, `item_reference`) is found by the
server before a body is read, and joined here: below the door a conversation is always whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapters.errors import GatewayError
from adapters.protocol import Event, RequestContext, value_class
from middleware.doors.door import (
    KeepingDoor,
    KeptAnswer,
    KeptRecord,
    ParsedRequest,
    References,
    Stamp,
    wait_headers,
)
from middleware.doors.recognition import recognize
from middleware.doors.responses.endpoint import ENDPOINT
from middleware.doors.responses.errors import error_body
from middleware.doors.responses.parse import ParsedResponse, parse
from middleware.doors.responses.recognition import RESPONSES_FORM
from middleware.doors.responses.state import Kept, references, unpacked
from middleware.doors.seen import Seen


@value_class
class _Responses:
    kept: Kept = Kept()
    name = "responses"
    endpoint = ENDPOINT
    roots = (ENDPOINT.path, "/v1/conversations")
    unpacked = staticmethod(unpacked)
    error_body = staticmethod(error_body)

    def headers(self, _request_id: str, error: GatewayError | None = None) -> Mapping[str, str]:
        return wait_headers(error)

    def references(self, body: bytes, owner: str) -> References:
        known = recognize(body, self.kept.seen, owner, RESPONSES_FORM)
        return references(body) if known is None else References(known=known)

    def parse(
        self, body: bytes, *, repair: bool, strict: bool, call: RequestContext | None = None
    ) -> ParsedRequest:
        return parse(body, repair=repair, strict=strict, call=call, kept=self.kept)

    def error_status(self, error: GatewayError) -> int:
        return error.status

    def knowing(self, answers: Mapping[str, KeptAnswer] | None, wanted: References) -> KeepingDoor:
        return _Responses(Kept(answers or {}, answers is not None, known=wanted.known))

    def keeps(self, parsed: ParsedRequest) -> bool:
        return isinstance(parsed, ParsedResponse) and parsed.stored

    def record(self, parsed: ParsedRequest, stamp: Stamp, events: Sequence[Event]) -> KeptRecord:
        assert isinstance(parsed, ParsedResponse)
        return parsed.record(stamp, events)


RESPONSES_DOOR: KeepingDoor = _Responses()


def remembering_responses(seen: Seen) -> KeepingDoor:
    """The door of one server, which remembers what was said to it."""
    return _Responses(Kept(seen=seen))


__all__ = ("RESPONSES_DOOR", "remembering_responses")
