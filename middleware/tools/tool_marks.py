"""`tool`: marks a function as one for models."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar, overload

_MARK = "__usetool__"
_Callee = TypeVar("_Callee", bound=Callable[..., object])


class ToolMark(NamedTuple):
    """What is said of a function beside its docstring."""

    name: str | None = None
    description: str | None = None


_NONE = ToolMark()


@overload
def tool(function: _Callee, /) -> _Callee: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None
) -> Callable[[_Callee], _Callee]: ...
def tool(
    function: _Callee | None = None, /, *, name: str | None = None, description: str | None = None
) -> _Callee | Callable[[_Callee], _Callee]:
    """Mark a function, bare or with another name or description; gives the function back."""

    def mark(marked: _Callee) -> _Callee:
        setattr(marked, _MARK, ToolMark(name, description))
        return marked

    return mark if function is None else mark(function)


def mark_of(function: object) -> ToolMark:
    found = getattr(function, _MARK, None)
    return found if isinstance(found, ToolMark) else _NONE


def is_marked(function: object) -> bool:
    return mark_of(function) is not _NONE
