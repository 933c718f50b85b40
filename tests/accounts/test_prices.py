"""What an answer costs, to the last digit."""

from __future__ import annotations

import pytest

from adapters.protocol import Usage
from middleware.accounts.prices import FREE, Prices
from middleware.doors.x_usetool import cost_header
from tests.accounts.counting import parsed

MODELS = """
[upstreams.cloud]
kind = "compatible"
base_url = "http://cloud.test/v1"
[upstreams.own]
kind = "ollama"
[upstreams.claude]
kind = "claude"
api_key = "k"
[models.dear]
upstream = "cloud"
name = "dear-1"
price = { input = 3.0, output = 15.0, cached = 0.3, cache_write = 3.75, reasoning = 20.0 }
[models.plain]
upstream = "cloud"
name = "plain-1"
price = { input = 3.0, output = 15.0 }
[models.gift]
upstream = "cloud"
name = "gift-1"
price = { input = 3.0, output = 15.0, cached = 0.0, cache_write = 0.0 }
[models.unheard]
upstream = "cloud"
name = "nobody-knows-this"
[models.local]
upstream = "own"
name = "gpt-4o"
[models."cloud/*"]
upstream = "cloud"
name = "*"
[models.sonnet]
upstream = "claude"
name = "claude-sonnet-4-5"
[upstreams.deep]
kind = "deepseek"
api_key = "k"
[models.deep]
upstream = "deep"
name = "deepseek-chat"
[models.both]
choices = ["plain", "dear"]
[models.thinker]
pipeline = "reason-then-answer"
reasoner = "unheard"
answerer = "both"
"""
PRICES = Prices(parsed(MODELS))
COSTS: tuple[tuple[str, Usage, str], ...] = (
    ("dear", Usage(0, 0), "0"),
    ("dear", Usage(1, 0), "0.000003"),
    ("dear", Usage(1000, 100), "0.0045"),
    ("dear", Usage(1000, 100, cached=1000), "0.0018"),
    ("dear", Usage(1000, 100, cached=600, cache_write=300), "0.003105"),
    ("dear", Usage(1000, 100, reasoning=40), "0.0047"),
    ("dear", Usage(90001, 4007, cached=70003, reasoning=2500), "0.1535999"),
    ("plain", Usage(1000, 100, cached=600, cache_write=300, reasoning=40), "0.0045"),
    ("gift", Usage(1000, 100, cached=600, cache_write=300), "0.0018"),
    ("local", Usage(1000, 100), "0"),
    ("cloud/gpt-4o-mini", Usage(1, 1), "0.00000075"),
    ("cloud/gpt-4o-mini", Usage(1000, 1000, cached=400), "0.00072"),
    ("sonnet", Usage(1000, 100, cached=600, cache_write=300), "0.003105"),
    # LiteLLM says 0 for writing where it means that nothing is asked for it beside the input.
    ("deep", Usage(1000, 0, cache_write=1000), "0.00028"),
    # More than the prompt has, or thoughts than the answer has: an upstream's mistake.
    ("dear", Usage(10, 5, cached=20), "0.000081"),
    ("dear", Usage(0, 5, reasoning=9), "0.0001"),
)


@pytest.mark.parametrize(("model", "usage", "cost"), COSTS)
def test_tokens_cost_what_their_kind_costs(model: str, usage: Usage, cost: str) -> None:
    price = PRICES.of(model)
    assert price is not None
    assert cost_header(price.cost(usage)) == cost


@pytest.mark.parametrize("model", ["unheard", "cloud/nobody-knows-this", "absent", "both"])
def test_what_nobody_knows_has_no_price(model: str) -> None:
    assert PRICES.of(model) is None


@pytest.mark.parametrize(
    ("model", "of"), [("dear", "dear"), ("both", "plain"), ("thinker", "plain")]
)
def test_a_model_made_of_others_is_expected_to_cost_what_its_first_does(
    model: str, of: str
) -> None:
    assert PRICES.expected(model) == PRICES.of(of)


def test_names_of_strangers_are_not_kept_without_end() -> None:
    prices = Prices(parsed(MODELS))
    for number in range(10_000):
        prices.of(f"cloud/{number}")
    assert len(prices._found) < 5_000


def test_a_cost_of_nothing_has_no_sign() -> None:
    cost = FREE.cost(Usage(0, -3))
    assert str(cost) == "0.0"
