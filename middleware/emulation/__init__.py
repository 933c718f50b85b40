"""Tools by prompt: any model calls tools, through the USE_TOOL language."""

from middleware.emulation.asking import Emulation
from middleware.emulation.choice import Automatic, Wanted, tooled
from middleware.emulation.emulated import EmulatedTools
from middleware.emulation.found import Fault, Ready
from middleware.emulation.reader import How, Reader
from middleware.emulation.refusals import refuses_tools
from middleware.emulation.rescue import LeakRescue

__all__ = (
    "Automatic",
    "EmulatedTools",
    "Emulation",
    "Fault",
    "How",
    "LeakRescue",
    "Reader",
    "Ready",
    "Wanted",
    "refuses_tools",
    "tooled",
)
