"""The secret that signs what clients carry."""

from __future__ import annotations

import stat
from pathlib import Path

from middleware.config import Config, load
from middleware.state.secret import signing_secret


def config(folder: Path, state: str = "") -> Config:
    path = folder / "config.toml"
    path.write_text(f"[state]\nfolder = '{folder / 'state'}'\n{state}\n[models.m]\nupstream = 's'\n"
                    "[upstreams.s]\nkind = 'scripted'\n")  # fmt: skip
    return load(path)


def test_a_machine_keeps_one(tmp_path: Path) -> None:
    said: list[str] = []
    first = signing_secret(config(tmp_path), said.append)
    assert signing_secret(config(tmp_path), said.append) == first
    assert len(first) == 32
    kept = tmp_path / "state" / "secret"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [path.name for path in kept.parent.iterdir()] == ["secret"]
    assert said == []


def test_the_configs_own_outranks_it(tmp_path: Path) -> None:
    ours = signing_secret(config(tmp_path, "secret = 'long and random'"), print)
    assert signing_secret(config(tmp_path, "secret = 'long and random'"), print) == ours
    assert not (tmp_path / "state").exists()


def test_where_nothing_can_be_kept_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, no folder")
    said: list[str] = []
    assert len(signing_secret(config(tmp_path), said.append)) == 32
    assert "[state] secret" in said[0]
