"""Which state a config has, and where its files are."""

from __future__ import annotations

from pathlib import Path

import pytest

from middleware.building import open_store
from middleware.config import Config, ConfigError, load, parse
from middleware.state.homes import open_state, own_file
from middleware.wrappers.recall import MemoryStore, RedisStore, SqliteStore

ONE = '[upstreams.up]\nkind = "ollama"\n[models.one]\nupstream = "up"\n'
REDIS = '[state]\nurl = "redis://127.0.0.1:1"\n'


def written(path: Path, more: str = "") -> Config:
    path.write_text(more + ONE)
    return load(path, environment={})


@pytest.mark.parametrize(
    ("said", "home", "store"),
    [
        ("", "file", SqliteStore),
        ('[state]\nurl = "sqlite:///here.db"\n', "file", SqliteStore),
        ('[state]\nurl = "memory:"\n', "memory", MemoryStore),
        (REDIS, "redis", RedisStore),
        (f'{REDIS}[recall]\nstore = "file"\n', "redis", SqliteStore),
        (f'{REDIS}[recall]\nstore = "memory"\n', "redis", MemoryStore),
    ],
)
def test_a_config_has_the_state_and_the_store_it_names(
    tmp_path: Path, said: str, home: str, store: type[object]
) -> None:
    config = written(tmp_path / "config.toml", said)
    state = open_state(config, print)
    assert state.home == home
    assert type(open_store(config, state)) is store
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]  # nothing is made yet


def test_a_config_of_no_file_counts_in_memory() -> None:
    assert open_state(parse(ONE, environment={}), print).home == "memory"


def test_each_config_has_files_of_its_own_in_one_folder(tmp_path: Path) -> None:
    folder = f'[state]\nfolder = "{tmp_path / "kept"}"\n'
    one, two = (written(tmp_path / f"{name}.toml", folder) for name in ("one", "two"))
    files = [own_file(config, "state") for config in (one, two)]
    assert len({*files}) == 2
    assert {path.parent for path in files} == {tmp_path / "kept"}
    assert own_file(one, "state") == files[0]
    assert files[0].name.startswith("state-")


def test_an_address_that_cannot_be_one_is_a_mistake(tmp_path: Path) -> None:
    config = written(tmp_path / "config.toml", '[state]\nurl = "redis://127.0.0.1:port"\n')
    with pytest.raises(ConfigError, match=r"state\.url"):
        open_state(config, print)
