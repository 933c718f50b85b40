"""A folder with a config and a request, in which the command line is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import CONFIG, REQUEST


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("LOCKED_KEY", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "config.toml").write_text(CONFIG.replace("PORT", "8100"), "utf-8")
    (tmp_path / "request.json").write_text(REQUEST, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
