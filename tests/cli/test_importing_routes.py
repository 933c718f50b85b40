"""What LiteLLM's router, clients and Redis become: choices, fallbacks, keys, limits, state."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from middleware import config
from middleware.cli.importers.collecting import lost_lines
from middleware.cli.importers.litellm import Imported, from_litellm
from tests.cli.test_import_command import VALUES

ADDRESS = "redis://:secret@redis.lan:6379"
SET = {"REDIS_URL": ADDRESS, "MASTER": "sk-m-0123456789", "A": "redis://a", "B": "key-b"}


def imported(deployments: list[dict[str, Any]], **sections: Any) -> Imported:
    """Each deployment is its `litellm_params`, beside them its name."""
    entries = [
        {"model_name": each.pop("name"), "model_info": each.pop("info", {}), "litellm_params": each}
        for each in ({**one} for one in deployments)
    ]
    found = from_litellm(yaml.safe_dump({"model_list": entries, **sections}), "proxy.yaml", SET)
    config.parse(found.text, environment=SET)  # whatever comes out is valid
    return found


def models_of(found: Imported) -> dict[str, dict[str, Any]]:
    models: dict[str, dict[str, Any]] = tomllib.loads(found.text)["models"]
    return models


def told(found: Imported) -> list[str]:
    return lost_lines(found.lost)


TWO = [
    {"name": "gpt", "model": "openai/gpt-5", "api_key": "os.environ/A", "rpm": 30, "tpm": 9},
    {"name": "gpt", "model": "groq/gpt-oss", "api_key": "os.environ/B", "rpm": 10},
]
NO_RATES = "an upstream has no rates here: one that answers 429 rests, and clients have limits"


def test_several_deployments_of_a_name_are_its_choices_by_their_first_measure() -> None:
    found = imported(TWO)
    models = models_of(found)
    assert models["gpt"] == {
        "choices": ["gpt-openai", "gpt-groq"], "pick": "weight", "weights": [30, 10],
    }  # fmt: skip
    assert models["gpt-groq"] == {"upstream": "groq", "name": "gpt-oss"}
    assert told(found) == [f"litellm_params.tpm of gpt: {NO_RATES}"]


def test_a_weight_goes_before_rates_and_none_at_all_is_the_same_for_all() -> None:
    first, second = TWO
    found = imported([first | {"weight": 0}, second | {"weight": 2}])
    assert models_of(found)["gpt"]["weights"] == [0, 2]
    plain = [{k: v for k, v in one.items() if k not in ("rpm", "tpm")} for one in TWO]
    assert "weights" not in models_of(imported(plain))["gpt"]
    assert told(imported(plain)) == []


@pytest.mark.parametrize(
    ("strategy", "pick"),
    [
        ("least-busy", "busy"),
        ("latency-based-routing", "latency"),
        ("cost-based-routing", "cost"),
        ("usage-based-routing-v2", "weight"),
    ],
)
def test_a_routing_strategy_is_a_pick(strategy: str, pick: str) -> None:
    found = imported(TWO, router_settings={"routing_strategy": strategy})
    assert models_of(found)["gpt"]["pick"] == pick
    assert any("usage-based-routing-v2 has no counterpart" in one for one in told(found)) is (
        pick == "weight"
    )
    assert ("weights" in models_of(found)["gpt"]) is (pick == "weight")


def test_deployments_with_an_order_each_are_asked_in_it() -> None:
    first, second = TWO
    models = models_of(imported([first | {"order": 2}, second | {"order": 1}]))
    assert models["gpt"] == {"choices": ["gpt-groq", "gpt-openai"], "pick": "order"}


def test_deployments_of_a_later_order_stand_in_for_the_first() -> None:
    third = {"name": "gpt", "model": "mistral/large", "api_key": "os.environ/A", "order": 2}
    models = models_of(imported([*({**one, "order": 1} for one in TWO), third]))
    assert models["gpt"] == {
        "choices": ["gpt-openai", "gpt-groq"], "pick": "weight", "weights": [30, 10],
        "fallback": ["gpt-mistral"],
    }  # fmt: skip


def test_keys_of_one_endpoint_are_a_list() -> None:
    same = [{"name": "gpt", "model": "openai/gpt-5", "api_key": f"os.environ/{k}"} for k in "ABA"]
    found = imported(same)
    written = tomllib.loads(found.text)
    assert written["upstreams"]["openai"]["api_key"] == ["env:A", "env:B"]
    assert written["models"] == {"gpt": {"upstream": "openai", "name": "gpt-5"}}
    assert told(found) == []


def test_a_name_with_a_star_keeps_its_first_deployment() -> None:
    found = imported([{"name": "x/*", "model": "openai/*"}, {"name": "x/*", "model": "groq/*"}])
    assert models_of(found) == {"x/*": {"upstream": "openai", "name": "*"}}
    assert told(found) == [
        "model_list of x/*: a second deployment: a name with a * has one upstream here"
    ]


ABC = [{"name": name, "model": f"openai/{name}"} for name in ("a", "b", "c")]


def test_fallbacks_of_every_kind_are_joined() -> None:
    found = imported(
        [*ABC, {"name": "e", "model": "openai/e", "info": {"mode": "embedding"}}],
        litellm_settings={"context_window_fallbacks": [{"a": ["c"]}], "default_fallbacks": ["c"]},
        router_settings={
            "fallbacks": [{"a": ["b", {"model": "nowhere", "temperature": 1}]}],
            "content_policy_fallbacks": [{"a": ["b"]}],
            "model_group_alias": {"again": "a"},
        },
    )
    fallbacks = {name: model.get("fallback") for name, model in models_of(found).items()}
    assert fallbacks == {"a": ["b", "c"], "b": ["c"], "c": None, "e": None, "again": ["b", "c"]}
    assert told(found) == [
        "fallbacks of a, again: there is no model 'nowhere'",
        "router_settings.content_policy_fallbacks: a refusal is an answer here, and nobody else "
        "is asked",
    ]


def test_models_that_stand_in_for_each_other_are_no_circle() -> None:
    pairs = [{"a": ["b"]}, {"b": ["a", "c"]}, {"nowhere": ["a"]}]
    found = imported(ABC, router_settings={"fallbacks": pairs})
    models = models_of(found)
    assert (models["a"]["fallback"], models["b"]["fallback"]) == (["b"], ["c"])
    assert told(found) == [
        "fallbacks of b: 'a' has it as its own, which would be a circle",
        "fallbacks of nowhere: there is no such model (a)",
    ]


def test_a_fallback_of_a_name_behind_a_star_gets_a_model_of_its_own() -> None:
    found = imported(
        [*ABC, {"name": "x/*", "model": "groq/*"}],
        router_settings={"fallbacks": [{"x/llama": ["a"]}]},
    )
    assert models_of(found)["x/llama"] == {"upstream": "groq", "name": "llama", "fallback": ["a"]}


def test_prices_and_what_a_model_can_do_are_the_models() -> None:
    info = {
        "input_cost_per_token": 3e-06, "output_cost_per_token": "0.000015",
        "cache_read_input_token_cost": 3e-07, "max_input_tokens": 200000,
        "supports_response_schema": True, "input_cost_per_second": 1,
    }  # fmt: skip
    found = imported([{**ABC[0], "max_parallel_requests": 4, "info": info}])
    written = tomllib.loads(found.text)
    assert written["models"]["a"] == {
        "upstream": "openai", "json_schema": True, "context_length": 200000,
        "price": {"input": 3.0, "output": 15.0, "cached": 0.3},
    }  # fmt: skip
    assert written["upstreams"]["openai"]["max_concurrent"] == 4
    assert [one.key for one in found.lost] == ["model_info.input_cost_per_second"]


def test_the_master_key_is_an_administrator_with_what_is_limited_for_all() -> None:
    found = imported(
        ABC,
        general_settings={
            "master_key": "os.environ/MASTER", "max_parallel_requests": 8,
            "global_max_parallel_requests": 100, "database_url": "postgresql://u:p@db/litellm",
        },
        litellm_settings={"max_budget": 50, "budget_duration": "30d"},
    )  # fmt: skip
    read = config.parse(found.text, environment=SET)
    client = read.clients["admin"]
    assert (client.admin, client.budget, client.concurrent) == (True, (50.0, "month"), 8)
    assert (client.key.variable, read.server.keys) == ("MASTER", ())
    assert read.server.max_concurrent == 100
    assert [one.key for one in found.lost] == ["general_settings.database_url"]
    assert "u:p@db" not in found.text


def test_limits_without_a_client_are_told() -> None:
    found = imported(
        ABC, litellm_settings={"max_budget": 5, "budget_duration": "5h"},
        general_settings={"max_parallel_requests": 8},
    )  # fmt: skip
    assert "[clients" not in found.text
    assert told(found) == [
        "litellm_settings.budget_duration: is no hour, day, week or month; budgets have those",
        "general_settings.max_parallel_requests: there is no master_key, so nobody here has a "
        "budget or limits",
    ]


def test_keys_that_litellm_made_get_a_section_begun() -> None:
    made = {"rpm_limit": 60, "tpm_limit": 1000, "max_parallel_requests": 2, "models": ["a"],
            "max_budget": 2.5, "budget_duration": "1d", "duration": "30d"}  # fmt: skip
    found = imported(ABC, litellm_settings={"default_key_generate_params": made})
    begun = found.text.partition("# For each key that LiteLLM made:\n")[2].partition("\n\n")[0]
    text = "\n".join(line.removeprefix("# ") for line in begun.splitlines())
    assert tomllib.loads(text)["clients"]["NAME"] == {
        "key": "env:NAME_KEY", "models": ["a"], "requests_per_minute": 60,
        "tokens_per_minute": 1000, "concurrent": 2, "budget": "2.5 USD/day",
    }  # fmt: skip
    assert [one.key for one in found.lost] == [
        "litellm_settings.default_key_generate_params",
        "litellm_settings.default_key_generate_params.duration",
    ]


@pytest.mark.parametrize(
    ("sections", "url"),
    [
        ({"router_settings": {"redis_host": "redis.lan"}}, "redis://redis.lan:6379"),
        ({"router_settings": {"redis_url": "redis://redis.lan/1"}}, "redis://redis.lan/1"),
        ({"router_settings": {"redis_url": "os.environ/REDIS_URL"}}, "env:REDIS_URL"),
        ({"router_settings": {"redis_url": ADDRESS}}, "env:REDIS_URL"),
        ({"router_settings": {"redis_host": "redis.lan", "redis_port": 1, "redis_password": "p"}},
         "env:REDIS_URL"),
        ({"general_settings": {"coordination_redis": {"host": "h", "port": 7, "ssl": True}}},
         "rediss://h:7"),
        ({"litellm_settings": {"cache": True, "cache_params": {"type": "redis", "host": "h"}}},
         "redis://h:6379"),
        ({"litellm_settings": {"cache": True, "cache_params": {"type": "local"}}}, None),
        ({"router_settings": {"redis_url": "h 6379"}}, None),
        ({"router_settings": {"redis_host": "os.environ/UNSET"}}, None),
    ],
)  # fmt: skip
def test_a_redis_is_the_state(sections: dict[str, Any], url: str | None) -> None:
    found = imported(ABC, **sections)
    assert tomllib.loads(found.text).get("state", {}).get("url") == url
    assert "secret" not in found.text + "\n".join(told(found))


def test_a_password_of_redis_is_told_with_the_variable_to_set() -> None:
    settings = {"redis_host": "redis.lan", "redis_password": "os.environ/B"}
    assert told(imported(ABC, router_settings=settings)) == [
        "router_settings.redis_password: is not copied: set the environment variable REDIS_URL to "
        "the address, redis://:PASSWORD@redis.lan:6379"
    ]


SECTION = some.dictionaries(
    some.sampled_from(
        ["routing_strategy", "fallbacks", "context_window_fallbacks", "default_fallbacks",
         "model_group_alias", "redis_url", "redis_host", "redis_port", "redis_password",
         "cache_params", "coordination_redis", "max_budget", "budget_duration", "num_retries",
         "default_key_generate_params", "max_parallel_requests", "default_max_parallel_requests",
         "global_max_parallel_requests"]
    ),
    VALUES | some.just([{"gpt": ["a", "gpt"]}, {"*": ["b"]}]),
)  # fmt: skip
SHARE = some.dictionaries(
    some.sampled_from(["weight", "rpm", "tpm", "order", "max_parallel_requests", "api_key"]),
    some.integers(-1, 3) | some.floats() | some.sampled_from(["2", "os.environ/A", "no", True]),
)


@settings(max_examples=40)
@given(SECTION, SECTION, SECTION, some.lists(SHARE, min_size=2, max_size=4))
def test_whatever_stands_in_the_settings_the_config_is_valid(
    router: dict[str, Any],
    library: dict[str, Any],
    general: dict[str, Any],
    shares: list[dict[str, Any]],
) -> None:
    gpt = [{"name": "gpt", "model": "openai/gpt-5", **share} for share in shares]
    given = {"litellm_settings": library, "general_settings": general}
    found = imported([*ABC, *gpt], router_settings=router, **given)
    assert {"a", "b", "c", "gpt"} <= {*found.models}
