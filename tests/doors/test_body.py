"""What doors share of a body's reading."""

from __future__ import annotations

from dataclasses import fields

from adapters.protocol import RequestContext
from middleware.doors.body import asked_so


def test_how_an_answer_is_wanted_changes_nothing_else_of_who_asked() -> None:
    said = {field.name: object() for field in fields(RequestContext)}
    call = RequestContext(**said)  # type: ignore[arg-type]
    found = asked_so(call, True, 2)
    assert {name: getattr(found, name) for name in said} == {
        **said,
        "streamed": True,
        "most_calls": 2,
    }
