"""What of this door is kept between requests, and what of it a request names. Pure.

An answer is kept as one record: its object, the items it was the answer to, and the ids of the
answers before it. `previous_response_id` leads to those, an `item_reference` to the one that its
item's id tells of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

import orjson

from adapters.errors import BadRequest
from adapters.protocol import Json, value_class
from adapters.receipts import Notes
from middleware.doors.door import KeptAnswer, References
from middleware.doors.recognition import RecognizedRequest
from middleware.doors.responses.ids import THOUGHT, input_id, response_of
from middleware.doors.responses.shapes import kind_of
from middleware.doors.seen import Seen

_MOST_BEFORE = 512
"""Answers one conversation may be made of by `previous_response_id`."""
_PREVIOUS = b'"previous_response_id"'
_ITEM = b'"item_reference"'
# Its type may be left out: then an id is all there is. Such a pattern is quick: it begins plainly.
_BARE_ID = re.compile(rb'"id"\s*:\s*"[^"\\]{1,100}"\s*\}')
_RECORD = b"1"
"""Begins a record; another one comes with another form."""


@value_class
class Kept:
    """What was found of what a request names."""

    answers: Mapping[str, KeptAnswer] = field(default_factory=dict)
    keeps: bool = False
    """Whether this one's answer can be kept."""
    seen: Seen | None = None
    """What was read before; None: it is not remembered."""
    known: RecognizedRequest | None = None
    """The request, where most of it was seen: it names nothing."""

    def before(self, previous: str) -> Iterator[tuple[str, Json]]:
        """The items of an answer and of all before it."""
        ids = [*self._of(previous, previous).before, previous]
        for identity in ids:
            answer = self._of(identity, previous)
            for item in (*answer.input, *answer.response["output"]):
                yield "previous_response_id", item

    def ids_before(self, previous: str | None) -> list[str]:
        """Those that an answer to this request keeps."""
        if not previous:
            return []
        ids = [*self._of(previous, previous).before, previous]
        if len(ids) > _MOST_BEFORE:
            raise BadRequest(
                f"More than {_MOST_BEFORE} answers stand before 'previous_response_id'. Send the "
                "conversation's items in 'input' instead.",
                param="previous_response_id",
            )
        return ids

    def _of(self, identity: str, previous: str) -> KeptAnswer:
        if identity not in self.answers:
            lost = "" if identity == previous else f" (the answer '{identity}' before it is gone)"
            raise BadRequest(
                f"Previous response with id '{previous[:80]}' not found{lost}. Send the "
                "conversation's items in 'input', or ask with 'store': true.",
                code="previous_response_not_found",
                param="previous_response_id",
            )
        return self.answers[identity]

    def resolved(self, item: Json, where: str, notes: Notes) -> Json | None:
        """The item that a reference names; None: a thought that is not known any more."""
        if kind_of(item) != "item_reference":
            return item
        wanted = item["id"]
        answer = self.answers.get(response_of(wanted) or "")
        if answer is not None:
            said: list[Json] = [*answer.response["output"], *answer.input]
            for known in said:
                if known.get("id") == wanted:
                    return known
        if wanted.startswith(THOUGHT):
            notes.add("thoughts_lost", "", f"the thought that {where} names is not kept here")
            return None
        raise BadRequest(
            f"Item with id '{wanted[:80]}' not found. Items are kept for answers that were asked "
            "with 'store': true; send the item itself.",
            status=404,
            code="item_not_found",
            param="input",
        )


def references(body: bytes) -> References:
    """What a body names; read only where there may be something."""
    if body.find(_PREVIOUS) < 0 and body.find(_ITEM) < 0 and not _has_bare_id(body):
        return References()
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return References()
    if not isinstance(data, dict):
        return References()
    owners = tuple(dict.fromkeys(_owners(data.get("input"))))
    return References(_text(data, "model"), _text(data, "previous_response_id"), owners)


def _has_bare_id(body: bytes) -> bool:
    return body.find(b'"id"') >= 0 and _BARE_ID.search(body) is not None


def _text(data: Json, name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _owners(items: Any) -> Iterator[str]:
    """The answers whose items are named."""
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and kind_of(item) == "item_reference":
            owner = response_of(str(item.get("id")))
            if owner is not None:
                yield owner


def packed(response: bytes, items: Iterable[bytes], before: list[str]) -> bytes:
    """One record; `response` and `items` are JSON. It may be long, so it is written once."""
    new = b",".join(items)
    return b"".join((_RECORD, b"[", response, b",[", new, b"],", orjson.dumps(before), b"]"))


def unpacked(record: bytes) -> KeptAnswer | None:
    """Undo `packed`; None: what is kept is of another version."""
    if not record.startswith(_RECORD):
        return None
    response, items, before = orjson.loads(record[len(_RECORD) :])
    return KeptAnswer(response, with_ids(items, response["id"]), before)


def with_ids(items: list[Json], response: str) -> list[Json]:
    """Items as they are told: each has a type, and an id of its own."""
    return [_with_id(item, response, at) for at, item in enumerate(items)]


def _with_id(item: Json, response: str, at: int) -> Json:
    kind = kind_of(item)
    identity = item.get("id")
    named = identity if isinstance(identity, str) and identity else input_id(kind, response, at)
    return {**item, "type": kind, "id": named}
