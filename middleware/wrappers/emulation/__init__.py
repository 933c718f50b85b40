"""Tools by prompt: any model calls tools, through the USE_TOOL language."""

from middleware.wrappers.emulation.modes import with_tools
from middleware.wrappers.emulation.settings import Emulation, ToolSettings

__all__ = ("Emulation", "ToolSettings", "with_tools")
