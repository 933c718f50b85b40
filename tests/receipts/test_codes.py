"""Every code of a receipt has a sentence for users, and says who says it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, get_args

import pytest

from adapters.receipts import (
    CHANGED,
    LEFT_OUT,
    TOLD,
    Changed,
    Code,
    LeftOut,
    Note,
    Notes,
    OwnCode,
    Told,
)
from tests.receipts.sending import every_upstream, send
from tests.receipts.test_details import BARE, DETAILS
from tests.support.paths import ROOT
from tests.support.recordings import Upstream

SENTENCES: Mapping[Any, str] = {**LEFT_OUT, **CHANGED, **TOLD}
# Who says it, and where: of the packages that several share, users are told in other words.
PLACES: Mapping[str, str] = {
    "claude": "adapters/claude",
    "compatible": "adapters/compatible",
    "deepseek": "adapters/deepseek",
    "ollama": "adapters/ollama",
    "emulation": "middleware/wrappers/emulation",
    "server tools": "middleware/wrappers/server_tools",
    "ledger": "middleware/accounts",
    "pipeline": "middleware/wrappers/pipeline",
    "recall": "middleware/wrappers/recall",
    "route": "middleware/wrappers/route.py",
    "show": "middleware/wrappers/show.py",
}
SHARED = frozenset({"all upstreams", "door"})


def said_in(place: str) -> str:
    path = ROOT / place
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return "\n".join(file.read_text("utf-8") for file in files)


@pytest.mark.parametrize(
    ("declared", "sentences"), [(LeftOut, LEFT_OUT), (Changed, CHANGED), (Told, TOLD)]
)
def test_every_code_has_a_sentence_and_stands_in_order(
    declared: Any, sentences: Mapping[str, str]
) -> None:
    assert list(get_args(declared)) == list(sentences) == sorted(sentences)


def test_no_code_stands_twice() -> None:
    assert len(SENTENCES) == len(LEFT_OUT) + len(CHANGED) + len(TOLD)


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_says_who_and_what(code: str) -> None:
    who, _, what = SENTENCES[code].partition(": ")
    assert what.endswith((".", ")"))
    assert {*who.lower().split(", ")} <= PLACES.keys() | SHARED


@pytest.mark.parametrize("who", PLACES)
def test_whoever_says_a_code_is_named(who: str) -> None:
    source = said_in(PLACES[who])
    for code, sentence in SENTENCES.items():
        named = {*sentence.partition(":")[0].lower().split(", ")}
        if f'"{code}"' in source and code != "refusal":  # a word of many other meanings
            assert named & {who, "all upstreams"}, (who, code)
        elif who in named:
            assert f'"{code}"' in said_in("adapters/shared") + source, (who, code)


def test_notes_stand_in_the_order_they_were_made_in() -> None:
    notes, own = Notes(), OwnCode("feathers_lost")
    notes.add("parts_joined", "messages[0]", "a")
    notes.add_all((Note(own, "feathers", "b"),))
    notes.add(own, "feathers", "b")
    codes: list[Code] = [note.code for note in notes.receipt()]
    assert codes == ["parts_joined", "feathers_lost", "feathers_lost"]


@every_upstream
def test_strict_refuses_what_the_list_says_it_refuses(upstream: Upstream) -> None:
    """It refuses notes about a field of the request; what is only told is never among them."""
    adapter = upstream.connect(upstream.link())
    for change in DETAILS.values():
        body = {"model": upstream.model, **copy.deepcopy(BARE), "temperature": 0.3, "top_k": 5}
        body["thinking"] = {"type": "enabled"}
        change(body)
        refused = {note.code for note in send(adapter, body).notes if note.field}
        assert not refused & TOLD.keys()
