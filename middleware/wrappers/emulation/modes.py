"""Native, emulated, or native with a net: chosen by what the config says and the kind knows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapters.kind import CommonAbilities
from adapters.options import made
from middleware.wrappers.emulation.settings import Emulation, ToolSettings

if TYPE_CHECKING:  # the config's keys come from here too, and load no web package
    from adapters.leaf import Leaf
    from adapters.protocol import Adapter


def with_tools(
    leaf: Leaf,
    wanted: ToolSettings,
    further: Adapter | None = None,
    guarded: Adapter | None = None,
) -> Adapter:
    """What stands around a model so that it calls tools the way the config says.

    It is asked through what guards the leaf; `further` takes the asks that follow a first one
    within the same answer.
    """
    asked = guarded or leaf
    leaks, has_tools = wanted.kind.leaks, made(CommonAbilities, wanted.abilities).tools
    if has_tools is None:
        has_tools = wanted.kind.native_tools
    by_prompt = wanted.mode == "emulated" or has_tools is False
    if wanted.mode == "native" or not (by_prompt or leaks):
        return asked
    # What reads tools from text is much, and loaded only where a model may write them there.
    from middleware.wrappers.emulation.automatic import Automatic
    from middleware.wrappers.emulation.emulated import EmulatedTools
    from middleware.wrappers.emulation.rescue import LeakRescue

    emulated = EmulatedTools(asked, _emulation(wanted), further or asked)
    if by_prompt:
        return emulated
    native = LeakRescue(asked)
    return Automatic(native, emulated, leaf.calls_tools) if has_tools is None else native


def _emulation(wanted: ToolSettings) -> Emulation:
    found = made(Emulation, {**wanted.kind.emulation, **wanted.options})
    return replace(found, decide=wanted.decide)
