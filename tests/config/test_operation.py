"""Clients, choices, keys in rotation, state: what their keys mean, and how mistakes are named."""

from __future__ import annotations

import pytest

from middleware import config
from tests.config.reading import mistakes

UP = "[upstreams.a]\nkind = 'claude'\napi_key = 'k'\n[models.one]\nupstream = 'a'\n"
TWO = UP + "[models.two]\nupstream = 'a'\n"


def test_several_keys_are_in_rotation_and_one_that_is_set_is_enough() -> None:
    text = UP.replace("'k'", "['env:A', 'env:B']")
    upstream = config.parse(text, environment={"A": "secret"}).upstreams["a"]
    assert [key.value for key in upstream.rotation] == ["secret", ""]
    assert upstream.api_key is None
    assert upstream.missing() == ()
    assert config.parse(text, environment={}).upstreams["a"].missing() == ("A", "B")


def test_a_list_of_one_key_is_one_key() -> None:
    upstream = config.parse(UP.replace("'k'", "['k']"), environment={}).upstreams["a"]
    assert upstream.rotation == ()
    assert upstream.api_key is not None


def test_a_client_has_no_limits_unless_it_is_given_some() -> None:
    text = f"{UP}[clients.app]\nkey = 'c'\nbudget = '2.5 USD/day'\nconcurrent = 3\n"
    client = config.parse(text, environment={}).clients["app"]
    assert (client.models, client.admin, client.concurrent) == ((), False, 3)
    assert client.requests_per_minute is client.tokens_per_minute is None
    assert client.budget == (2.5, "day")


def test_memories_stay_in_a_file_where_one_is_named() -> None:
    read = config.parse(UP + "[recall]\npath = 'memories.db'\n", environment={})
    assert read.recall.store == "file"


def test_an_address_with_a_password_may_stand_in_the_environment() -> None:
    text = f"{UP}[state]\nurl = 'env:A'\n[ledger]\nurl = 'env:B'\n"
    addresses = {"A": "redis://:p@redis:6379/0", "B": "postgresql://u:p@db/usage"}
    read = config.parse(text, environment=addresses)
    assert (read.state.url, read.ledger.url) == (addresses["A"], addresses["B"])


def test_clients_open_the_gateway_to_other_machines_as_keys_do() -> None:
    text = f"[server]\nhost = '0.0.0.0'\n{UP}"
    assert mistakes(text)
    assert config.parse(f"{text}[clients.app]\nkey = 'c'\n", environment={}).asks_keys


MISTAKES = [
    ("[clients.app]\nadmin = true", "clients.app.key", 'write key = "env:NAME"'),
    ("[clients.app]\nkey = 'env:GONE'", "clients.app.key", "GONE is not set"),
    ("[clients.a]\nkey = 'k'\n[clients.b]\nkey = 'k'", "clients.b.key", "same as the key of"),
    (
        "[clients.a]\nkey = 'k'\nmodels = ['dmeo']",
        "clients.a.models",
        "has 'dmeo', but there",
    ),
    ("[clients.default]\nkey = 'k'", "clients.default", "[server] keys: take another"),
    ("[clients.a]\nkey = 'k'\nbudget = '10/day'", "clients.a.budget", "10 USD/day"),
    ("[clients.a]\nkey = 'k'\nbudget = '0 USD/day'", "clients.a.budget", "10 USD/day"),
    ("[clients.a]\nkey = 'k'\nconcurrent = 0", "clients.a.concurrent", "1 or more"),
    ("[clients.a]\nkey = 'k'\nmodels = ['tow']", "clients.a.models", "Did you mean 'two'?"),
    ("[state]\nurl = 'mysql://x'", "state.url", "sqlite:///"),
    ("[state]\nurl = 'sqlite:///'", "state.url", "the path of the file is missing"),
    ("[state]\nurl = 'env:GONE'", "state.url", "variable GONE is not set"),
    ("[state]\nsecret = 'env:GONE'", "state.secret", "variable GONE is not set"),
    ("[ledger]\nurl = 'redis://x'", "ledger.url", "postgresql://"),
    ("[telemetry]\notlp = 'collector:4318'", "telemetry.otlp", "scheme is missing"),
    ("[server]\nworkers = 0", "server.workers", "from 1 to 256"),
    ("[models.x]\nchoices = ['one', 'tow']", "models.x.choices", "Did you mean 'two'?"),
    (
        "[models.'any-*']\nupstream = 'a'\n[models.x]\nchoices = ['any-*']",
        "models.x.choices",
        "'x' has no * to fill it",
    ),
    ("[models.x]\nchoices = ['one', 'one']", "models.x.choices", "has a name twice"),
    ("[models.x]\nchoices = ['one']\nupstream = 'a'", "models.x.upstream", "have their own"),
    ("[models.x]\nchoices = ['one', 'two']\nweights = [1]", "models.x.weights", "1 numbers for 2"),
    ("[models.x]\nchoices = ['one']\nweights = [0]", "models.x.weights", "all of them are 0"),
    ("[models.x]\nupstream = 'a'\nweights = [1]", "models.x.weights", "for models with choices"),
    ("[models.x]\nupstream = 'a'\nfallback = ['x']", "models.x.fallback", "leads back to itself"),
    (
        "[models.x]\nchoices = ['y']\n[models.y]\nchoices = ['x']",
        "models.x.choices",
        "leads back to itself: x → y → x",
    ),
    (
        "[models.x]\npipeline = 'reason-then-answer'\nreasoner = 'one'\nanswerer = 'two'\n"
        "fallback = ['x']",
        "models.x.fallback",
        "leads back to itself: x → x",
    ),
    ("[models.x]\nupstream = 'a'\nprice = 3", "models.x.price", "USD a million"),
    ("[models.x]\nupstream = 'a'\nprice = { inptu = 1 }", "models.x.price", "'inptu' is none"),
    ("[models.x]\nupstream = 'a'\nprice = { input = '1' }", "models.x.price", "input has to be a"),
]


@pytest.mark.parametrize(("text", "key", "said"), MISTAKES)
def test_a_mistake_is_named_with_its_key(text: str, key: str, said: str) -> None:
    assert said in mistakes(TWO + text)[key]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[]", "the list is empty"),
        ("['k', 'client']", "stands alone"),
        ("['']", "it is empty"),
        ("['k', 'l', 'k']", "the same key twice"),
    ],
)
def test_keys_that_cannot_rotate_are_refused(written: str, said: str) -> None:
    found = mistakes(UP.replace("'k'", written))
    assert said in found["upstreams.a.api_key"]


MEMORY = 'is "memory'
OF_ONE_PROCESS = [
    ("[cassettes]\nmode = 'record'", "cassettes", "one process that counts"),
    ("[state]\nurl = 'memory:'", "state.url", MEMORY),
    ("[recall]\nstore = 'memory'", "recall.store", MEMORY),
    ("[upstreams.e]\nkind = 'local'", "upstreams.e.kind", "each process would load"),
]


@pytest.mark.parametrize(("text", "key", "said"), OF_ONE_PROCESS)
def test_what_several_workers_cannot_have_together_is_named(text: str, key: str, said: str) -> None:
    found = mistakes(f"[server]\nworkers = 2\n{UP}{text}\n")
    assert said in found[key]
    assert "[server] workers is 2" in found[key]
    config.parse(f"{UP}{text}\n", environment={})
