"""Everything this project recorded of its upstreams: recorded by the gateway, and played again."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import orjson
import pytest

from adapters.protocol import Json
from tests.cassette.core.desk import REPLAYED, cassette, folded, same_writes, streamed, whole_desk
from tests.support.cases import CASES, FAILING, REASONING
from tests.support.door import Heard
from tests.support.recordings import Upstream, upstreams
from tests.support.served import recorded, stanza
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

NAMES: Mapping[bool, str] = {False: "plain", True: "streamed"}
"""The cassette of each way of asking."""
Question = tuple[str, str, bool]
"""Upstream, case, streamed."""
Answers = Mapping[Question, Heard]
_STEP = 37
"""Bytes of a chunk: most events are cut somewhere."""


def body_of(upstream: Upstream, case: str) -> Json:
    """What a client asks for a case."""
    thinks = case in REASONING
    asked = copy.deepcopy(
        {**CASES[case], **(upstream.reasoning.get("params", {}) if thinks else {})}
    )
    prompt = asked["messages"][0]
    prompt["content"] = prompt["content"].replace("{overload}", str(upstream.overload))
    return {"model": f"{upstream.name}{'-reasoning' * thinks}", **asked}


BODIES: Mapping[Question, Json] = {
    (upstream.name, case, mode): streamed(body) if mode else body
    for upstream in upstreams()
    for case in upstream.cases
    for body in [body_of(upstream, case)]
    for mode in (False, True)
}


def dribbles(upstream: Upstream) -> Behaviour:
    """Say what was said once, streams in small chunks."""

    async def behave(peer: Peer) -> None:
        while True:
            head, body = await peer.request()
            sorted_body = orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)
            found = recorded(upstream)[head.split(" ")[1], sorted_body]
            headers = [f"{name}: {value}" for name, value in found.headers.items()]
            await peer.start(*headers, status=f"{found.status} As Recorded")
            for at in range(0, len(found.body), _STEP):
                await peer.chunk(found.body[at : at + _STEP])
            await peer.chunk(b"")

    return behave


async def _live(folder: Path) -> Answers:
    """Record every case, in both ways, each way into a cassette of its own."""
    async with AsyncExitStack() as stack:
        stanzas = []
        for upstream in upstreams():
            peer = await stack.enter_async_context(loopback(dribbles(upstream)))
            stanzas.append(stanza(upstream, peer.url))
        recording = whole_desk(folder, "\n".join(stanzas), "record")
        gateway = await stack.enter_async_context(recording)
        answers = {key: await gateway.ask(body, NAMES[key[2]]) for key, body in BODIES.items()}
        assert {one.problem for one in gateway.finish()} == {""}
        return answers


async def _played(folder: Path, questions: Iterable[Question], crossed: bool = False) -> Answers:
    """Ask the cassettes alone; `crossed`: plainly what was recorded streamed, and the reverse."""
    answers = {}
    async with whole_desk(folder, REPLAYED, "replay") as gateway:
        for upstream, case, mode in questions:
            body = BODIES[upstream, case, mode is not crossed]
            answers[upstream, case, mode] = await gateway.ask(body, NAMES[mode])
    return answers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cassettes")


@pytest.fixture(scope="module")
def live(folder: Path) -> Answers:
    return asyncio.run(_live(folder))


@pytest.fixture(scope="module")
def played(folder: Path, live: Answers) -> Answers:
    return asyncio.run(_played(folder, live))


def told(heard: Heard) -> dict[str, str]:
    """The headers that are of the answer, not of this one telling."""
    volatile = ("x-request-id", "x-upstream-request-id", "x-usetool-replay")
    return {name: value for name, value in heard.headers.items() if name not in volatile}


def test_a_recording_answers_to_the_byte_and_in_the_same_writes(
    live: Answers, played: Answers
) -> None:
    assert len(live) == 2 * len(upstreams()) * len(CASES)
    for question, heard in live.items():
        again = played[question]
        assert again.status == heard.status, question
        assert same_writes(again, heard), question
        assert told(again) == told(heard), question
        assert (heard.status == 200) is (question[1] not in FAILING), question


def test_each_answer_names_the_turn_it_is_from(folder: Path, played: Answers) -> None:
    for mode, name in NAMES.items():
        of = len(cassette(folder, name).turns)
        own = [heard for question, heard in played.items() if question[2] is mode]
        labels = [heard.headers["x-usetool-replay"] for heard in own]
        assert labels == [f"{name} turn={turn} of={of}" for turn in range(1, of + 1)]


def test_most_streams_were_cut_within_events(folder: Path, live: Answers) -> None:
    exchanges = [one for turn in cassette(folder, "streamed").turns for one in turn.exchanges]
    assert sum(len(one.pieces) > 5 for one in exchanges) > len(exchanges) / 2


def test_what_was_recorded_streamed_is_played_plainly_and_the_reverse(
    folder: Path, live: Answers
) -> None:
    crossed = asyncio.run(_played(folder, live, crossed=True))
    for (upstream, case, mode), heard in live.items():
        again = folded(crossed[upstream, case, mode])
        assert again == folded(heard), (upstream, case, mode)


def test_the_order_of_asks_changes_no_answer(folder: Path, played: Answers) -> None:
    shuffled = random.Random(4).sample(list(played), len(played))
    again = asyncio.run(_played(folder, shuffled))
    for question, heard in played.items():
        assert again[question].sent[1:] == heard.sent[1:], question


def test_small_questions_are_kept_of_upstreams_that_are_asked_some(
    folder: Path, live: Answers
) -> None:
    facts = cassette(folder, "plain").facts
    assert {fact["path"] for fact in facts} == {"/api/show"}
