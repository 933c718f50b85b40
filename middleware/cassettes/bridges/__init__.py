"""Cassettes and the formats of others: vcrpy's, HAR, and a cassette without its wire."""

from dataclasses import replace

from middleware.cassettes.bridges.har import to_har
from middleware.cassettes.bridges.interactions import to_vcrpy
from middleware.cassettes.cassette import Cassette

__all__ = ("slim", "to_har", "to_vcrpy")


def slim(cassette: Cassette) -> Cassette:
    """What is left replays by the stored answers; what had none is not left."""
    turns = (replace(turn, exchanges=(), path="", own={}) for turn in cassette.turns if turn.body)
    return replace(cassette, turns=tuple(turns), facts=())
