"""The environment a command gets: all its clients ask the gateway, with no key that costs."""

from __future__ import annotations

import pytest

from adapters.kind import all_kinds
from middleware.cassettes.cassette import Mode
from middleware.cli.cassettes.environment import ChildRun, child_environment

HERE = "http://127.0.0.1:4711"
KEYS = ("ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY", "GROQ_API_KEY", "GOOGLE_API_KEY", "MY_MODEL")


def environment(
    outer: dict[str, str], mode: Mode = "replay", name: str = "t", recorded: str = "2026-11-18"
) -> dict[str, str]:
    return child_environment(outer, ChildRun(HERE, name, mode, recorded), ["MY_MODEL"])


@pytest.mark.parametrize("mode", ["replay", "record", "auto", "refresh"])
def test_clients_of_openai_find_the_gateway(mode: Mode) -> None:
    inner = environment({"PATH": "/bin", "OPENAI_API_KEY": "sk-real"}, mode)
    assert inner["PATH"] == "/bin"
    assert inner["OPENAI_BASE_URL"] == inner["OPENAI_API_BASE"] == f"{HERE}/v1"
    assert inner["OPENAI_HOST"] == inner["USETOOL_URL"] == HERE
    assert inner["OPENAI_API_KEY"] == "usetool~t"
    assert inner["USETOOL_CASSETTE"] == "t"
    assert inner["USETOOL_RECORDED_AT"] == "2026-11-18"
    assert "sk-real" not in inner.values()


def test_in_replay_other_clients_find_it_too_and_no_key_is_left() -> None:
    inner = environment(dict.fromkeys(KEYS, "sk-real"))
    assert {inner[name] for name in KEYS} == {"replayed"}
    assert inner["ANTHROPIC_BASE_URL"] == inner["OLLAMA_HOST"] == HERE
    assert inner["DEEPSEEK_BASE_URL"] == inner["DEEPSEEK_API_BASE"] == f"{HERE}/v1"


def test_every_service_that_answers_chats_is_known() -> None:
    chats = [kind for kind in all_kinds() if kind.connect]
    names = {one.variable for kind in chats for one in kind.services.values() if one.variable}
    inner = environment(dict.fromkeys(names, "sk-real"))
    assert len(names) > 10
    assert "sk-real" not in inner.values()


def test_tools_run_for_real_with_their_keys() -> None:
    inner = environment({"WEATHER_API_KEY": "w", "TAVILY_API_KEY": "s", "GITHUB_TOKEN": "g"})
    assert (inner["WEATHER_API_KEY"], inner["TAVILY_API_KEY"], inner["GITHUB_TOKEN"]) == tuple(
        "wsg"
    )


def test_no_service_seems_configured_that_was_not() -> None:
    inner = environment({})
    assert "GROQ_API_KEY" not in inner
    assert inner["ANTHROPIC_API_KEY"] == inner["DEEPSEEK_API_KEY"] == "replayed"


@pytest.mark.parametrize("mode", ["record", "auto", "refresh"])
def test_while_recording_other_services_are_the_commands_own(mode: Mode) -> None:
    outer = {**dict.fromkeys(KEYS, "sk-real"), "OLLAMA_HOST": "box:11434"}
    inner = environment(outer, mode)
    assert {inner[name] for name in KEYS} == {"sk-real"}
    assert inner["OLLAMA_HOST"] == "box:11434"
    assert "ANTHROPIC_BASE_URL" not in inner


def test_a_cassette_without_a_day_says_none() -> None:
    assert "USETOOL_RECORDED_AT" not in environment({"USETOOL_RECORDED_AT": "old"}, recorded="")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("agents/shop-1.0@a", "usetool~agents/shop-1.0@a"),
        ("沈阳", "usetool~%E6%B2%88%E9%98%B3"),
    ],
)
def test_a_key_is_fit_for_a_header_whatever_the_name(name: str, key: str) -> None:
    inner = environment({}, name=name)
    assert (inner["OPENAI_API_KEY"], inner["USETOOL_CASSETTE"]) == (key, name)


@pytest.mark.parametrize(
    ("outer", "upper", "lower"),
    [
        ({}, "127.0.0.1", "127.0.0.1"),
        ({"NO_PROXY": "a.test, b.test"}, "a.test, b.test,127.0.0.1", "a.test, b.test,127.0.0.1"),
        ({"no_proxy": "a.test"}, "a.test,127.0.0.1", "a.test,127.0.0.1"),
        ({"NO_PROXY": "a", "no_proxy": "b"}, "a,127.0.0.1", "b,127.0.0.1"),
        ({"NO_PROXY": "*"}, "*", "*"),
    ],
)
def test_the_gateway_is_asked_without_a_proxy(
    outer: dict[str, str], upper: str, lower: str
) -> None:
    inner = environment(outer)
    assert (inner["NO_PROXY"], inner["no_proxy"]) == (upper, lower)


def test_the_outer_environment_is_left_as_it_is() -> None:
    outer = {"OPENAI_API_KEY": "sk-real"}
    environment(outer)
    assert outer == {"OPENAI_API_KEY": "sk-real"}
