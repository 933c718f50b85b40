"""Items that are turns by themselves, and those of which several are one, are read alike, whether
or not they were seen: messages, receipts and refusals are the same.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import Json, RequestContext
from middleware.doors.door import KeepingDoor
from middleware.doors.responses import RESPONSES_DOOR, remembering_responses
from middleware.doors.seen import Seen
from tests.doors.responses.written import call, item, output

CALL = RequestContext(owner="me", secret=b"s")
LONG = "Be brief. " * 120
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}
ELSEWHERE = {"type": "input_image", "file_id": "file_1"}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
ROLES: tuple[Any, ...] = ("assistant", "user", "system", "tool", 5, {})
CASTS = [{**THOUGHT, "role": role, "content": None, "tool_call_id": "a"} for role in ROLES]


def _shown(*parts: Json) -> Json:
    return {"role": "user", "content": [*parts]}


def _spoken(*parts: Json) -> Json:
    return {"role": "assistant", "content": [*parts]}


REFUSED = {"type": "refusal", "refusal": "No."}
ITEMS: list[Json] = [
    *(item("user", "hi"), _shown(PICTURE), _shown(ELSEWHERE)),
    *(item("developer", "now"), item("assistant", "said"), item("assistant", "")),
    *(_spoken(), _spoken(REFUSED), _spoken({"type": "output_text", "text": ""}), THOUGHT),
    *(call("a"), call("b", arguments='{ "x": 1 }'), call("c", arguments="")),
    *(output("a"), output("b"), output("c"), output("a", [PICTURE]), output("b", [ELSEWHERE])),
    *CASTS,
]
REGULAR = [[item("user", "hi")], [call("a"), output("a")], [item("assistant", "said")]]


@st.composite
def _conversations(draw: st.DrawFn) -> list[list[Json]]:
    """Each with what is new in its turn."""
    none: list[Json] = []
    few = st.lists(st.sampled_from(ITEMS), max_size=2)
    many = st.lists(st.sampled_from(REGULAR), max_size=8)
    odd = st.one_of(few, st.just(none))
    turns = draw(st.lists(st.tuples(many, odd), min_size=1, max_size=4))
    return [[*(one for some in regular for one in some), *last] for regular, last in turns]


def _read(door: KeepingDoor, body: bytes, repair: bool) -> Any:
    try:
        wanted = door.references(body, CALL.owner)
        parsed = door.knowing({}, wanted).parse(body, repair=repair, strict=False, call=CALL)
    except BadRequest as error:
        return error.status, error.code, error.param, str(error)
    return parsed.request.messages, parsed.receipt


@given(turns=_conversations(), repair=st.booleans(), instructed=st.booleans())
@settings(max_examples=300, deadline=None)
def test_what_was_seen_is_read_as_what_was_not(
    turns: list[list[Json]], repair: bool, instructed: bool
) -> None:
    door, items = remembering_responses(Seen(least_body=0)), [item("user", LONG)]
    fields = {"model": "m", "instructions": LONG} if instructed else {"model": "m"}
    for new in turns:
        items += new
        body = orjson.dumps({**fields, "input": items})
        whole = _read(RESPONSES_DOOR, body, repair)
        assert [_read(door, body, repair) for _ in range(3)] == [whole] * 3


@pytest.mark.parametrize("cast", CASTS)
def test_a_thought_with_a_role_is_no_message(cast: Json) -> None:
    asked, told = item("user", "hi"), item("user", "go on")
    plain, odd = (
        orjson.dumps({"model": "m", "input": [asked, one, told]}) for one in (THOUGHT, cast)
    )
    assert _read(RESPONSES_DOOR, odd, repair=False) == _read(RESPONSES_DOOR, plain, repair=False)


def test_turns_by_themselves_come_as_the_same_objects() -> None:
    door, items = remembering_responses(Seen(least_body=0)), [item("user", LONG)]
    items += [call("a"), output("a"), item("assistant", "said"), item("user", "go on")]
    seen: list[Json] = []
    for number in range(3):
        body = orjson.dumps({"model": "m", "input": items})
        messages, receipt = _read(door, body, repair=False)
        assert receipt == ()
        assert all(one is other for one, other in zip(seen, messages, strict=False))
        seen = [*messages]
        items += [call(f"b{number}"), output(f"b{number}"), item("user", "go on")]
