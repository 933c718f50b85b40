"""What a config may say by the kind of an upstream: every key and value is checked against it."""

from __future__ import annotations

import pytest

from adapters.kind import Kind, all_kinds, find_kind, kind_names
from adapters.ollama import KIND, Ollama
from adapters.protocol import Adapter
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.wrappers.base import Wrapper
from middleware.wrappers.emulation.emulated import EmulatedTools
from tests.config.reading import mistakes

UP = '[upstreams.up]\nkind = "{}"\nbase_url = "http://up"\n'
MODEL = '[models.a]\nupstream = "up"\n'
OLLAMA = UP.format("ollama")
MISTAKES = [
    ("an ability", OLLAMA, "abilities = {{ visoin = false }}", "Did you mean 'vision'?"),
    ("an option", OLLAMA, "options = {{ reaks = 0 }}", "Did you mean 'reask'?"),
    ("of its kind", OLLAMA, "options = {{ max_tokns = 5 }}", "Did you mean 'max_tokens'?"),
    ("a value", OLLAMA, "options = {{ reask = 9 }}", "from 0 to 1"),
    ("a value of its kind", OLLAMA, "options = {{ keep_alive = [] }}", 'such as "10m"'),
    (
        "another kind's",
        UP.format("claude"),
        "options = {{ num_ctx = 5 }}",
        "for upstreams of kind ollama or local. There are: max_tokens",
    ),
    ("no dialect", UP.format("compatible"), "abilities = {{ custom_tool = true }}", "custom_tools"),
]


@pytest.mark.parametrize(
    ("where", "upstream", "line", "words"),
    [
        (where, *rest)
        for _, *rest in MISTAKES
        for where in ("models.a", "upstreams.up")
        if where == "models.a" or not rest[1].startswith("abilities")
    ],
)
def test_a_wrong_option_or_ability_is_a_mistake_with_a_way_out(
    where: str, upstream: str, line: str, words: str
) -> None:
    line = line.replace("{{", "{").replace("}}", "}")
    text = f"{MODEL}{line}\n{upstream}" if where == "models.a" else f"{MODEL}{upstream}{line}\n"
    place, _, rest = line.partition(" = { ")
    ((key, said),) = mistakes(text).items()
    assert key == f"{where}.{place}.{rest.partition(' ')[0]}"
    assert words in said


def emulation_of(model: str, upstream: str) -> tuple[object, ...]:
    text = f'{MODEL}tools = "emulated"\n{model}{UP.format("compatible")}{upstream}'
    adapter: Adapter = build(config.parse(text, environment={}), Transport()).find("a")
    while isinstance(adapter, Wrapper) and not isinstance(adapter, EmulatedTools):
        adapter = adapter.inner
    assert isinstance(adapter, EmulatedTools)
    return adapter.options.constraint, adapter.options.reask, adapter.options.hold


def test_options_of_an_upstream_reach_emulation_and_a_models_own_outrank_them() -> None:
    said = 'options = { constraint = "off", reask = 0 }\n'
    assert emulation_of("", said) == ("off", 0, 64)
    assert emulation_of("options = { reask = 1 }\n", said) == ("off", 1, 64)
    assert emulation_of("hold = 9\n", said) == ("off", 0, 9)


def test_one_merge_model_over_upstream_over_the_kinds_default() -> None:
    text = f"{MODEL}num_ctx = 7\n{OLLAMA}options = {{ num_ctx = 5, keep_alive = 3 }}\n"
    leaf = build(config.parse(text, environment={}), Transport()).leaf("a")[1]
    assert isinstance(leaf, Ollama)
    assert (leaf.options.num_ctx, leaf.options.keep_alive, leaf.options.max_tokens) == (7, 3, None)


def test_what_is_for_another_kind_may_stand_beside_a_models_keys() -> None:
    text = f"{MODEL}num_ctx = 7\nmax_tokens = 5\n{UP.format('claude')}"
    assert config.parse(text, environment={}).models["a"].options == {"max_tokens": 5}
    assert "1 or more" in mistakes(text.replace("7", "0"))["models.a.num_ctx"]


def test_every_package_has_a_kind_of_its_own_name() -> None:
    found = [find_kind(name) for name in kind_names()]
    assert [kind.name for kind in found if isinstance(kind, Kind)] == list(kind_names())
    assert len(all_kinds()) == len(found)


@pytest.mark.parametrize(
    ("name", "has"),
    [("able:8b", True), ("able", False), ("tiny", True), ("large:1t-cloud", True), ("x", False)],
)
def test_only_ollama_answers_to_names_it_does_not_list(name: str, has: bool) -> None:
    listed = ("able:8b", "tiny:latest")
    assert KIND.has_model(listed, name) is has
    assert Kind(name="other", about="Another.").has_model(listed, name) is (name in listed)
