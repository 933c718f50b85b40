"""Tools by prompt: any model calls tools, through the USE_TOOL language."""

from middleware.wrappers.emulation.ask.prompted_request import Emulation
from middleware.wrappers.emulation.automatic import ToolSettings, with_tools
from middleware.wrappers.emulation.refusals import refuses_tools

__all__ = ("Emulation", "ToolSettings", "refuses_tools", "with_tools")
