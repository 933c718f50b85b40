"""What every adapter promises, on everything that was recorded of its upstream."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import get_args

import orjson
import pytest
from vcr.errors import CannotOverwriteExistingCassetteException

from adapters.errors import RateLimited, Refused, Unavailable
from adapters.kind import all_kinds
from adapters.protocol import (
    Aside,
    Event,
    Finish,
    FinishReason,
    Json,
    Noted,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from tests.support.cases import CASES, FAILING, NOTE
from tests.support.fold import Answer
from tests.support.paths import ROOT
from tests.support.recordings import (
    FOLDER,
    Parsed,
    Upstream,
    interactions,
    play,
    play_once,
    upstreams,
)

PLAYED = [
    pytest.param(upstream, case, mode, id=f"{upstream.name}-{case}-{'stream' if mode else 'plain'}")
    for upstream in upstreams()
    for case in upstream.cases
    for mode in (False, True)
]
GOOD = [param for param in PLAYED if param.values[1] not in FAILING]
BAD = [param for param in PLAYED if param.values[1] in FAILING]
every_answer = pytest.mark.parametrize(("upstream", "case", "streamed"), GOOD)
every_failure = pytest.mark.parametrize(("upstream", "case", "streamed"), BAD)


def events_of(upstream: Upstream, case: str, streamed: bool) -> list[Event]:
    answer = play(upstream.name, case).in_mode(streamed)
    assert answer.error is None, answer.error
    return [event for batch in answer.batches for event in batch]


def pieces(events: Sequence[Event]) -> Iterator[object]:
    """Everything that must not be empty."""
    for event in events:
        match event:
            case TextDelta(text) | ReasoningDelta(text) | RefusalDelta(text):
                yield text
            case ToolCallDelta(_, arguments):
                yield arguments
            case Aside(_, value):
                yield value
            case ToolCallStart(_, identity, name):
                yield identity
                yield name
            case Noted(receipt):
                yield receipt


def test_every_case_of_the_list_is_recorded_for_every_upstream() -> None:
    """Of ours; who asks no server, or has no tools of its own, has nothing to record."""
    recorded = {
        kind.name
        for kind in all_kinds()
        if kind.connect and kind.needs_address and kind.native_tools is not False
        if (ROOT / "adapters" / kind.name).is_dir()
    }
    assert {upstream.name for upstream in upstreams()} == recorded
    for upstream in upstreams():
        assert upstream.cases == sorted(CASES), upstream.name


@every_answer
def test_an_answer_opens_once_and_first(upstream: Upstream, case: str, streamed: bool) -> None:
    kinds = [type(event) for event in events_of(upstream, case, streamed)]
    assert (kinds[0], kinds.count(Opened)) == (Opened, 1)
    assert kinds[1] is not Noted, "the gate opens with something real"


@every_answer
def test_an_answer_finishes_once_and_last(upstream: Upstream, case: str, streamed: bool) -> None:
    events = events_of(upstream, case, streamed)
    assert [type(event) for event in events].count(Finish) == 1
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert finish.reason in get_args(FinishReason)
    assert finish.native, "the upstream's own word is kept"
    assert finish.usage is not None
    assert min(finish.usage.prompt, finish.usage.completion) > 0


@every_answer
def test_no_batch_and_no_piece_is_empty(upstream: Upstream, case: str, streamed: bool) -> None:
    assert all(pieces(events_of(upstream, case, streamed)))
    assert all(play(upstream.name, case).in_mode(streamed).batches)


@every_answer
def test_calls_come_one_after_the_other(upstream: Upstream, case: str, streamed: bool) -> None:
    started = -1
    for event in events_of(upstream, case, streamed):
        if isinstance(event, ToolCallStart):
            started += 1
            assert event.index == started
            assert re.fullmatch(r"[a-zA-Z0-9_-]{4,64}", event.id)
        elif isinstance(event, ToolCallDelta):
            assert event.index == started


@every_answer
def test_arguments_are_an_object(upstream: Upstream, case: str, streamed: bool) -> None:
    answer = play(upstream.name, case).in_mode(streamed)
    assert all(isinstance(json.loads(arguments), dict) for *_, arguments in answer.calls)
    assert len({identity for identity, *_ in answer.calls}) == len(answer.calls)
    assert (answer.reason == "tool_calls") == bool(answer.calls)


@pytest.mark.parametrize("upstream", upstreams(), ids=lambda upstream: upstream.name)
@pytest.mark.parametrize("case", [case for case in CASES if case not in FAILING])
def test_a_stream_folds_to_the_plain_answer(upstream: Upstream, case: str) -> None:
    played = play(upstream.name, case)
    assert said(played.streamed) == said(played.plain)


def said(answer: Answer) -> tuple[object, ...]:
    """What an answer says; ids and who answered may differ from one asking to the next."""
    calls = [(name, kind, json.loads(arguments)) for _, name, kind, arguments in answer.calls]
    return (
        *(answer.text, answer.reasoning, answer.refusal, calls, answer.asides, answer.logprobs),
        *(answer.reason, answer.native, answer.usage, answer.turn, answer.notes),
    )


WEATHER = ("get_weather", {"city": "沈阳"})
SAID = {
    "text": ("你好, 沈阳! It's -12°C 🌨️ today.", []),
    "one_call": ("", [WEATHER]),
    "parallel_calls": ("", [WEATHER, ("get_weather", {"city": "Oslo"})]),
    "text_before_call": ("Let me check.", [WEATHER]),
    "tool_result_turn": ("RESULT get_weather=-12°C, 🌨️", []),
    "reasoning": ("Because of the continental climate.", []),
    "reasoning_call": ("", [WEATHER]),
    "no_argument_call": ("", [("get_time", {})]),
    "long_arguments": ("", [("save_note", NOTE)]),
}  # fmt: skip


@every_answer
def test_the_answer_is_what_the_upstream_said(
    upstream: Upstream, case: str, streamed: bool
) -> None:
    answer = play(upstream.name, case).in_mode(streamed)
    calls = [(name, json.loads(arguments)) for _, name, _, arguments in answer.calls]
    if case == "structured_output":
        assert json.loads(answer.text) == {"city": "沈阳", "degrees": -12}
    else:
        assert (answer.text, calls) == SAID[case]
    assert bool(answer.reasoning) == case.startswith("reasoning")


@every_failure
def test_a_failure_has_its_class_and_opens_nothing(
    upstream: Upstream, case: str, streamed: bool
) -> None:
    answer = play(upstream.name, case).in_mode(streamed)
    kind, status = {
        "bad_request": (Refused, 400),
        "rate_limited": (RateLimited, 429),
        "overloaded": (Unavailable, 503),
    }[case]
    assert answer.batches == []
    assert type(answer.error) is kind
    assert answer.error.status == status
    assert "scripted failure" in answer.error.message
    (*_, recorded) = interactions(upstream.path(case))
    assert answer.error.retry_after == recorded.headers.get("retry-after")


@pytest.mark.parametrize(("upstream", "case", "streamed"), PLAYED)
def test_a_request_is_never_changed(upstream: Upstream, case: str, streamed: bool) -> None:
    adapter = upstream.connect(upstream.link())
    request = upstream.request(case, streamed)
    before = copy.deepcopy(request)
    (planned,) = adapter.plan(request)
    (again,) = adapter.plan(request)
    assert request == before
    assert orjson.dumps(planned.body) == orjson.dumps(again.body)


# The cassettes themselves ----------------------------------------------------------------------


def test_cassettes_hold_no_secret_and_no_address() -> None:
    for path in FOLDER.glob("*/*.yaml"):
        text = path.read_text()
        assert not re.search(r"authorization|x-api-key|cookie|127\.0\.0\.1|localhost|date:", text)


def test_a_cassette_comes_back_byte_for_byte() -> None:
    for path in FOLDER.glob("*/*.yaml"):
        text = path.read_text()
        cassette = Parsed.deserialize(text)
        bodies = [found["response"]["body"]["string"] for found in cassette["interactions"]]
        assert Parsed.serialize(cassette) == text
        again = Parsed.deserialize(text)["interactions"]
        assert [found["response"]["body"]["string"] for found in again] == bodies


def tampered(folder: Path, upstream: Upstream, change: Callable[[list[Json]], object]) -> Path:
    cassette = Parsed.deserialize(upstream.path("one_call").read_text())
    change(cassette["interactions"])
    path = folder / "one_call.yaml"
    path.write_text(Parsed.serialize(cassette))
    return path


@pytest.mark.parametrize("upstream", upstreams(), ids=lambda upstream: upstream.name)
def test_a_cassette_played_in_part_is_a_failure(upstream: Upstream, tmp_path: Path) -> None:
    longer = tampered(tmp_path, upstream, lambda found: found.append(copy.deepcopy(found[-1])))
    with pytest.raises(AssertionError, match="only in part"):
        play_once(upstream, "one_call", longer)


@pytest.mark.parametrize("upstream", upstreams(), ids=lambda upstream: upstream.name)
def test_sending_something_else_than_was_recorded_is_a_failure(
    upstream: Upstream, tmp_path: Path
) -> None:
    def change(found: list[Json]) -> None:
        request = found[-1]["request"]
        request["body"] = request["body"].replace("How cold", "How warm")

    path = tampered(tmp_path, upstream, change)
    with pytest.raises(CannotOverwriteExistingCassetteException, match="is not what was recorded"):
        play_once(upstream, "one_call", path)
