"""Which places a config makes of its choices, fallbacks and keys."""

from __future__ import annotations

import asyncio

import pytest

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.routing import Routes
from middleware.server.models import ModelList
from middleware.wrappers.choices import Alternative
from tests.wrappers.routing.routes import asked

CONFIG = """
[recall]
store = "memory"
[upstreams.one]
kind = "compatible"
base_url = "http://127.0.0.1:1/v1"
[upstreams.keyed]
kind = "compatible"
base_url = "http://127.0.0.1:2/v1"
api_key = ["k1", "k2"]
[upstreams.gone]
kind = "claude"
api_key = "env:NOT_SET"
[models.m1]
upstream = "one"
vision = true
context_length = 1000
[models.m2]
upstream = "keyed"
defaults = { temperature = 0.5 }
[models.away]
upstream = "gone"
name = "claude-sonnet-4-5"
[models.rescued]
upstream = "gone"
name = "claude-sonnet-4-5"
fallback = ["m1"]
[models."up/*"]
upstream = "one"
name = "*"
fallback = ["m2"]
[models.smart]
choices = ["away", "m1"]
fallback = ["m2"]
defaults = { temperature = 0.1 }
[models.nested]
choices = ["smart", "m2"]
weights = [3, 1]
pick = "weight"
[models.nobody]
choices = ["away"]
[models.both]
pipeline = "reason-then-answer"
reasoner = "m1"
answerer = "smart"
[models.over]
choices = ["both", "m2"]
"""


@pytest.fixture(scope="module")
def routes() -> Routes:
    return build(config.parse(CONFIG, environment={}), Transport())


def test_one_place_with_one_key_has_nobody_to_choose(routes: Routes) -> None:
    assert "Retry" in routes.entry("m1").nesting
    assert "Retry" not in routes.entry("m2").nesting


@pytest.mark.parametrize(
    ("model", "places"),
    [
        ("up/x", "up/*, m2"),
        ("nested", "away (not available: the environment variable NOT_SET is not set), m1, m2"),
        ("over", "both, m2"),
    ],
)
def test_people_are_shown_who_may_be_asked(routes: Routes, model: str, places: str) -> None:
    assert routes.entry(model).nesting == ("Route", "Show", f"Choices of {places}")


def test_where_keys_alone_are_chosen_people_are_shown_what_follows(routes: Routes) -> None:
    nesting = routes.entry("m2").nesting
    assert nesting[:4] == ("Route", "Show", "Choices of m2", "Route")
    assert nesting[-3:] == ("Queue", "Rotation", "Compatible")


def test_a_model_can_answer_while_one_of_its_places_can(routes: Routes) -> None:
    there = {entry.id: entry.available for entry in routes.listing()}
    assert (there["rescued"], there["smart"], there["nobody"]) == (True, True, False)
    assert "NOT_SET" in routes.entry("nobody").reason


def test_the_public_models_defaults_are_as_the_clients_and_before_its_places(
    routes: Routes,
) -> None:
    def body(model: str) -> Json:
        return routes.find(model).plan(asked(model))[0].body

    assert body("m2")["temperature"] == 0.5
    assert (body("smart")["model"], body("smart")["temperature"]) == ("m1", 0.1)
    assert body("up/x")["model"] == "x"


PATTERNS = """
[models."other-*"]
upstream = "one"
name = "o-*"
fallback = ["up/*"]
[models."either/*"]
choices = ["other-*", "up/*", "m1"]
[models."nested/*"]
choices = ["either/*"]
[models.plain]
choices = ["either/x"]
"""


@pytest.mark.parametrize("model", ["other-x", "either/x", "nested/x", "plain"])
def test_what_stands_for_a_star_stands_for_those_of_its_places(model: str) -> None:
    found = build(config.parse(CONFIG + PATTERNS, environment={}), Transport())
    assert found.find(model).plan(asked(model))[0].body["model"] == "o-x"


def test_a_place_is_told_by_what_stands_for_its_star(routes: Routes) -> None:
    adapter = routes.find("up/x")
    assert Alternative("up/*", adapter, "u-*", asked="either/*").at("either/x") == ("up/x", "u-x")
    assert Alternative("m1", adapter, "m-1", asked="either/*").at("either/x") == ("m1", "m-1")


def test_a_pipeline_is_a_place_and_choices_are_its_parts(routes: Routes) -> None:
    for model in ("both", "over"):
        plans = routes.find(model).plan(asked(model))
        assert plans[0].upstream == "one"


def test_a_place_that_would_lose_a_field_is_passed_over_under_strict() -> None:
    text = '[server]\nstrict = true\n[upstreams.c]\nkind = "claude"\napi_key = "x"\n'
    text += '[models.c]\nupstream = "c"\nname = "claude-sonnet-4-5"\n'
    text += '[models.d]\nupstream = "c"\nname = "claude-haiku-4-5"\n'
    text += '[models.mixed]\nchoices = ["c", "m1"]\n[models.same]\nchoices = ["c", "d"]\n'
    found = build(config.parse(text + CONFIG, environment={}), Transport())
    assert found.find("mixed").plan(asked("mixed", seed=1))[0].upstream == "one"
    with pytest.raises(BadRequest) as caught:
        found.find("same").plan(asked("same", seed=1))
    assert (caught.value.code, caught.value.param) == ("no_choice", "seed")
    assert "c (lossy)" in caught.value.message


def test_what_any_place_can_do_the_model_can() -> None:
    parsed = config.parse(CONFIG, environment={})

    async def listed() -> dict[str, Json]:
        transport = Transport()
        try:
            found = await ModelList(parsed, build(parsed, transport)).entries(lambda _: True)
        finally:
            await transport.close()
        return {entry["id"]: entry for entry in found}

    models = asyncio.run(listed())
    assert "nobody" not in models
    assert models["smart"]["x_usetool"]["abilities"]["vision"] is True
    assert models["rescued"]["x_usetool"]["available"] is True


def test_a_circle_through_a_pipeline_is_a_mistake() -> None:
    text = CONFIG + '[models.a]\npipeline = "reason-then-answer"\nreasoner = "m1"\n'
    text += 'answerer = "b"\n[models.b]\nchoices = ["a", "m1"]\n'
    with pytest.raises(config.ConfigError, match="leads back to itself"):
        config.parse(text, environment={})
