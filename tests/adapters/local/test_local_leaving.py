"""The embedded model's process stops when told and goes with the gateway."""

from __future__ import annotations

import gc
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.errors import BadRequest
from adapters.local.worker import CHUNK, END, MOST, Frame, read, write
from adapters.protocol import TextDelta
from tests.adapters.local.machine import Machine, ask, gone, until
from tests.support.day_one import running
from tests.support.dialogue import user
from tests.support.fold import run
from tests.support.paths import ROOT

# Its script kills itself, the errors name the signal, and `ps` says which processes are left.
# What is not of signals is tested everywhere, in test_local.py.
pytestmark = pytest.mark.skipif(  # Windows has no signals that end a process, and no `ps`
    sys.platform == "win32", reason="its script ends by signals"
)


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
from tests.adapters.local.machine import Machine, ask
from tests.support.fold import fold, run
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
        gateway.wait(60)
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
