"""Has a process answer one question after another; where it dies, another takes its place."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import ceil
from pathlib import Path

from adapters.errors import Busy, GatewayError, Unavailable, UpstreamError
from adapters.local import worker
from adapters.local.child import DIED, Child
from adapters.local.engine import Heard
from adapters.local.files import Model

_LOG = logging.getLogger("usetool.local")
_TICK = 0.05
"""Seconds after which it is asked again whether anybody listens."""
_LOADING = 600.0
# Between a few tokens of the prompt it says how far it is; grammars exist that compile for ever.
_SILENT = 60.0
# Ending a process costs the loading of the next: it is waited for about as long as that takes.
_LEAST_GRACE, _MOST_GRACE = 1.0, 30.0
# Deaths in a row that cost nothing but the start; further ones cost seconds that double.
_FREE_DEATHS, _LONGEST_REST = 3, 16.0


def command(model: Model) -> Sequence[str]:
    # As a file, so that nothing of ours is imported; -P keeps its folder off the import path.
    said = json.dumps(asdict(model))
    return (sys.executable, "-P", worker.__file__, str(os.getpid()), said)


class Keeper:
    """Not for several threads: who asks has its turn until `answer` returns."""

    def __init__(
        self,
        model: Model,
        start: Callable[[Sequence[str]], Child] = Child,
        silent: float = _SILENT,
    ) -> None:
        self._model = model
        self._start_child = start
        self._silent = silent
        self._child: Child | None = None
        self._since = 0.0
        """When it began to load, or was told to stop."""
        self._patience: float | None = None
        """Seconds it has for that; None while it is idle."""
        self._loading = False
        self._loading_took = _LEAST_GRACE
        self._deaths = 0
        """In a row, without an answer between them."""
        self._rest_until = 0.0
        self._why: GatewayError | None = None

    def answer(self, body: bytes, hear: Heard) -> None:
        """Have it answer; `hear` is also called without a chunk: whether to go on."""
        child = self._idle(hear)
        if child is None:
            return
        child.ask(body)
        heard = time.monotonic()
        while not hear(b""):
            frame = child.frame(_TICK)
            if frame is None:
                self._require_life(child, heard)
                continue
            heard = time.monotonic()
            if self._over(frame):
                return
            if frame.kind == worker.CHUNK and hear(frame.payload):
                break
        child.stop()
        self._wait(min(max(self._loading_took, _LEAST_GRACE), _MOST_GRACE))

    def _require_life(self, child: Child, heard: float) -> None:
        if time.monotonic() - heard > self._silent:
            child.kill()
            raise self._lost(f"said nothing for {self._silent:g} seconds and was ended")

    def _over(self, frame: worker.Frame) -> bool:
        """Whether its answer has ended, however it did."""
        if frame.kind == worker.END:
            self._deaths = 0
        elif frame.kind == worker.REFUSED:
            raise RuntimeError(frame.payload.decode())
        elif frame.kind == DIED:
            raise self._lost(f"ended while it answered this request ({_how(frame)})")
        return frame.kind == worker.END

    def _idle(self, hear: Heard) -> Child | None:
        """Return the process once it waits for a question; None if nobody waits for it any more."""
        child = self._child
        if child is None or not child.alive:
            child = self._start()
        while self._patience is not None:
            if hear(b""):
                return None
            if time.monotonic() - self._since > self._patience:
                child.kill()
                self._child = None
            elif frame := child.frame(_TICK):
                self._heard(frame)
            child = self._child or self._start()
        return child

    def _heard(self, frame: worker.Frame) -> None:
        """Note what it says of its loading, or behind an answer that nobody listens to."""
        name = Path(self._model.path).name
        if frame.kind == worker.READY:
            self._loading_took = time.monotonic() - self._since
            _LOG.info("%s is loaded (%.1f s)", name, self._loading_took)
        elif frame.kind == worker.UNREADABLE:
            raise self._failed(_unreadable(name, frame.payload.decode()))
        elif frame.kind == DIED:
            when = "while it was loaded" if self._loading else "when it stopped"
            error = self._lost(f"ended {when} ({_how(frame)})")
            if self._loading:
                raise error
        if frame.kind != worker.CHUNK:
            self._patience = None

    def _start(self) -> Child:
        self._child = None
        rest = self._rest_until - time.monotonic()
        if rest > 0:
            why = f" {self._why.message}" if self._why else ""
            raise Busy(
                f"The embedded model is started again in {ceil(rest)} seconds.{why}",
                retry_after=str(ceil(rest)),
            )
        path = Path(self._model.path)
        try:
            _LOG.info("loading %s (%d MB) ...", path.name, path.stat().st_size >> 20)
            child = self._start_child(command(self._model))
        except OSError as error:
            raise self._failed(_unreadable(path.name, f"{error.strerror}.")) from error
        self._child = child
        self._wait(_LOADING, loading=True)
        return child

    def _wait(self, seconds: float, loading: bool = False) -> None:
        self._since, self._patience, self._loading = time.monotonic(), seconds, loading

    def _lost(self, what: str) -> GatewayError:
        error = Unavailable(
            f"The process of the embedded model {what}. The next request starts it again. If this "
            "request does so each time, change it: leave out its grammar or make it simpler; if "
            "others do too, free some memory, or lower num_ctx or name another file with `path` in "
            "the config.",
            code="model_unavailable",
            status=503,
        )
        error.again = "elsewhere"  # the same request would end the next one too
        return self._failed(error)

    def _failed(self, error: GatewayError) -> GatewayError:
        self._child = self._patience = None
        self._deaths += 1
        doubled = 2.0 ** min(self._deaths - _FREE_DEATHS, 10)
        self._rest_until = time.monotonic() + (min(doubled, _LONGEST_REST) if doubled > 1 else 0)
        self._why = error
        _LOG.warning("%s", error.message.partition(". ")[0])
        return error


def _how(died: worker.Frame) -> str:
    return died.payload.decode()


def _unreadable(name: str, why: str) -> UpstreamError:
    return UpstreamError(
        f"The model file {name} cannot be loaded: {why} Name another with `path` in the config; it "
        "must be a GGUF file of a kind that llama.cpp knows.",
        code="upstream_unreadable",
    )
