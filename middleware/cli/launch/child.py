"""A command that runs beside a gateway of this process."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from middleware.cli.command import complain

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
"""As a shell says it of commands."""
_LOOK_SECONDS = 60.0
_ENDINGS = ("SIGTERM", "SIGHUP")


def code_of(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run it to its end; its exit code, as a shell has it."""
    sys.stdout.flush()
    try:
        child = subprocess.Popen(command, env=environment)
    except FileNotFoundError:
        complain(f"There is no command '{command[0]}'.")
        return _NOT_FOUND
    except OSError as error:
        complain(f"'{command[0]}' cannot be run: {error.strerror or error}")
        return _NOT_EXECUTABLE
    with _signals_for(child):
        code = _ended(child)
    return code if code >= 0 else 128 - code


def _ended(child: subprocess.Popen[bytes]) -> int:
    """With a limit `wait` looks again and again: without one it may miss a signal that comes just
    before it.
    """
    while True:
        with suppress(subprocess.TimeoutExpired):
            return child.wait(_LOOK_SECONDS)


@contextmanager
def _signals_for(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """What would end this process ends the command instead. Ctrl-C it hears itself.

    Python lets the main thread alone heed signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def pass_on(number: int, _: Any) -> None:
        with suppress(ProcessLookupError):
            child.send_signal(number)

    numbers = [signal.Signals[name] for name in _ENDINGS if name in signal.Signals.__members__]
    before = {number: signal.signal(number, pass_on) for number in numbers}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
