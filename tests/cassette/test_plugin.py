"""pytest's plugin, in runs of pytest within this one: recorded from a scripted model, replayed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from middleware.cassettes.file import read_cassette
from middleware.cassettes.pytest_plugin import gateways, session
from middleware.cassettes.pytest_plugin.gateways import ProcessOutcome
from middleware.server.transport import serving
from tests.support.paths import ROOT

pytest_plugins = ("pytester",)
PLUGIN = "middleware.cassettes.pytest_plugin"
# Loaded here, they need not be loaded again for each run within.
LOADED = (gateways, session, serving)
CONFIG = """
[upstreams.demo]
kind = "scripted"
[models.m]
upstream = "demo"
"""
APP = '''
"""What is tested, and what tests it."""
import asyncio, json, os, urllib.error, urllib.request
import pytest

def ask(cassette, text, model="m"):
    prompt = {"role": "system", "content": "Be " + os.environ.get("WORD", "calm")}
    body = {"model": model, "messages": [prompt, {"role": "user", "content": text}]}
    headers = {"content-type": "application/json", "authorization": "Bearer " + cassette.api_key}
    url = cassette.base_url + "/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]

def ask_politely(cassette, text):
    try:
        return ask(cassette, text)
    except urllib.error.HTTPError:
        return "I am sorry."
'''
Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pytest; over tests that are given, or else were."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("CI", raising=False)
    pytester.makefile(".toml", config=CONFIG)
    pytester.makepyfile(app=APP)

    def run_tests(*options: str, tests: str = "") -> pytest.RunResult:
        if tests:
            pytester.makepyfile(test_agent=f"from app import *\n{tests}")
        return pytester.runpytest_inprocess("-p", PLUGIN, *options)

    return run_tests


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml*")}


MANY_KINDS = """
def test_weather(usetool_cassette):
    assert "cold" in ask(usetool_cassette, "cold")
    assert "colder" in ask(usetool_cassette, "colder")
@pytest.mark.parametrize("place", ["a/b", "沈阳", "..", "x y:z", "A", "a"])
def test_place(usetool_cassette, place):
    assert place in ask(usetool_cassette, place)
class TestShop:
    def test_shop(self, usetool_cassette):
        ask(usetool_cassette, "shop")
@pytest.mark.anyio
async def test_later(usetool_cassette):
    assert "later" in await asyncio.to_thread(ask, usetool_cassette, "later")
def test_silence(usetool_cassette):
    pass
"""


def test_tests_of_all_kinds_replay_without_a_model(run: Run, pytester: pytest.Pytester) -> None:
    options = ("-p", "anyio", "-k", "not trio")
    run(*options, "--usetool-mode=record", tests=MANY_KINDS).assert_outcomes(passed=10)
    found = files(pytester.path / "cassettes")
    assert "test_agent/test_weather.yaml" in found
    assert sum("test_place" in name for name in found) == 6
    assert len({name.casefold() for name in found}) == 9  # silence leaves nothing
    (pytester.path / "config.toml").unlink()
    run(*options).assert_outcomes(passed=10)
    assert files(pytester.path / "cassettes") == found


def test_a_miss_that_the_app_swallows_fails_the_test(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = """
        def test_one(usetool_cassette):
            said = ask_politely(usetool_cassette, "one")
            assert [one.code for one in usetool_cassette.missed] == MISSED
    """.replace("\n        ", "\n")
    run("--usetool-mode=record", tests="MISSED = []" + tests).assert_outcomes(passed=1)
    monkeypatch.setenv("WORD", "angry")
    missed = run(tests="MISSED = ['cassette_miss']" + tests)
    missed.assert_outcomes(passed=1, errors=1)
    assert missed.ret == 1
    missed.stdout.fnmatch_lines(["*ERROR at teardown of test_one*", '*"Be calm"*"Be angry"*'])
    absent = run("--usetool-dir=elsewhere", tests="MISSED = ['cassette_missing']" + tests)
    absent.assert_outcomes(passed=1, errors=1)
    absent.stdout.fnmatch_lines(["There is no cassette test_one.yaml*"])


def test_turns_that_stay_unused_fail_a_test_that_passed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = """
def test_short(usetool_cassette):
    ask(usetool_cassette, "one")
    SHORT or ask(usetool_cassette, "two")

@pytest.mark.usetool(unused="ignore")
def test_may(usetool_cassette):
    test_short(usetool_cassette)

def test_fails(usetool_cassette):
    test_short(usetool_cassette)
    assert not SHORT
"""
    run("--usetool-mode=record", tests="SHORT = False" + tests).assert_outcomes(passed=3)
    short = run(tests="SHORT = True" + tests)
    short.assert_outcomes(passed=2, errors=1, failed=1)
    short.stdout.fnmatch_lines(["*ERROR at teardown of test_short*", "Not played: 2.*"])
    run("--usetool-mode=auto").assert_outcomes(passed=2, failed=1)  # that may be why it runs


SHARED = """
@pytest.mark.usetool(cassette="together")
@pytest.mark.parametrize("place", ["b", "a", "c"])
def test_shared(usetool_cassette, place):
    assert "hello" in ask(usetool_cassette, "hello")  # equal in all of them
    assert place in ask(usetool_cassette, place)
    print("turns", place, *(turn.session for turn in usetool_cassette.turns))

def test_alone(usetool_cassette):
    assert "alone" in ask(usetool_cassette, "alone")
"""


def test_tests_that_share_a_cassette_have_their_own_turns(
    run: Run, pytester: pytest.Pytester
) -> None:
    run("--usetool-mode=record", tests=SHARED).assert_outcomes(passed=4)
    turns = read_cassette(pytester.path / "cassettes/together.yaml").turns
    sessions = [f"test_agent/test_shared-{place}" for place in "abc"]
    assert [turn.session for turn in turns] == [name for name in sessions for _ in "12"]
    replayed = run("-s")
    replayed.assert_outcomes(passed=4)
    for name in sessions:  # the hello too is the test's own
        replayed.stdout.fnmatch_lines([f"*turns {name[-1]} {name} {name}"])
    run("-k", "shared and b").assert_outcomes(passed=1, deselected=3)


@pytest.fixture
def worker(run: Run, pytester: pytest.Pytester) -> Callable[[str], None]:
    """Records some of the tests as a worker of pytest-xdist does."""
    pytester.makefile(
        ".py",
        worker="""
        import pytest
        @pytest.hookimpl(tryfirst=True)
        def pytest_configure(config):
            config.workerinput, config.workeroutput = {"usetool": "this run"}, {}
        def pytest_unconfigure(config):
            assert config.workeroutput["usetool"]["modes"] == ["record"]
        """,
    )

    def record(chosen: str) -> None:
        run("-p", "worker", "--usetool-mode=record", "-k", chosen, tests=SHARED)
        for part in [*pytester.path.rglob("*.part-*[0-9]")]:
            part.rename(part.with_name(f"{part.name} of {chosen}"))

    pytester.syspathinsert()
    return record


def test_workers_of_one_run_make_one_cassette(
    run: Run, worker: Callable[[str], None], pytester: pytest.Pytester
) -> None:
    for chosen in ("shared and c", "shared and not c", "alone"):
        worker(chosen)
    cassettes, alone = pytester.path / "cassettes", pytester.path / "alone"
    (cassettes / "other.yaml.part-x").write_text('{"run":"other","mode":"record","server":{}}\n')
    assert not [*cassettes.rglob("*.yaml")]
    outcome: ProcessOutcome = {"modes": ["record"], "problems": [], "dropped": 0}
    text, code = gateways.conclude(cassettes, "this run", "record", [outcome])
    assert (text.partition(",")[0], code) == ("usetool record 2 cassettes: 7 turns", 0)
    run("--usetool-mode=record", "--usetool-dir=alone")
    assert files(cassettes) - files(alone) == {"other.yaml.part-x"}
    shared = [read_cassette(folder / "together.yaml").turns for folder in (cassettes, alone)]
    assert len({str([(turn.session, turn.body) for turn in turns]) for turns in shared}) == 1


def test_where_one_worker_stopped_recording_nothing_is_written(
    worker: Callable[[str], None], pytester: pytest.Pytester
) -> None:
    worker("shared")
    stopped: ProcessOutcome = {"modes": ["record"], "problems": ["It stopped."], "dropped": 0}
    text, code = gateways.conclude(pytester.path / "cassettes", "this run", "record", [stopped])
    assert ("It stopped." in text, code) == (True, 1)
    assert not files(pytester.path / "cassettes")


def test_where_recording_stops_the_run_fails(run: Run, pytester: pytest.Pytester) -> None:
    cassettes = pytester.mkdir("cassettes")
    (cassettes / "test_agent").touch()  # no folder can be there
    stopped = run("--usetool-mode=record", tests=SHARED)
    assert stopped.ret == 1
    stopped.stdout.fnmatch_lines(["Recording stopped: *"])
    assert not files(cassettes)


def test_the_marker_says_how_a_cassette_answers(run: Run, pytester: pytest.Pytester) -> None:
    masked = {"match": {"mask": [{"at": "messages[1]", "what": "number"}]}}
    fired, never = ({"faults": [{"turn": turn, "refuse": True}]} for turn in (1, 9))
    tests = """
@pytest.mark.usetool(cassette="shop", mode="replay")
class TestShop:
    @pytest.mark.usetool(**MASKED)
    def test_masked(self, usetool_cassette):
        assert "order 1" in ask(usetool_cassette, "order 2")
    @pytest.mark.usetool(**FIRED)
    def test_fault(self, usetool_cassette):
        assert ask(usetool_cassette, "order 1") is None
    @pytest.mark.usetool(**NEVER)
    def test_unfired(self, usetool_cassette):
        ask(usetool_cassette, "order 1")
    @pytest.mark.usetool(casette="x")
    def test_typo(self, usetool_cassette): ...
    @pytest.mark.usetool(mode="play")
    def test_mode(self, usetool_cassette): ...
    @pytest.mark.usetool(cassette="../x")
    def test_name(self, usetool_cassette): ...
    @pytest.mark.usetool(match={"level": "loose"})
    def test_rules(self, usetool_cassette): ...
"""
    pytester.mkdir("cassettes").joinpath("shop.yaml").write_text(
        """
usetool: {cassette: 1}
turns:
- ask:
    body:
      model: m
      messages: [{role: system, content: Be calm}, {role: user, content: order 1}]
  answer: {message: {role: assistant, content: this is order 1}}
"""
    )
    values = f"MASKED, FIRED, NEVER = {masked}, {fired}, {never}"
    found = run("--usetool-mode=record", tests=values + tests)
    found.assert_outcomes(passed=3, errors=5)
    found.stdout.fnmatch_lines_random(
        ["A fault never acted*", "*'casette'*", "*'play'*", "*'../x'*", "*'level'*loose*"]
    )


def test_a_broken_cassette_names_itself(run: Run, pytester: pytest.Pytester) -> None:
    folder = pytester.mkdir("kept")
    (folder / "test_agent").mkdir()
    (folder / "test_agent/test_one.yaml").write_text("usetool: {cassette: 1}\nturns:\n  : [x\n")
    pytester.makeini("[pytest]\nusetool_dir = kept")
    found = run(tests="def test_one(usetool_cassette): ...")
    found.assert_outcomes(errors=1)
    found.stdout.fnmatch_lines(["*test_one.yaml, line 3*"])


def test_a_job_records_only_if_it_is_told_to(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    tests = """
@pytest.mark.usetool(mode="auto")
def test_new(usetool_cassette):
    ask(usetool_cassette, "new")
"""
    refused = run("--usetool-mode=record", tests=tests)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*--usetool-allow-live*"])
    marked = run()
    marked.assert_outcomes(errors=1)
    marked.stdout.fnmatch_lines(["*'auto', but CI is set*"])
    run("--usetool-allow-live").assert_outcomes(passed=1)


def test_a_client_and_a_process_find_their_way(run: Run) -> None:
    tests = """
import subprocess, sys
@pytest.mark.usetool(cassette="天气")
def test_found(usetool_cassette):
    assert usetool_cassette.base_url.startswith("http://127.0.0.1:")
    assert usetool_cassette.base_url.isascii() and usetool_cassette.api_key.isascii()
    assert usetool_cassette.env["OPENAI_BASE_URL"] == usetool_cassette.base_url
    assert usetool_cassette.env["OPENAI_API_KEY"] == usetool_cassette.api_key
    assert "PATH" not in usetool_cassette.env
    assert (usetool_cassette.turns, usetool_cassette.missed) == ([], [])
    # By the key alone, whatever becomes of the path.
    server = usetool_cassette.base_url.partition("/~")[0]
    class Keyed: base_url, api_key = server + "/v1", usetool_cassette.api_key
    ask(Keyed, "by key")
    assert len(usetool_cassette.turns) == PLAYED
"""
    run("--usetool-mode=record", tests="PLAYED = 0" + tests).assert_outcomes(passed=1)
    run(tests="PLAYED = 1" + tests).assert_outcomes(passed=1)


def test_the_project_installs_it_by_a_name_that_switches_it_off(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"usetool": PLUGIN}
    information = pytester.mkdir("trial-0.dist-info")
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: trial\nVersion: 0\n")
    (information / "entry_points.txt").write_text(f"[pytest11]\nusetool = {PLUGIN}\n")
    pytester.syspathinsert()
    pytester.makepyfile("def test_one(usetool_cassette): ...")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    names = {found.name for found in entry_points(group="pytest11")} - {"usetool"}
    others = [option for name in names for option in ("-p", f"no:{name}")]
    pytester.runpytest_inprocess(*others).assert_outcomes(passed=1)
    off = pytester.runpytest_inprocess(*others, "-p", "no:usetool")
    off.assert_outcomes(errors=1)
    off.stdout.fnmatch_lines(["*fixture 'usetool_cassette' not found"])


def test_a_run_that_does_not_use_it_loads_nothing_for_it() -> None:
    program = f"import sys, pytest\nbefore = {{*sys.modules}}\nimport {PLUGIN}\n"
    program += "print(*sorted({*sys.modules} - before))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split() == ["middleware", "middleware.cassettes", PLUGIN]
