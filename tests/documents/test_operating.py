"""docs/operating.md: the words it uses of routes and metrics are those the gateway uses."""

from __future__ import annotations

import re
from typing import get_args

from adapters.outcomes import Outcome, Passing
from middleware import config
from middleware.server.transport.address import GRACE_SECONDS
from tests.documents.test_documents import blocks, prose, text, whole

PAGE = text("docs/operating.md")


def test_every_route_is_made_of_codes_that_are_sent() -> None:
    routes = re.findall(r"`((?:\w+=\w+(?:, )?)+(?:…)?)`", prose(PAGE))
    named = {
        step.partition("=")[2] for route in routes for step in route.split(", ") if "=" in step
    }
    assert len(named) >= 6
    assert named <= {*get_args(Outcome), *get_args(Passing)}


def test_every_place_of_a_route_is_in_the_example() -> None:
    (example,) = [block for block in blocks(PAGE, "toml") if "choices" in block]
    given = {name: name for name in re.findall(r'"env:(\w+)"', example)}
    models = config.parse(whole(example), environment=given).models
    assert set(re.findall(r"`?\b(\w+)=\w+[,`]", prose(PAGE))) - {"queue"} <= models.keys()


def test_every_metric_is_one_that_is_told() -> None:
    told = set(re.findall(r"^\| `(\w+)`", text("docs/metrics.md"), re.MULTILINE))
    named = set(re.findall(r"\busetool_\w+", PAGE))
    assert len(named) >= 8
    assert named <= told


def test_the_time_it_gives_to_stop_is_enough() -> None:
    assert f"answers get {GRACE_SECONDS} seconds to end" in PAGE
    given = int(re.findall(r"Give it (\d+) seconds", PAGE)[0])
    assert given > GRACE_SECONDS + 10


def test_what_the_shipped_config_has_as_comments_can_be_meant() -> None:
    """Each `# [section]` and the `# key = value` lines below it."""
    lines = text("config.toml").splitlines()
    begun, found = False, list[str]()
    for line in lines:
        begun = bool(re.match(r"# \[[\w.]+\]$", line)) or (
            begun and bool(re.match(r"# \w+ = ", line))
        )
        found.append(line[2:] if begun else line)
    written = "\n".join(found)
    given = {name: name for name in re.findall(r'"env:(\w+)"', written)}
    read = config.parse(written, environment=given)
    assert read.models["best"].choices == ("sonnet", "gpt")
    assert read.clients.keys() == {"shop", "operator"}
    assert read.state.url == "redis://redis:6379/0"
    assert read.cassettes is not None
