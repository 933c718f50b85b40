"""From a public model name to its route, and to the error of what is not there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import Busy, UnknownModel
from adapters.protocol import (
    Adapter,
)
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.config import ConfigError
from middleware.routing import ModelEntry
from middleware.wrappers.emulation import Emulation
from middleware.wrappers.emulation.emulated import EmulatedTools
from middleware.wrappers.pipeline import ReasonThenAnswer
from middleware.wrappers.recall import Recall
from middleware.wrappers.retry import Retry
from middleware.wrappers.route import ModelUnavailable, Route
from tests.wrappers.routing.routes import NET, asked, planned, routes

# Names -----------------------------------------------------------------------------------------


WILDCARDS = """
[models."open/*"]
upstream = "up"
name = "*"
[models."open/vision-*"]
upstream = "up"
name = "vendor/*-latest"
[models."open/vision-best"]
upstream = "up"
name = "exact"
[models."*-free"]
upstream = "up"
name = "*"
[models."all-*"]
upstream = "up"
name = "one"
"""


@pytest.mark.parametrize(
    ("asked_for", "sent"),
    [
        ("open/qwen3:8b", "qwen3:8b"),
        ("open/a/b-free", "a/b-free"),
        ("open/vision-x", "vendor/x-latest"),
        ("open/vision-best", "exact"),
        ("small-free", "small"),
        ("all-of-them", "one"),
    ],
)
def test_an_exact_name_wins_then_the_longest_before_a_star(asked_for: str, sent: str) -> None:
    assert planned(routes(WILDCARDS), asked(asked_for)).body["model"] == sent


@pytest.mark.parametrize("name", ["open/", "-free", "free", "", "Open/x"])
def test_a_star_stands_for_at_least_one_character(name: str) -> None:
    with pytest.raises(UnknownModel):
        routes(WILDCARDS).find(name)


def test_the_ends_of_a_wildcard_do_not_overlap() -> None:
    found = routes('[models."ab*bc"]\nupstream = "up"\nname = "*"\n')
    with pytest.raises(UnknownModel):
        found.find("abc")
    assert planned(found, asked("ab-bc")).body["model"] == "-"


@given(st.text("ab*", min_size=1, max_size=8))
def test_what_a_star_carries_puts_the_name_together_again(name: str) -> None:
    found = routes('[models."a*b"]\nupstream = "up"\nname = "<*>"\n')
    try:
        adapter = found.find(name)
    except UnknownModel:
        assert not (len(name) > 2 and name[0] == "a" and name[-1] == "b")
    else:
        assert isinstance(adapter, Route)
        assert f"a{adapter.name[1:-1]}b" == name


def test_an_unknown_model_is_told_with_what_was_meant_and_what_there_is() -> None:
    found = routes('[models.sonnet]\nupstream = "up"\n[models.opus]\nupstream = "up"\n')
    with pytest.raises(UnknownModel) as caught:
        found.find("sonet")
    assert caught.value.message == (
        "The model 'sonet' does not exist here. Did you mean 'sonnet'? There are: sonnet, opus."
    )
    assert (caught.value.param, caught.value.code) == ("model", "model_not_found")


def test_a_name_of_an_upstream_gets_the_name_it_has_here() -> None:
    text = """
[upstreams.home]
kind = "ollama"
[upstreams.far]
kind = "compatible"
base_url = "https://far.example/v1"
api_key = "env:NO_SUCH_KEY"
[models."ollama/*"]
upstream = "home"
name = "*"
[models."far/*"]
upstream = "far"
name = "*"
[models."claude-*"]
upstream = "home"
"""
    with pytest.raises(UnknownModel) as caught:
        build(config.parse(text, environment={}), Transport()).find("llama3.1:8b")
    assert "Did you mean 'ollama/llama3.1:8b'? There are:" in caught.value.message


def test_a_long_unknown_name_is_not_echoed() -> None:
    with pytest.raises(UnknownModel) as caught:
        routes('[models.a]\nupstream = "up"\n').find("x" * 100_000)
    assert len(caught.value.message) < 300


# What is not available -------------------------------------------------------------------------


MISSING = """
[upstreams.locked]
kind = "claude"
api_key = "env:GONE_KEY"
[models.plain]
upstream = "up"
[models."locked-*"]
upstream = "locked"
name = "*"
[models.thinking]
pipeline = "reason-then-answer"
reasoner = "plain"
answerer = "locked-x"
"""


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("locked-x", "the environment variable GONE_KEY is not set"),
        ("thinking", "the environment variable GONE_KEY is not set"),
    ],
)
def test_an_unavailable_model_answers_503_with_the_reason(model: str, reason: str) -> None:
    found = routes(MISSING)
    adapter = found.find(model)
    for ask in (adapter.stream, adapter.plan):
        with pytest.raises(Busy) as caught:
            ask(asked(model))
        assert isinstance(caught.value, ModelUnavailable)
        assert (caught.value.status, caught.value.code) == (503, "model_unavailable")
        assert caught.value.message == f"Model '{model}' is not available: {reason}."
        assert caught.value.again == "elsewhere"


def test_a_kind_that_is_no_leaf_makes_its_models_unavailable() -> None:
    found = routes('[models.a]\nupstream = "bad"\n[upstreams.bad]\nkind = "tavily"')
    (entry,) = found.listing()
    assert entry.reason == "upstreams of kind 'tavily' answer no chats"


@pytest.mark.parametrize("module", ["errors", "wire", "shared", "wire.http"])
def test_a_module_that_has_no_kind_is_a_mistake_of_the_config(module: str) -> None:
    with pytest.raises(ConfigError) as caught:
        routes(f'[models.a]\nupstream = "bad"\n[upstreams.bad]\nkind = "{module}"')
    assert [mistake.key for mistake in caught.value.mistakes] == ["upstreams.bad.kind"]


def test_options_a_leaf_refuses_are_mistakes_of_the_config() -> None:
    text = '[upstreams.toy]\nkind = "scripted"\n'
    text += '[models.a]\nupstream = "toy"\nrules = 3\n'
    text += '[models."b/c"]\nupstream = "toy"\nrules = [{when = 1, say = "x"}]\n'
    with pytest.raises(ConfigError) as caught:
        routes(text)
    assert [mistake.key for mistake in caught.value.mistakes] == ["models.a", 'models."b/c"']
    assert "rules must be a list" in caught.value.mistakes[0].text
    assert "rules[0].when must be text" in caught.value.mistakes[1].text


def test_the_listing_says_what_is_there_and_why_not() -> None:
    found = routes(MISSING).listing()
    assert [(entry.id, entry.available, entry.upstream) for entry in found] == [
        ("plain", True, "up"),
        ("locked-*", False, "locked"),
        ("thinking", False, ""),
    ]
    assert found[0] == ModelEntry(
        "plain", "up", True, "", "up", ("Route", "Show", "Retry", *NET, "Breaker", "Compatible")
    )
    assert "GONE_KEY" in found[1].reason


PIPELINE = """
[upstreams.deep]
kind = "deepseek"
[upstreams.own]
kind = "claude"
[models.deep]
upstream = "deep"
reasoning = "hidden"
[models.own]
upstream = "own"
[models.kept]
upstream = "up"
recall = true
[models.both]
pipeline = "reason-then-answer"
reasoner = "deep"
answerer = "own"
reasoning = "think-tags"
search = "tavily"
separator = "\\n"
"""


def test_a_pipeline_is_made_of_its_models_without_what_is_for_clients() -> None:
    found = routes(PIPELINE + "[server]\nstrict = true\n")
    nestings = {entry.id: entry.nesting[1:] for entry in found.listing()}
    assert nestings["deep"] == ("Show", "Retry", "Strict", "Recall", "Breaker", "DeepSeek")
    assert nestings["own"] == ("Show", "Retry", "Strict", "Recall", "Breaker", "Claude")
    assert nestings["kept"] == ("Show", "Retry", "Strict", "Recall", *NET, "Breaker", "Compatible")
    assert nestings["both"] == ("Show", "Strict", "Recall", "ReasonThenAnswer")
    pipeline: Adapter = found.find("both")
    while not isinstance(pipeline, ReasonThenAnswer):
        pipeline = pipeline.inner  # type: ignore[attr-defined]  # wrappers all have one
    assert isinstance(pipeline.reasoner, Route)
    assert isinstance(pipeline.reasoner.inner, Retry)
    assert isinstance(pipeline.reasoner.inner.inner, Recall)
    assert pipeline.pipeline.search is not None
    assert pipeline.pipeline.separator == "\n"
    (thinking, answering) = found.find("both").plan(asked("both"))
    assert (thinking.upstream, answering.upstream) == ("deep", "own")


def emulation_of(adapter: object) -> Emulation:
    while not isinstance(adapter, EmulatedTools):
        adapter = getattr(adapter, "answerer", None) or adapter.inner  # type: ignore[attr-defined]  # wrappers all have one
    return adapter.options


def test_only_the_answerer_of_a_pipeline_decides_on_tools_first() -> None:
    text = '[models.a]\nupstream = "up"\ntools = "emulated"\n'
    text += '[models.b]\npipeline = "reason-then-answer"\nreasoner = "a"\nanswerer = "a"\n'
    found = routes(text)
    assert not emulation_of(found.find("a")).decide
    assert emulation_of(found.find("b")).decide


SEEING = """
[upstreams.own]
kind = "claude"
[models."*"]
upstream = "up"
[models."seen/*"]
upstream = "up"
name = "*"
abilities = { vision = true }
[models."claude-*"]
upstream = "own"
[models.both]
pipeline = "reason-then-answer"
answerer = "small"
"""


@pytest.mark.parametrize(
    ("reasoner", "sees"),
    [("claude-sonnet-4-5", True), ("seen/small", True), ("small", False)],
)
def test_whether_a_reasoner_sees_is_known_behind_a_wildcard_too(reasoner: str, sees: bool) -> None:
    found = routes(f'{SEEING}reasoner = "{reasoner}"\n')
    adapter: Adapter = found.find("both")
    while not isinstance(adapter, ReasonThenAnswer):
        adapter = adapter.inner  # type: ignore[attr-defined]  # wrappers all have one
    assert adapter.pipeline.vision is sees


def test_recall_can_be_off_for_one_model_or_for_all() -> None:
    text = '[models.a]\nupstream = "deep"\nrecall = false\n[upstreams.deep]\nkind = "deepseek"\n'
    assert routes(text).listing()[0].nesting == ("Route", "Show", "Retry", "Breaker", "DeepSeek")
    text = text.replace("recall = false\n", "") + '[recall]\nstore = "off"\n'
    assert routes(text).listing()[0].nesting == ("Route", "Show", "Retry", "Breaker", "DeepSeek")
