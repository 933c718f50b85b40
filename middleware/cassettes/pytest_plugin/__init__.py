"""pytest's plugin: a cassette for each test, played or recorded by a gateway within the run.

Every run of pytest loads this module, so it imports nothing but pytest until a test needs more.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from middleware.cassettes.pytest_plugin.gateways import Gateways, ProcessOutcome
    from middleware.cassettes.pytest_plugin.session import UsetoolCassette

__all__ = (
    "pytest_addoption",
    "pytest_configure",
    "pytest_configure_node",
    "pytest_runtest_makereport",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_testnodedown",
    "usetool_cassette",
)
_MARKER = (
    "usetool(cassette=NAME, mode=MODE, match=RULES, faults=RULES, unused='fail'|'ignore'): "
    "which cassette answers the test, and how."
)
_GATEWAYS = pytest.StashKey["Gateways"]()
_OUTCOMES = pytest.StashKey[list["ProcessOutcome"]]()
"""What the workers of pytest-xdist said in the end."""
_RUN = pytest.StashKey[str]()
_SUMMARY = pytest.StashKey[str]()
_PASSED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("usetool", "recorded answers of models")
    group.addoption(
        "--usetool-mode",
        choices=("replay", "record", "auto", "refresh"),
        default="replay",
        help="answer from cassettes (replay, the default), record them anew, add what is new "
        "(auto), or ask all again and keep what is the same as it is (refresh)",
    )
    for name, usual, text in (
        ("dir", "cassettes", "where the cassettes are, from the rootdir (default: cassettes)"),
        ("config", "", "what to record with, from the rootdir (default: config.toml, or built in)"),
    ):
        group.addoption(f"--usetool-{name}", metavar="PATH", help=text)
        parser.addini(f"usetool_{name}", text, default=usual)
    group.addoption("--usetool-allow-live", action="store_true", help="record also where CI is set")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    if refusal := _refusal(config, config.getoption("usetool_mode")):
        raise pytest.UsageError(refusal)


def _refusal(config: pytest.Config, mode: str) -> str:
    """Why a mode must not be; empty: it may."""
    if mode == "replay" or not os.environ.get("CI") or config.getoption("usetool_allow_live"):
        return ""
    return (
        f"The mode of cassettes is '{mode}', but CI is set, and a job must not ask a provider by "
        "accident: replay instead, or say --usetool-allow-live."
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture
def usetool_cassette(request: pytest.FixtureRequest) -> Iterator[UsetoolCassette]:
    """What answers this test from its cassette, or records it: `base_url` and `api_key` for a
    client, `env` for a process.
    """
    from middleware.cassettes.pytest_plugin.session import marked, open_cassette

    config, node = request.config, request.node
    said = marked(node, config.getoption("usetool_mode"))
    if refusal := _refusal(config, said.mode):
        pytest.fail(refusal, pytrace=False)
    cassette = open_cassette(node, said, _gateways(config))
    yield cassette
    if text := cassette.close(node.stash.get(_PASSED, False)):
        pytest.fail(text, pytrace=False)


def _gateways(config: pytest.Config) -> Gateways:
    if _GATEWAYS not in config.stash:
        from middleware.cassettes.pytest_plugin.gateways import Gateways
        from middleware.cli.default_config import OWN, built_in

        file = config.rootpath / (_said(config, "config") or OWN)
        if not (file.exists() or _said(config, "config")):
            file = built_in()
        config.stash[_GATEWAYS] = Gateways(_folder(config), file, _run(config))
    return config.stash[_GATEWAYS]


def _folder(config: pytest.Config) -> Path:
    return config.rootpath / _said(config, "dir")


def _said(config: pytest.Config, name: str) -> str:
    return str(config.getoption(f"usetool_{name}") or config.getini(f"usetool_{name}"))


# A run and its workers ----------------------------------------------------------------------------


def _run(config: pytest.Config) -> str:
    """What tells the recordings of this run from those of others; its workers have the same."""
    known: str = getattr(config, "workerinput", {}).get("usetool", "")
    return known or config.stash.setdefault(_RUN, os.urandom(8).hex())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["usetool"] = _run(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    outcome = getattr(node, "workeroutput", {}).get("usetool")  # none of a worker that crashed
    node.config.stash.setdefault(_OUTCOMES, []).extend([outcome] if outcome else [])


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Make cassettes of what was recorded, in one process once all have finished."""
    config = session.config
    outcomes = config.stash.get(_OUTCOMES, [])
    if gateways := config.stash.get(_GATEWAYS, None):
        outcomes = [gateways.stop()]
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if output is not None:
        output["usetool"] = next(iter(outcomes), None)
        return
    mode = config.getoption("usetool_mode")
    modes = {mode, *(one for outcome in outcomes for one in outcome["modes"])}
    if _RUN in config.stash and modes != {"replay"}:
        from middleware.cassettes.pytest_plugin.gateways import conclude

        config.stash[_SUMMARY], code = conclude(_folder(config), _run(config), mode, outcomes)
        session.exitstatus = session.exitstatus or code


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if text := config.stash.get(_SUMMARY, ""):
        terminalreporter.section("usetool")
        terminalreporter.write_line(text)
