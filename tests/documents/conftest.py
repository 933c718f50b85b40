"""A folder with the config and the request that README.md shows."""

from __future__ import annotations

import pytest

from tests.documents.readme import Folder, asked
from tests.documents.test_documents import text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = tmp_path_factory.mktemp("readme")
    (path / "config.toml").write_text(text("config.toml"), "utf-8")
    (path / "request.json").write_text(asked(), "utf-8")
    return Folder(path)
