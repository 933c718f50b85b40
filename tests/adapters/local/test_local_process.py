"""The embedded model's own process: it dies alone, stops when told, goes with the gateway."""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.errors import BadRequest, Busy, Refused, Unavailable, UpstreamError
from adapters.local import Engine, Local, Model, Server
from adapters.local.child import Child
from adapters.local.keeper import Keeper
from adapters.local.worker import CHUNK, END, MOST, Frame, read, write
from adapters.protocol import ChatRequest, TextDelta
from adapters.wire.http import Link, Transport
from middleware.server.transport.serving import tell_of_work
from tests.support.day_one import running
from tests.support.dialogue import user
from tests.support.paths import ROOT
from tests.support.upstreams.tape import Answer, fold, run

SCRIPT = ROOT / "tests/support/upstreams/llama_script.py"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its script ends by signals")


def ask(do: str = "answer") -> ChatRequest:
    return ChatRequest("local", (user(do),))


class Machine:
    """A local model whose process does as it is told; its processes are kept."""

    def __init__(self, folder: Path, loading: str = "", silent: float = 60) -> None:
        file = folder / "small.gguf"
        file.write_text(loading, "utf-8")
        self.model = Model(str(file))
        self.children: list[Child] = []
        keeper = Keeper(self.model, self._start, silent)
        link = Link("local", "", Transport())
        self.local = Local(link, self.model, Engine(lambda: Server(keeper.answer)))

    def _start(self, command: Sequence[str]) -> Child:
        python, *_, parent, said = command
        self.children.append(Child((python, "-P", str(SCRIPT), parent, said)))
        return self.children[-1]

    async def says(self, do: str = "answer") -> Answer:
        return await fold(self.local.stream(ask(do)))

    async def leaves(self, do: str, after: float) -> None:
        """Ask, and close the connection a moment later."""
        asked = asyncio.create_task(self.says(do))
        await asyncio.sleep(after)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def gone(pid: int) -> bool:
    """Whether a process has ended, even if nobody has asked how."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return not state.strip() or state.startswith("Z")


def until(reached: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not reached() and time.monotonic() < end:
        time.sleep(0.02)
    return reached()


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


# It stops when nobody listens -------------------------------------------------------------------


def test_who_leaves_ends_the_answer_and_the_process_stays(machine: Machine) -> None:
    async def scenario() -> None:
        async with aclosing(machine.local.stream(ask("go on"))) as events:
            assert isinstance((await anext(events))[-1], TextDelta)
        assert (await machine.says()).text == "Hello"
        assert len(machine.children) == 1  # it stopped within the second it has

    run(scenario())


def test_a_process_that_does_not_stop_is_ended_when_somebody_waits(machine: Machine) -> None:
    async def scenario() -> None:
        await machine.says()
        await machine.leaves("hang", 0.2)
        assert machine.children[0].alive
        began = time.monotonic()
        answer = await machine.says()
        assert (answer.text, answer.error) == ("Hello", None)
        assert time.monotonic() - began < 5
        assert not machine.children[0].alive

    run(scenario())


def test_who_leaves_while_it_loads_does_not_make_it_load_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        machine = Machine(tmp_path, "slow")
        await machine.leaves("answer", 0.1)
        assert (await machine.says()).text == "Hello"
        assert len(machine.children) == 1

    run(scenario())


# It goes with the gateway -----------------------------------------------------------------------

GATEWAY = """
import sys, threading, time
from pathlib import Path
from tests.adapters.local.test_local_process import Machine, ask
from tests.support.upstreams.tape import fold, run
machine = Machine(Path(sys.argv[1]))
threading.Thread(target=lambda: run(machine.says(sys.argv[2])), daemon=True).start()
while not machine.children:
    time.sleep(0.01)
time.sleep(0.3)
print(machine.children[0].pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("do", ["go on", "hang"])
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_a_gateway_that_is_killed_leaves_no_process(
    tmp_path: Path, by: signal.Signals, do: str
) -> None:
    if do == "hang" and sys.platform != "linux":
        pytest.skip("only Linux ends a process whose interpreter is held")
    with subprocess.Popen(
        [sys.executable, "-c", GATEWAY, str(tmp_path), do],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as gateway:
        assert gateway.stdout is not None
        pid = int(gateway.stdout.readline())
        assert not gone(pid)
        gateway.send_signal(by)
        gateway.wait(10)
    assert until(lambda: gone(pid))


def test_signals_of_the_terminal_do_not_reach_it(machine: Machine) -> None:
    run(machine.says())
    (child,) = machine.children
    assert os.getsid(child.pid) == child.pid
    os.kill(child.pid, signal.SIGINT)
    assert run(machine.says()).text == "Hello"
    assert len(machine.children) == 1


def test_it_goes_when_nobody_holds_it_any_more(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    run(machine.says())
    pid = machine.children[0].pid
    del machine
    # Its thread lets go of the last question a moment later.
    assert until(lambda: gc.collect() >= 0 and gone(pid))


# What is sent between ---------------------------------------------------------------------------


class Pieces(io.RawIOBase):
    """A pipe that takes a few bytes at a time."""

    def __init__(self) -> None:
        self.taken = bytearray()

    def write(self, data: Any) -> int:
        self.taken += bytes(data[:3])
        return min(3, len(data))


def test_frames_are_read_as_they_were_written_and_end_where_they_are_broken() -> None:
    pipe = Pieces()
    write(pipe, CHUNK, b"hello")
    write(pipe, END)
    source = io.BytesIO(pipe.taken)
    assert [read(source), read(source), read(source)] == [(CHUNK, b"hello"), (END, b""), None]
    assert read(io.BytesIO(bytes(pipe.taken[:7]))) is None
    assert read(io.BytesIO(CHUNK + (MOST + 1).to_bytes(4, "big") + b"x")) is None
    assert Frame(END, b"") == (END, b"")


# What it is given to compile --------------------------------------------------------------------


def nested(depth: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


def grammars() -> Iterator[dict[str, Any]]:
    yield {"grammar": "root ::= " + "(" * 30_000 + '"a"' + ")" * 30_000}
    yield {"grammar": "root ::= " + "[(" * 201}
    yield {"grammar": "%llguidance {}\nstart: a\na: %json " + "[" * 201}
    yield {"grammar": 'root ::= "' + "a" * (256 << 10) + '"'}
    yield {"json_schema": nested(201)}
    yield {"json_schema": nested(600)}
    yield {"json_schema": {"enum": ["x" * (256 << 10)]}}
    yield {"chat_template_kwargs": {"a": nested(300)}}


@pytest.mark.parametrize("extra", list(grammars()))
def test_what_would_overflow_its_parsers_is_refused(
    machine: Machine, extra: dict[str, Any]
) -> None:
    with pytest.raises(BadRequest, match="for the embedded model") as raised:
        machine.local.plan(replace(ask(), extra=extra))
    assert raised.value.param in extra
    assert not machine.children


def test_a_response_format_and_tools_are_bounded_too(machine: Machine) -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "a", "schema": nested(201)}}
    with pytest.raises(BadRequest, match="'response_format' nests too deep"):
        machine.local.plan(replace(ask(), params={"response_format": shape}))
    tool = {"type": "function", "function": {"name": "a", "parameters": nested(201)}}
    with pytest.raises(BadRequest, match="'tools' nests too deep"):
        machine.local.plan(replace(ask(), tools=(tool,)))


def test_what_applications_send_is_within_the_bounds(machine: Machine) -> None:
    extra = {"grammar": 'root ::= "(" [a-z([{]+ | ' + '"[" ( "a" | ("b" "c") ) "]" ' * 2_000}
    assert machine.local.plan(replace(ask(), extra=extra))
    assert machine.local.plan(replace(ask(), extra={"json_schema": nested(90)}))


def test_a_deadly_grammar_is_a_400_and_the_gateway_answers_others() -> None:
    async def scenario() -> None:
        text = (
            '[upstreams.here]\nkind = "local"\n[models.local]\nupstream = "here"\n'
            '[upstreams.rules]\nkind = "scripted"\n[models.demo]\nupstream = "rules"\n'
        )
        body = {"model": "local", "messages": [user("hi")], "grammar": "root ::= " + "(" * 30_000}
        async with running(text) as gateway:
            status, answer = await gateway.chat(body)
            if status == 503:
                pytest.skip(answer["error"]["message"])  # no runtime on this machine
            assert status == 400, answer
            assert answer["error"]["param"] == "grammar"
            status, _ = await gateway.chat({"model": "demo", "messages": [user("hi")]})
            assert status == 200

    run(scenario())
