"""The embedded model's own process: it dies alone and is replaced."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

import pytest

from adapters.errors import Busy, Refused, Unavailable, UpstreamError
from middleware.server.transport.serving import tell_of_work
from tests.adapters.local.machine import Machine, gone, until
from tests.support.fold import run

# Its script kills itself, the errors name the signal, and `ps` says which processes are left.
# What is not of signals is tested everywhere, in test_local.py.
pytestmark = pytest.mark.skipif(  # Windows has no signals that end a process, and no `ps`
    sys.platform == "win32", reason="its script ends by signals"
)


# It dies alone ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("do", "said"), [("die", "Hel"), ("die at once", "")])
def test_a_process_that_dies_is_an_error_and_the_next_request_works(
    machine: Machine, do: str, said: str
) -> None:
    async def scenario() -> None:
        answer = await machine.says(do)
        assert (answer.text, answer.reason) == (said, "")
        assert isinstance(answer.error, Unavailable)
        assert (answer.error.status, answer.error.code) == (503, "model_unavailable")
        assert answer.error.again == "elsewhere"  # the same request would do it again
        assert "SIGKILL" in answer.error.message
        assert "next request starts it again" in answer.error.message
        assert (await machine.says()).text == "Hello"

    run(scenario())


def test_who_waits_behind_a_request_that_ends_the_process_is_answered(machine: Machine) -> None:
    async def scenario() -> None:
        asked = ("die at once", "answer", "die", "answer")
        answers = await asyncio.gather(*[machine.says(do) for do in asked])
        assert [answer.text for answer in answers] == ["", "Hello", "Hel", "Hello"]
        assert len(machine.children) == 3

    run(scenario())


def test_a_process_that_was_killed_while_nobody_asked_is_replaced_unsaid(machine: Machine) -> None:
    async def scenario() -> None:
        await machine.says()
        (child,) = machine.children
        os.kill(child.pid, signal.SIGKILL)
        assert until(lambda: gone(child.pid))
        answer = await machine.says()
        assert (answer.text, answer.error) == ("Hello", None)

    run(scenario())


def test_a_process_that_dies_again_and_again_rests_and_says_why(machine: Machine) -> None:
    async def scenario() -> None:
        for _ in range(4):
            assert isinstance((await machine.says("die")).error, Unavailable)
        error = (await machine.says()).error
        assert isinstance(error, Busy)
        assert error.retry_after in {"1", "2"}
        assert "SIGKILL" in error.message
        assert len(machine.children) == 4
        await asyncio.sleep(2)
        assert (await machine.says()).text == "Hello"

    run(scenario())


def test_an_answer_between_them_ends_the_count(machine: Machine) -> None:
    async def scenario() -> None:
        for _ in range(4):
            await machine.says("die at once")
            assert (await machine.says()).text == "Hello"

    run(scenario())


@pytest.mark.parametrize(
    ("loading", "kind", "words"),
    [
        ("broken", UpstreamError, "no such architecture"),
        ("deadly", Unavailable, "while it was load"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_said_to_be_one(
    tmp_path: Path, loading: str, kind: type[UpstreamError], words: str
) -> None:
    error = run(Machine(tmp_path, loading).says()).error
    assert isinstance(error, kind)
    assert words in error.message


def test_a_file_that_is_gone_when_it_is_asked_is_named(machine: Machine) -> None:
    Path(machine.model.path).unlink()
    error = run(machine.says()).error
    assert isinstance(error, UpstreamError)
    assert "small.gguf cannot be loaded: No such file" in error.message


def test_what_the_runtime_raises_is_a_refusal_and_the_process_stays(machine: Machine) -> None:
    async def scenario() -> None:
        error = (await machine.says("refuse")).error
        assert isinstance(error, Refused)
        assert "image input is not supported" in error.message
        assert (await machine.says()).text == "Hello"
        assert len(machine.children) == 1

    run(scenario())


def test_what_a_library_prints_is_no_part_of_an_answer(machine: Machine) -> None:
    assert run(machine.says("print")).text == "Hello"


def test_a_process_that_says_nothing_for_long_is_ended_for_those_who_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        machine = Machine(tmp_path, silent=1)
        stuck, behind = await asyncio.gather(machine.says("hang"), machine.says())
        assert isinstance(stuck.error, Unavailable)
        assert "said nothing for 1 seconds and was ended" in stuck.error.message
        assert behind.text == "Hello"

    run(scenario())


def test_what_is_under_way_is_told(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        with caplog.at_level(logging.INFO, "usetool"):
            await machine.says()
            await machine.says("die")

    run(scenario())
    loading, loaded, died = caplog.messages
    assert loading == "loading small.gguf (0 MB) ..."
    assert loaded.startswith("small.gguf is loaded (")
    assert died.endswith("ended while it answered this request (signal SIGKILL)")


def test_a_server_tells_it_on_its_log_as_loud_as_its_level(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = logging.getLogger("usetool")
    try:
        tell_of_work("info")
        tell_of_work("info")  # told once all the same
        told.getChild("local").info("loading a model")
        tell_of_work("warning")
        told.getChild("local").info("loading another")
    finally:
        told.handlers.clear()
        told.setLevel(logging.NOTSET)
    assert capsys.readouterr().err == "loading a model\n"


def test_its_file_is_named_where_models_are_listed(machine: Machine) -> None:
    assert machine.local.described == "Local (small)"
