"""Tools by prompt: any model calls tools, through the USE_TOOL language."""

from middleware.wrappers.emulation.ask.prompted_request import Emulation
from middleware.wrappers.emulation.automatic import Automatic, ToolSettings, with_tools
from middleware.wrappers.emulation.emulated import EmulatedTools
from middleware.wrappers.emulation.formats.raw_call import Fault, Ready
from middleware.wrappers.emulation.read.reader import Reader
from middleware.wrappers.emulation.read.rules import ReadRules
from middleware.wrappers.emulation.refusals import refuses_tools
from middleware.wrappers.emulation.rescue import LeakRescue

__all__ = (
    "Automatic",
    "EmulatedTools",
    "Emulation",
    "Fault",
    "LeakRescue",
    "ReadRules",
    "Reader",
    "Ready",
    "ToolSettings",
    "refuses_tools",
    "with_tools",
)
