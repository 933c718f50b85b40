"""Load the gateway in turn with the bare pass-through, and with its own modes of cassettes: with a
small request, and with what a coding agent sends.

python -m tests.bench [PATH]: hold the modes against the gateway of another tree.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from middleware.cassettes.file import cassette_text, read_cassette, write_cassette
from tests.bench.agent import agent_body, conversations
from tests.bench.load import CONNECTIONS, SCRIPTS, Server, grow, load, load_with
from tests.bench.servers import bare, gateway, upstream
from tests.support.paths import ROOT

ROUNDS, TURNS = 15, 1000
AGENT_ROUNDS, GROWING_ROUNDS = 9, 5
EARLY, LATE = range(4, 7), range(38, 41)
"""Turns of one conversation; of three each, as one is a short time to measure."""


class Ratio(NamedTuple):
    """What one costs in units of another, at most, for each script."""

    name: str
    of: str
    most: tuple[float, ...]


MODES = (
    Ratio("off", "without", (1.01, 1.01, 1.01)),
    Ratio("record", "without", (1.10, 1.15, 1.15)),
    Ratio("replay", "without", (1.00, 1.00, 1.00)),
    Ratio(f"{TURNS} turns", "replay", (1.10, 1.10, 1.10)),
)


def main(other: Path = ROOT) -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        up = stack.enter_context(upstream())
        _fill(folder, up)
        modes = {mode: gateway(up, folder, mode) for mode in ("off", "record", "replay")}
        without = gateway(up, folder, tree=other)
        running = {"bare": bare(up), "ours": gateway(up, folder), "without": without, **modes}
        servers = {name: stack.enter_context(server) for name, server in running.items()}
        servers[MODES[-1].name] = servers["replay"]._replace(prefix="/~long")
        found = max([_compare(at, servers) for at in range(len(SCRIPTS))])
        for script in SCRIPTS:
            _compare_agents(script, servers["bare"], servers["ours"])
        _compare_turns(servers["bare"], servers["ours"])
        return found


def _fill(folder: Path, up: Server) -> None:
    """Record every script once, and make a cassette of many turns of it, the scripts' the last."""
    with gateway(up, folder, "record", finishes=True) as server:
        for script in SCRIPTS:
            asyncio.run(load(server, script, 1))
    cassette = read_cassette(folder / "default.yaml")
    asked = {turn.body["messages"][0]["content"]: turn for turn in cassette.turns}
    asks = [{"role": "user", "content": f"Question {number}?"} for number in range(TURNS)]
    other = cassette.turns[0]
    others = [replace(other, body={**other.body, "messages": [ask]}) for ask in asks[len(asked) :]]
    turns = enumerate((*others, *asked.values()), 1)
    numbered = tuple(replace(turn, number=number, id="") for number, turn in turns)
    write_cassette(folder / "long.yaml", cassette_text(replace(cassette, turns=numbered)))


def _compare(at: int, servers: Mapping[str, Server]) -> int:
    script, cost = SCRIPTS[at], {name: list[float]() for name in servers}
    for server in servers.values():
        asyncio.run(load(server, script))
    for _ in range(ROUNDS):
        for name, server in servers.items():
            cost[name].append(asyncio.run(load(server, script)))
    first, second = (statistics.median(cost[name]) for name in ("bare", "ours"))
    print(_line(script, first, second))
    return max([_judge(mode, mode.most[at], cost) for mode in MODES])


def _line(name: str, bare: float, ours: float) -> str:
    return f"{name:13} bare {bare:7.0f} us   ours {ours:7.0f} us   ratio {ours / bare:.2f}"


def _compare_agents(script: str, *servers: Server) -> None:
    """What an agent sends, of many conversations in turn."""
    bodies, cost = conversations(script), [list[float]() for _ in servers]
    each = len(bodies) // CONNECTIONS
    for number in range(AGENT_ROUNDS + 1):
        for server, found in zip(servers, cost, strict=True):
            found.append(asyncio.run(load_with(server, bodies, each if number else 2 * each)))
    bare, ours = (statistics.median(found[1:]) for found in cost)
    print(_line(f"agent {script}", bare, ours), flush=True)


def _compare_turns(*servers: Server) -> None:
    """What is our own of an early turn and of a late one: what the pass-through costs is not."""
    own = []
    for number in range(GROWING_ROUNDS):
        body = partial(_body_of, number)
        bare, ours = (asyncio.run(grow(one, body, (EARLY, LATE))) for one in servers)
        own.append([mine - theirs for mine, theirs in zip(ours, bare, strict=True)])
    early, late = (statistics.median(found) for found in zip(*own, strict=True))
    turns = f"turn {EARLY[1]} {early:5.0f} us   turn {LATE[1]} {late:5.0f} us"
    print(f"our own part  {turns}   ratio {late / early:.2f}")


def _body_of(number: int, conversation: int, turn: int) -> bytes:
    return agent_body("plain", f"g{number}x{conversation}", turn)


def _judge(mode: Ratio, most: float, cost: Mapping[str, Sequence[float]]) -> int:
    """Too much is what was too much in three rounds of four: other processes are heard here too."""
    pairs = zip(cost[mode.name], cost[mode.of], strict=True)
    low, middle, _ = statistics.quantiles([one / other for one, other in pairs])
    mark = "" if low <= most else "   TOO MUCH"
    print(f"    {mode.name:10} {middle:5.2f} of {mode.of:8} at most {most:.2f}{mark}")
    return int(low > most)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
