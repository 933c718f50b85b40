"""Of a body that was seen nothing is looked for, and its answers and records are what they were."""

from __future__ import annotations

import json
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import pytest

from adapters.protocol import Event, Finish, Json, ReasoningDelta, RequestContext, TextDelta, Usage
from middleware.doors.door import KeepingDoor, ParsedRequest, References
from middleware.doors.responses import RESPONSES_DOOR, remembering_responses
from middleware.doors.seen import Seen
from tests.doors.responses.written import OPENED, STAMP, call, item, output

CALL = RequestContext(owner="me", secret=b"s")
EVENTS: tuple[Event, ...] = (
    *(OPENED, ReasoningDelta("hm"), TextDelta("Yes"), TextDelta("."), Finish("stop", Usage(1, 2))),
)
TOOLS = [{"type": "function", "name": "look", "description": "Looks. " * 90}]
FIELDS: Json = {"instructions": "Be brief.", "tools": TOOLS, "metadata": {"a": "é"}, "top_p": 0.5}


def body(items: Sequence[Json], **more: Any) -> bytes:
    # As most clients write it: with spaces, which the record of an answer keeps.
    return json.dumps({"model": "m", **FIELDS, "input": items, **more}).encode()


def talk(rounds: int) -> list[Json]:
    items = [item("user", "Begin. " * 100)]
    for number in range(rounds):
        name = f"call_{number}"
        items += [call(name, arguments='{"a": 1}'), output(name), item("user", "Go on.")]
    return items


def parsed(door: KeepingDoor, sent: bytes, owner: str = "me") -> ParsedRequest:
    """As the server has it read."""
    wanted = door.references(sent, owner)
    return door.knowing({}, wanted).parse(sent, repair=False, strict=False, call=CALL)


@pytest.mark.parametrize("more", [{}, {"store": False}, {"tools": []}, {"reasoning": None}])
def test_what_is_told_and_kept_is_the_same(more: Json) -> None:
    door = remembering_responses(Seen())
    for rounds in (1, 3, 3, 4):
        sent = body(talk(rounds), **more)
        known, whole = parsed(door, sent), parsed(RESPONSES_DOOR, sent)
        assert known.fold(STAMP, EVENTS) == whole.fold(STAMP, EVENTS)
        assert known.stream(STAMP).render(EVENTS) == whole.stream(STAMP).render(EVENTS)
        assert door.keeps(known) is RESPONSES_DOOR.keeps(whole) is (more.get("store") is not False)
        records = [door.record(one, STAMP, EVENTS).value for one in (known, whole)]
        assert door.unpacked(records[0]) == door.unpacked(records[1])


def test_items_that_were_kept_have_a_type_and_an_id() -> None:
    door, sent = remembering_responses(Seen()), body(talk(2))
    kept = door.unpacked(door.record(parsed(door, sent), STAMP, EVENTS).value)
    assert kept is not None
    assert all(one["id"] and one["type"] for one in kept.input)
    assert len({one["id"] for one in kept.input}) == len(kept.input)
    assert [one["arguments"] for one in kept.input if "arguments" in one] == ['{"a": 1}'] * 2


@pytest.mark.parametrize(
    ("more", "last", "wanted"),
    [
        ({"previous_response_id": "resp_1"}, [], References("m", "resp_1")),
        ({}, [{"type": "item_reference", "id": f"msg_{'a' * 24}0000"}], "item_reference"),
        ({}, [{"id": f"rs_{'a' * 24}0000"}], "bare"),
    ],
)
def test_what_a_body_names_is_found_however_much_of_it_was_seen(
    more: Json, last: list[Json], wanted: References | str
) -> None:
    door = remembering_responses(Seen())
    parsed(door, body(talk(3)))
    found = door.references(body([*talk(3), *last], **more), "me")
    named = References("m", others=("resp_" + "a" * 24,))
    assert found == (wanted if isinstance(wanted, References) else named)


def test_a_body_that_was_seen_names_nothing_and_is_held_no_longer() -> None:
    door, sent = remembering_responses(Seen()), body(talk(3))
    held = getrefcount(sent)
    wanted = door.references(sent, "me")
    assert (wanted.previous, wanted.others) == ("", ())
    assert wanted.known is not None
    answering = door.knowing(None, wanted)
    request = answering.parse(sent, repair=False, strict=False, call=CALL)
    assert getrefcount(sent) == held, request
