"""From a public model name to the request a leaf sees, and to the error of what is not there."""

from __future__ import annotations

import asyncio
import copy
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.compatible import Compatible
from adapters.errors import BadRequest, Busy, UnknownModel
from adapters.protocol import (
    Adapter,
    ChatRequest,
    Event,
    Events,
    Finish,
    Note,
    Opened,
    Planned,
    Receipt,
    TextDelta,
    Upstream,
)
from adapters.wire.http import Link, Timeouts, Transport
from middleware import config
from middleware.config import ConfigError
from middleware.routing import ModelEntry, Routes, build
from middleware.wrappers.emulation import EmulatedTools, Emulation
from middleware.wrappers.pipeline import ReasonThenAnswer
from middleware.wrappers.recall import Recall
from middleware.wrappers.retry import Retry
from middleware.wrappers.route import Changes, Layers, ModelUnavailable, Route, Strict, changes

HELLO = ({"role": "user", "content": "hello"},)
KEY = "sk-secret-of-ours-0123456789"
HEAD = '[upstreams.up]\nkind = "compatible"\nbase_url = "http://127.0.0.1:1/v1"\n'


@dataclass
class Echo:
    """A leaf that answers with the request it saw."""

    receipt: Receipt = ()

    async def stream(self, request: ChatRequest) -> Events:
        yield (Opened(self.receipt, Upstream("echo", request.model)), TextDelta("hi"))
        yield (Finish("stop"),)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        body = {"model": request.model, **request.params, **request.extra}
        return (Planned("echo", "http://echo", body, self.receipt),)


def routes(text: str, environment: Mapping[str, str] | None = None) -> Routes:
    return build(config.parse(HEAD + text, environment=environment or {}), Transport())


def asked(model: str = "m", **params: Any) -> ChatRequest:
    return ChatRequest(model, HELLO, params=params)


def planned(found: Routes, request: ChatRequest) -> Planned:
    (only,) = found.find(request.model).plan(request)
    return only


async def _all(events: Events) -> list[Event]:
    return [event async for batch in events for event in batch]


def events_of(route: Route, request: ChatRequest) -> list[Event]:
    return asyncio.run(_all(route.stream(request)))


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


# What stands around models whose servers read calls out of text.
NET = ("Automatic", "LeakRescue")

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
[models.guarded]
upstream = "up"
fallback = ["plain"]
"""


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("locked-x", "the environment variable GONE_KEY is not set"),
        ("thinking", "the environment variable GONE_KEY is not set"),
        ("guarded", "this version cannot do fallback yet"),
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


def test_a_module_that_is_no_leaf_makes_its_models_unavailable() -> None:
    found = routes(
        '[models.a]\nupstream = "bad"\n[upstreams.bad]\nkind = "errors"\nbase_url = "http://a"'
    )
    (entry,) = found.listing()
    assert entry.reason == "the module adapters.errors has no function connect(settings)"


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
        ("guarded", False, "up"),
    ]
    assert found[0] == ModelEntry(
        "plain", "up", True, "", "up", ("Route", "Show", *NET, "Retry", "Compatible")
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
    assert nestings["deep"] == ("Strict", "Show", "Recall", "Retry", "DeepSeek")
    assert nestings["own"] == ("Strict", "Show", "Recall", "Retry", "Claude")
    assert nestings["kept"] == ("Strict", "Show", "Recall", *NET, "Retry", "Compatible")
    assert nestings["both"] == ("Strict", "Show", "Recall", "ReasonThenAnswer")
    pipeline: Adapter = found.find("both")
    for _ in nestings["both"]:
        pipeline = pipeline.inner  # type: ignore[attr-defined]  # wrappers all have one
    assert isinstance(pipeline, ReasonThenAnswer)
    assert isinstance(pipeline.reasoner, Route)
    assert isinstance(pipeline.reasoner.inner, Recall)
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


def test_recall_can_be_off_for_one_model_or_for_all() -> None:
    text = '[models.a]\nupstream = "deep"\nrecall = false\n[upstreams.deep]\nkind = "deepseek"\n'
    assert routes(text).listing()[0].nesting == ("Route", "Show", "Retry", "DeepSeek")
    text = text.replace("recall = false\n", "") + '[recall]\nstore = "off"\n'
    assert routes(text).listing()[0].nesting == ("Route", "Show", "Retry", "DeepSeek")


# What a leaf sees ------------------------------------------------------------------------------


CHANGES = [
    ('defaults = {seed = 1}', {}, {"seed": 1}),
    ('defaults = {seed = 1}', {"seed": 2}, {"seed": 2}),
    ('defaults = {seed = 1}', {"seed": None}, {"seed": 1}),
    ('override = {seed = 1}', {"seed": 2}, {"seed": 1}),
    ('defaults = {seed = 1}\noverride = {seed = 3}', {}, {"seed": 3}),
    ('drop = ["seed"]', {"seed": 2, "user": "u"}, {"user": "u"}),
    ('drop = ["seed"]\ndefaults = {seed = 1}', {"seed": 2}, {"seed": 1}),
    ('defaults = {max_tokens = 1}', {"max_completion_tokens": 2}, {"max_completion_tokens": 2}),
    ('defaults = {max_completion_tokens = 1}', {"max_tokens": 2}, {"max_tokens": 2}),
    ('override = {max_tokens = 1}', {"max_completion_tokens": 2}, {"max_tokens": 1}),
]  # fmt: skip


def route_of(text: str, receipt: Receipt = ()) -> Route:
    found = config.parse(f'{HEAD}[models.m]\nupstream = "up"\nname = "n"\n{text}', environment={})
    return Route(Echo(receipt), "n", changes(found.models["m"]))


@pytest.mark.parametrize(("text", "sent", "seen"), CHANGES)
def test_defaults_stand_below_the_client_and_override_above(
    text: str, sent: dict[str, Any], seen: dict[str, Any]
) -> None:
    (call,) = route_of(text).plan(asked(**sent))
    assert call.body == {"model": "n", **seen}


def test_fields_openai_does_not_have_are_extras() -> None:
    route = route_of("defaults = {top_k = 5, seed = 1}\noverride = {think = true}")
    assert route.changes == Changes(
        Layers({"seed": 1}, {}), Layers({"top_k": 5}, {"think": True}), frozenset()
    )
    request = ChatRequest("m", HELLO, extra={"top_k": 9, "think": False})
    (call,) = route.plan(request)
    assert call.body == {"model": "n", "seed": 1, "top_k": 9, "think": True}


@pytest.mark.parametrize(
    ("drop", "tools", "choice"),
    [("tool_choice", 1, None), ("tools", 0, None), ("user", 1, "required")],
)
def test_tools_and_their_choice_can_be_dropped(drop: str, tools: int, choice: str | None) -> None:
    seen: list[ChatRequest] = []

    class Seer(Echo):
        def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
            seen.append(request)
            return ()

    made = Changes(Layers({}, {}), Layers({}, {}), frozenset({drop}))
    tool = {"type": "function", "function": {"name": "f"}}
    Route(Seer(), "n", made).plan(ChatRequest("m", HELLO, tools=(tool,), tool_choice="required"))
    assert (len(seen[0].tools), seen[0].tool_choice) == (tools, choice)


def test_what_the_config_drops_is_in_the_receipt_if_it_was_sent() -> None:
    own = (Note("lost", "x", "y"),)
    route = route_of('drop = ["seed", "top_k", "user", "tools"]', own)
    request = ChatRequest("m", HELLO, params={"seed": 1, "user": None}, extra={"top_k": 2})
    dropped = tuple(
        Note("dropped_by_config", name, "the gateway's config drops it")
        for name in ("seed", "top_k")
    )
    opened = events_of(route, request)[0]
    assert isinstance(opened, Opened)
    assert opened.receipt == dropped + own
    assert route.plan(request)[0].receipt == dropped + own


def test_a_request_is_never_changed_in_place() -> None:
    request = ChatRequest("m", HELLO, params={"seed": 1, "stop": ["a"]}, extra={"top_k": 2})
    before = copy.deepcopy(request)
    route_of('drop = ["seed"]\noverride = {stop = ["b"], think = true}').plan(request)
    assert request == before


def test_without_a_note_to_add_the_leaf_is_heard_directly() -> None:
    """A layer of generator would cost every event; the price of a name is one `replace`."""

    class Direct(Echo):
        def __init__(self) -> None:
            super().__init__()
            self.events: list[Events] = []

        def stream(self, request: ChatRequest) -> Events:
            self.events.append(super().stream(request))
            return self.events[-1]

    leaf = Direct()
    for made in (None, Changes(Layers({"seed": 1}, {}), Layers({}, {}), frozenset({"user"}))):
        assert Route(leaf, "n", made).stream(asked()) is leaf.events[-1]


# Strict ----------------------------------------------------------------------------------------


def test_strict_refuses_what_would_be_lost_and_names_all_of_it() -> None:
    receipt = (Note("a", "seed", "no seeds"), Note("b", "stop[1]", "too many"))
    for ask in (Strict(Echo(receipt)).plan, Strict(Echo(receipt)).stream):
        with pytest.raises(BadRequest) as caught:
            ask(asked())
        assert (caught.value.status, caught.value.code) == (400, "unsupported_parameter")
        assert caught.value.param == "seed"
        assert "'seed' (no seeds); 'stop[1]' (too many)" in caught.value.message


def test_strict_lets_a_lossless_request_through() -> None:
    assert events_of(Route(Strict(Echo()), "n"), asked())[-1] == Finish("stop")


def test_strict_stands_around_the_leaf_so_what_the_operator_drops_is_no_mistake() -> None:
    text = '[server]\nstrict = true\n[models.m]\nupstream = "up"\ndrop = ["seed"]\n'
    found = routes(text)
    assert found.listing()[0].nesting == ("Route", "Strict", "Show", *NET, "Retry", "Compatible")
    assert "seed" not in planned(found, asked(seed=1)).body


# What an upstream is told ----------------------------------------------------------------------


def link_of(text: str) -> Link:
    given = f'[upstreams.up]\n{text}\n[models.m]\nupstream = "up"\n'
    found = config.parse(given, environment={"MY_KEY": "sk-a-key-of-mine"})
    route = build(found, Transport()).find("m")
    retry: Any = route
    while not isinstance(retry, Retry):
        retry = retry.inner
    assert isinstance(retry.inner, Compatible)
    return retry.inner.link


OPEN = 'kind = "compatible"\nbase_url = "http://127.0.0.1:1/v1"\n'


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (f'api_key = "{KEY}"', "authorization", f"Bearer {KEY}"),
        (f'api_key = "{KEY}"\nauth = "x-api-key"', "x-api-key", KEY),
        ('headers = {X-Team = "a"}', "x-team", "a"),
        ('headers = {User-Agent = "b"}', "user-agent", "b"),
        ("", "content-type", "application/json"),
        ("", "accept-encoding", "identity"),
        ("", "authorization", None),
    ],
)
def test_headers_of_every_call(text: str, name: str, value: str | None) -> None:
    assert link_of(OPEN + text).headers.get(name) == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            'api_key = "env:MY_KEY"',
            "The key comes from env:MY_KEY. `usetool check --live` tries it.",
        ),
        (f'api_key = "{KEY}"', "The key comes from 'api_key' in the config. `usetool check"),
        ('headers = {Authorization = "env:MY_KEY"}', "The key comes from env:MY_KEY."),
        ('headers = {X-Team = "env:MY_KEY"}', 'No key is sent: write api_key = "env:NAME" under'),
        ('api_key = "client"', "The key is the one that the client sent."),
        ("", "No key is sent"),
    ],
)
def test_a_key_that_is_refused_is_told_by_its_place(text: str, told: str) -> None:
    link = link_of(OPEN + text)
    assert link.key_from.startswith(told)
    assert not any(secret in link.key_from for secret in link.secrets)


def test_timeouts_reach_the_transport() -> None:
    link = link_of(OPEN + "timeouts = {idle = 7, first_event = 8}")
    assert link.timeouts == Timeouts(idle=7, idle_open=7, first_event=8, plain=8)


def test_secrets_are_known_to_the_transport_and_shown_by_nothing() -> None:
    link = link_of(OPEN + f'api_key = "{KEY}"\nheaders = {{a = "k"}}')
    assert link.secrets == (KEY,)
    assert KEY not in repr(link)


def test_a_name_of_any_length_is_no_key_of_what_is_learned() -> None:
    found = routes('[models."*"]\nupstream = "up"')
    assert isinstance(found.find("x" * 256), Route)
    with pytest.raises(UnknownModel) as caught:
        found.find("x" * 257)
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("kind", ["text", "database", "folder", "pipe"])
def test_memories_are_not_put_into_a_file_of_somebody_else(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mine"
    match kind:
        case "text":
            path.write_text("a letter")
        case "database":
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("CREATE TABLE orders (id)")
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path) if hasattr(os, "mkfifo") else path.mkdir()
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ConfigError) as caught:
        routes(f'[models.m]\nupstream = "up"\n[recall]\npath = "{path}"')
    ((key, why, _),) = caught.value.mistakes
    assert key == "recall.path"
    assert str(path) in why
    assert "name another file" in why
    assert (path.read_bytes() if path.is_file() else None) == before
