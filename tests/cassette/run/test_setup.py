"""What the environment says where neither the command nor the request does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from middleware.__main__ import main
from middleware.cassettes.setup import studio_of
from middleware.config import ConfigError, read


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def test_the_environment_names_mode_and_cassette_before_the_config() -> None:
    config = read({"cassettes": {"mode": "replay"}}, "t")
    with environment(USETOOL_MODE="record", USETOOL_CASSETTE="shop"):
        settings = studio_of(config, print).settings
    assert (settings.mode, settings.name) == ("record", "shop")
    assert studio_of(config, print).settings.mode == "replay"


def test_the_environment_counts_more_than_what_a_model_says() -> None:
    model = {"upstream": "s"}
    said = {
        "cassettes": {"mode": "replay"},
        "upstreams": {"s": {"kind": "scripted"}},
        "models": {"m": {**model, "cassettes": "auto"}, "n": {**model, "cassettes": "live"}},
    }
    config = read(said, "t")
    assert studio_of(config, print).settings.models == {"m": "auto", "n": "live"}
    with environment(USETOOL_MODE="record"):
        settings = studio_of(config, print).settings
    assert (settings.mode, settings.models, settings.allow) == (
        "record",
        {"n": "live"},
        ("replay",),
    )


RECORDS = '[cassettes]\nmode = "auto"\n[upstreams.s]\nkind = "scripted"\n[models.m]\n'
OWN = RECORDS.replace("auto", "replay") + 'cassettes = "record"\n'


@pytest.mark.parametrize("text", [RECORDS, OWN])
@pytest.mark.parametrize("command", [["serve"], ["cassette", "diff", "t", "--against", "m"]])
def test_no_job_asks_a_provider_by_accident(
    text: str,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.toml").write_text(f'{text}upstream = "s"\n', "utf-8")
    with environment(CI="1"):
        assert main(command) == 2
    assert "CI is set" in capsys.readouterr().err


def test_a_pattern_that_is_none_is_found_before_anything_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = '[cassettes]\nredact = ["(x"]\n[upstreams.s]\nkind = "scripted"\n[models.m]\n'
    Path("config.toml").write_text(f'{text}upstream = "s"\n', "utf-8")
    assert main(["check"]) == 2
    assert "cassettes.redact" in capsys.readouterr().err


def test_a_mode_nobody_knows_is_a_mistake_that_names_the_variable() -> None:
    config = read({"cassettes": {"mode": "replay"}}, "t")
    with environment(USETOOL_MODE="rewind"), pytest.raises(ConfigError, match="USETOOL_MODE"):
        studio_of(config, print)
