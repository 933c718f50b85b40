"""The worker of the embedded model with a runtime that does as the question says, run as a file."""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import signal
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

WORKER = Path(__file__).resolve().parents[3] / "adapters" / "local" / "worker.py"
Heard = Callable[[bytes], bool]


class Server:
    def __init__(self, said: types.SimpleNamespace) -> None:
        do = Path(said.model.path).read_text("utf-8")
        if do == "slow":
            time.sleep(0.5)
        elif do == "broken":
            raise RuntimeError("no such architecture.")
        elif do == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)

    def handle_chat_completions(self, body: bytes, hear: Heard) -> None:
        do = json.loads(body)["messages"][-1]["content"]
        if do == "refuse":
            raise RuntimeError("image input is not supported")
        if do == "hang":  # as native code does, with the interpreter's lock held
            ctypes.PyDLL(None).sleep(60)
        if do == "print":
            os.write(1, b"what a library says")
        if do != "die at once":
            said = hear(_chunk({"content": "Hel"}))
        if do.startswith("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        while do == "go on" and not said:
            time.sleep(0.01)
            said = hear(_chunk({"content": "o"}))
        hear(_chunk({"content": "lo"}))
        hear(_chunk({}, "stop"))


def _chunk(delta: dict[str, str], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return json.dumps({"choices": [choice]}).encode()


def _parameters() -> types.SimpleNamespace:
    part = types.SimpleNamespace
    return part(model=part(), cpuparams=part(), cpuparams_batch=part())


if __name__ == "__main__":
    runtime = types.ModuleType("xllamacpp")
    vars(runtime).update(Server=Server, CommonParams=_parameters)
    sys.modules["xllamacpp"] = runtime
    runpy.run_path(str(WORKER), run_name="__main__")
