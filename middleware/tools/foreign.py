"""The one seam where code of others is called: whatever it raises becomes a value."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

_Value = TypeVar("_Value")


class Raised(NamedTuple):
    """What foreign code raised in place of a value; `SystemExit` too."""

    error: BaseException

    def __str__(self) -> str:
        name, text = type(self.error).__name__, str(self.error)
        return f"{name}: {text}" if text else name


def attempt(work: Callable[[], _Value]) -> _Value | Raised:
    try:
        return work()
    except BaseException as error:
        return Raised(error)


async def outcome_of(work: Awaitable[_Value]) -> _Value | Raised:
    """Await it; only our own cancelling goes through."""
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Raised(error)
    except BaseException as error:
        return Raised(error)
