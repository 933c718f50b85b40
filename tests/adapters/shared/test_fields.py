"""What nobody took is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.receipts import Note, OwnCode
from adapters.shared.fields import Fields

PARAMS = st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.integers(0, 3) | st.text())
NAMES = st.sets(st.sampled_from("abcdefgh"))


@given(PARAMS, NAMES, NAMES)
def test_every_field_is_taken_or_named_exactly_once(
    params: dict[str, object], taken: set[str], lost: set[str]
) -> None:
    before = dict(params)
    fields = Fields(params)
    carried = {name: fields.take(name) for name in sorted(taken)}
    for name in sorted(lost):
        fields.lose(name, "because")
    noted = [note.field for note in fields.receipt("It")]
    sent = {name for name, value in params.items() if value is not None}
    assert sorted(noted) == sorted(sent - taken)
    assert all(carried[name] == params.get(name) for name in taken)
    assert params == before


def test_a_false_value_counts_as_sent() -> None:
    fields = Fields({"a": False, "b": 0, "c": "", "d": [], "e": None})
    assert (fields.take("a"), fields.take("b")) == (False, 0)
    assert [note.field for note in fields.receipt("It")] == ["c", "d"]


def test_a_note_says_what_why_and_who() -> None:
    fields = Fields({"seed": 1, "top_k": 2})
    fields.lose("seed", "no such thing", code=OwnCode("seed_dropped"))
    fields.notes.add_all((Note(OwnCode("x"), "y", "z"),))
    assert fields.receipt("Acme") == (
        Note(OwnCode("seed_dropped"), "seed", "no such thing"),
        Note(OwnCode("x"), "y", "z"),
        Note("parameter_dropped", "top_k", "Acme has nothing like it"),
    )


def test_what_is_refused_is_refused_only_if_sent() -> None:
    Fields({"audio": None}).refuse("audio", "Leave it out.")
    with pytest.raises(BadRequest) as caught:
        Fields({"audio": {}}).refuse("audio", "Leave it out.")
    error = caught.value
    assert (error.status, error.code, error.param, error.message) == (
        400,
        "unsupported_parameter",
        "audio",
        "Leave it out.",
    )


def test_names_may_come_one_by_one_and_are_looked_for_without_being_taken() -> None:
    fields = Fields({"seed": 1, "min_p": 0, "n": None})
    assert fields.left == {"seed": 1, "min_p": 0}
    assert fields.take_all(name for name in ("min_p", "seed")) == {"min_p": 0, "seed": 1}
    assert fields.left == {}
