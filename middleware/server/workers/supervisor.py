"""The process above several workers: it has the socket, starts them, ends them, is their hub."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import uvicorn

from middleware.cli.command import WRONG, Failed, complain
from middleware.config import Config
from middleware.machine.hub import Hub, WorkerLine
from middleware.server.log import Log
from middleware.server.transport.address import GRACE_SECONDS, listen_everywhere
from middleware.server.workers.reception import Reception
from middleware.state.homes import is_shared, open_state

_LAST_SECONDS = 10.0
"""For what is written when the last request has ended."""
_AT_ONCE = 10.0
"""Seconds; who dies sooner is started again after a pause, which doubles."""
_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_EVERY = 0.5
# It imports from where this process does, and from nowhere else. Ctrl-C reaches it too: until it
# serves, who is above it ends it.
_BEGIN = """\
import gc, json, signal, sys
gc.disable()
signal.signal(signal.SIGINT, signal.SIG_IGN)
said = json.load(sys.stdin)
sys.path[:] = said["path"]
from middleware.server.workers.worker import work
sys.exit(work(said))
"""


def supervise(config: Config, asked: Mapping[str, Any]) -> int:
    """Serve by several processes until a signal ends it; return the exit code."""
    if sys.platform == "win32":
        raise Failed("Several workers need a system whose processes can share a socket. Remove "
                     "`workers` from [server] of the config.")  # fmt: skip
    with listen_everywhere(config) as sockets:
        supervisor = Supervisor(config, asked, sockets)
        loop = uvicorn.Config("").get_loop_factory()
        with asyncio.Runner(loop_factory=loop) as runner:
            code = runner.run(supervisor.run())
    if supervisor.ended_by is not None:  # as a gateway of one process ends
        signal.signal(supervisor.ended_by, signal.SIG_DFL)
        os.kill(os.getpid(), supervisor.ended_by)
    return code


class Worker(NamedTuple):
    line: WorkerLine
    process: Process
    began: float

    async def serves(self) -> bool:
        """Wait until it does; False: it ended before."""
        ready = asyncio.create_task(self.line.ready.wait())
        ended = asyncio.create_task(self.process.wait())
        await asyncio.wait((ready, ended), return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        return not ended.done()


@dataclass(slots=True)
class Supervisor:
    config: Config
    asked: Mapping[str, Any]
    listening: Sequence[socket.socket]
    ended_by: signal.Signals | None = None
    _text: str = field(init=False)
    """Of the config file, for all who are started."""
    _hub: Hub = field(init=False)
    _reception: Reception = field(init=False)
    _log: Log = field(init=False)
    _processes: set[Process] = field(default_factory=set)
    _ending: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._text = Path(self.config.source).read_text("utf-8-sig")
        level = self.config.server.log_level
        self._log = log = Log(sys.stderr, level, readable=sys.stderr.isatty())
        state = None
        if not is_shared(self.config):  # else each worker asks it
            state = open_state(self.config, lambda told: log.write({"state": told}))
        self._hub = Hub(state)
        self._reception = Reception(self.listening, self._hub)

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, number)
        loop.add_signal_handler(signal.SIGHUP, self._hung_up, os.isatty(2))
        watching = loop.create_task(self._watch_state())
        self._reception.open()
        # The others begin when the first serves: a mistake is told once, files are made once.
        first = await self._start(0, begins=True)
        if await first.serves():
            others = range(1, self.config.server.workers)
            await asyncio.gather(self._keep(0, first), *map(self._keep, others))
        watching.cancel()
        if self._hub.state is not None:
            await self._hub.state.close()
        self._log.flush()
        code = first.process.returncode
        if code and code < 0 and not self._ending.is_set():  # it could not say why
            complain(f"worker 1 ended ({_how(code)}) before it served")
        return 0 if self._ending.is_set() else code if code and code > 0 else WRONG

    async def _keep(self, number: int, worker: Worker | None = None) -> None:
        """Have a worker of this number until all end."""
        now, pause = asyncio.get_running_loop().time, 0.0
        while not self._ending.is_set():
            worker = worker or await self._start(number)
            code = await worker.process.wait()
            self._processes.discard(worker.process)
            if self._ending.is_set():
                return
            at_once = now() - worker.began < _AT_ONCE
            pause = min(_LONGEST_PAUSE, max(_PAUSE, pause * 2)) if at_once else 0.0
            complain(f"worker {number + 1} ended ({_how(code)}); another takes its place")
            worker = None
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._ending.wait()

    async def _start(self, number: int, begins: bool = False) -> Worker:
        ours, theirs = socket.socketpair()
        our_door, door = socket.socketpair()
        our_door.setblocking(False)
        loop, line = asyncio.get_running_loop(), WorkerLine(self._hub, number, our_door)
        await loop.create_unix_connection(lambda: line.channel, sock=ours)
        self._hub.joined(line)
        sockets = theirs.fileno(), door.fileno()
        command = (sys.executable, "-u", "-P", "-c", _BEGIN, f"usetool worker {number + 1}")
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, pass_fds=sockets)
        theirs.close()
        door.close()
        self._processes.add(process)
        told = {
            "path": sys.path,
            "text": self._text,
            "source": self.config.source,
            "stamp": self.config.stamp,
            "asked": self.asked,
            "number": number,
            "begins": begins,
            "line": sockets[0],
            "door": sockets[1],
        }
        assert process.stdin is not None
        process.stdin.write(orjson.dumps(told))
        process.stdin.close()
        if self._ending.is_set():
            process.terminate()
        return Worker(line, process, loop.time())

    async def _watch_state(self) -> None:
        while True:
            self._hub.tell_well()
            await asyncio.sleep(_EVERY)

    # Signals ----------------------------------------------------------------------------------

    def _end(self, number: signal.Signals) -> None:
        """Have them answer what they have begun; at a second Ctrl-C, leave it."""
        if not self._ending.is_set():
            complain("stopping")
            self.ended_by = number
            self._ending.set()
            self._reception.close()
            self._pass_on(signal.SIGTERM)
            late = GRACE_SECONDS + _LAST_SECONDS
            asyncio.get_running_loop().call_later(late, self._pass_on, signal.SIGKILL)
        elif number == signal.SIGINT:
            self._pass_on(number)

    def _hung_up(self, terminal: bool) -> None:
        if terminal and not os.isatty(2):  # the window was closed
            self._end(signal.SIGTERM)
        else:
            self._pass_on(signal.SIGHUP)

    def _pass_on(self, number: signal.Signals) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.send_signal(number)


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
