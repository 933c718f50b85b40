"""A server over stdio: a child that is spoken to in lines, and ended with all that it has started.

The official client's own way reads lines of any length, in time that grows with their square.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

_Incoming = SessionMessage | Exception
_LONGEST_LINE = 16 << 20
_CHUNK = 1 << 16
_GLANCE = 0.5
_PATIENCE = 2.0
"""Seconds after each of: its input closed, SIGTERM, SIGKILL."""


class ServerProcess(NamedTuple):
    """How it is started, and who is told that it has come to its end."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    gone: Callable[[str], None]


@asynccontextmanager
async def child_streams(
    child: ServerProcess,
) -> AsyncIterator[
    tuple[MemoryObjectReceiveStream[_Incoming], MemoryObjectSendStream[SessionMessage]]
]:
    """What it says, and what it is told."""
    process = await asyncio.create_subprocess_exec(
        *child.words,
        stdin=PIPE,
        stdout=PIPE,
        env=child.environment,
        cwd=child.folder,
        start_new_session=True,
        limit=_LONGEST_LINE,
    )
    said, heard = anyio.create_memory_object_stream[_Incoming](0)
    told, passed = anyio.create_memory_object_stream[SessionMessage](0)
    reading = asyncio.ensure_future(_read(process, said, child.gone))
    tasks = [
        reading,
        asyncio.ensure_future(_watch(process, reading)),
        asyncio.ensure_future(_write(process, passed)),
    ]
    with said, heard, told, passed:
        try:
            yield heard, told
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await _end(process)


async def _read(
    process: Process, said: MemoryObjectSendStream[_Incoming], gone: Callable[[str], None]
) -> None:
    assert process.stdout is not None
    why = ""
    async with said:
        try:
            async for line in process.stdout:
                if message := _message(line):
                    await said.send(message)
        except anyio.BrokenResourceError:
            pass  # nobody listens any more
        except ValueError:
            why = f"it wrote a line of more than {_LONGEST_LINE >> 20} MB"
        finally:
            gone(why)


async def _watch(process: Process, reading: asyncio.Task[None]) -> None:
    """Ends the reading with the server, though one that it has started may hold its output open."""
    for _ in count():
        if process.returncode is not None:
            reading.cancel()
            break
        await asyncio.sleep(_GLANCE)


def _message(line: bytes) -> SessionMessage | None:
    """What a line says; one that is no message is skipped."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


async def _write(process: Process, passed: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None
    with suppress(OSError):  # it is gone, which is noticed where it is read
        async for one in passed:
            line = one.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()


async def _end(process: Process) -> None:
    """Its input is closed; then it and what it has started are ended."""
    if process.stdin is not None:
        process.stdin.close()
    if process.returncode is None and await _is_over(process):
        _signal(process, signal.SIGKILL)  # what it left behind
        return
    for sign in (signal.SIGTERM, signal.SIGKILL):
        _signal(process, sign)
        if await _is_over(process):
            break


async def _is_over(process: Process) -> bool:
    """Whether it has ended in time, and nobody has its output open."""
    assert process.stdout is not None
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            while await process.stdout.read(_CHUNK):
                pass
            await process.wait()
            return True
    return False


def _signal(process: Process, sign: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, sign)
