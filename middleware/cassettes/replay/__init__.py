"""Plays a turn: the real route, wrappers and leaf over recorded bytes, without a network."""

from middleware.cassettes.replay.performance import FAST, Performance, Performer, Timing, altered
from middleware.cassettes.replay.stage import Stage, stored
from middleware.cassettes.replay.wire import Drift

__all__ = ("FAST", "Drift", "Performance", "Performer", "Stage", "Timing", "altered", "stored")
